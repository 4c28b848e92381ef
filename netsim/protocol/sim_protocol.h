/*
 * way.h - from one host to another: two connections of the real protocol, and the messages between them.
 *
 * A message is a flow of the workload. The receiving end chooses the scheme. What the sending end sends is a
 * pattern that begins elsewhere in each message; each byte that was received is compared with it.
 * A scheme with a deadline may deliver less; a receive is posted when its message is sent, so its deadline
 * counts from there. Others of a collective have receives that are posted ahead, as those of groups: the next
 * message takes the next one, whichever flow it is of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_PROTOCOL_WAY_H
#define LH_NETSIM_PROTOCOL_WAY_H

#include <longhaul/connection.h>

#include "netsim/run/run.h"

#define WAY_AHEAD_MAX      64u    /* as a link of a group (LINK_BULK_PLACES) */
#define WAY_PATTERN_SHIFTS 65536u /* the pattern is that much longer than the longest message */

struct message {
    struct lh_request *receive; /* NULL: over, as is the other */
    struct lh_request *send;
    uint8_t *buffer;
    uint32_t flow;
    struct message *next; /* of the way, in the order of their start */
};

/* A receive of no message yet. */
struct way_receive {
    struct lh_request *request;
    uint8_t *buffer; /* of longest_bytes */
};

/* What both connections have counted and no flow was given yet is in their lh_stats less this. */
struct way_counted {
    uint64_t packets;
    uint64_t repeated;
    uint64_t timeouts;
    uint64_t control;
};

struct way {
    struct lh_connection *ends[2]; /* at the source, at the destination; NULL: not opened yet */
    struct message *first;         /* of those that are not over */
    struct message *last;
    uint32_t source;
    uint32_t destination;
    uint32_t flows;
    uint64_t longest_bytes; /* of its flows */
    bool is_ahead;          /* receives are posted before their messages are sent */
    struct way_receive ahead[WAY_AHEAD_MAX];
    uint32_t posted; /* receives so far, of `flows`; the next message takes number `taken` of these */
    uint32_t taken;
    struct way_counted counted;
};

/* lh_attr.congestion of the sending ends; NULL: none is set. */
const char *way_congestion(const struct netsim_transport_config *transport);

/* Opens and connects both ends in that world; rtt_ps: of the empty path. `scheme`: as lh_attr.reliability. */
int way_open(struct way *way, const struct netsim *net, netsim_time rtt_ps, const char *world,
             const char *scheme);
void way_close(struct way *way); /* frees what is not over, too */
/* Starts the message of a flow. message->flow is set. The flow fails when the connection has ended. */
int way_start(struct way *way, struct netsim *net, struct message *message, const uint8_t *pattern);
/* Ends what is over, in the network's flows and totals. 0, or -LH_EPROTOCOL: a byte is wrong. */
int way_settle(struct way *way, struct netsim *net, const uint8_t *pattern);

#endif
