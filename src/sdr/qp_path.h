/*
 * path_mtu.h - which part of a packet the path to the peer takes at once: path MTU discovery by probes (RFC
 * 8899, Datagram PLPMTUD). Pure.
 *
 * Packets of the agreed MTU may stop to pass in mid-transfer, without a word where a firewall drops ICMP: a
 * PMTU black hole. Probes are control messages as long on the wire as a data packet in 1, 2, 4 or 8 pieces
 * (fabric/packet_pieces.h); the answer is short. *shift* is the logarithm of the number of pieces in use.
 *
 * An idle queue pair probes nothing: each timer starts a probe only where a packet's worth of payload has
 * left since the last answer. Nor does a short transfer: the first of these left 2 overdue times and 20 ms
 * ago.
 *
 * Timers:
 *   confirm  while data leave, one probe of the length in use, a second or 8 overdue times after the last
 *            answer (RFC 8899, CONFIRMATION_TIMER)
 *   wait     1.5 overdue times and 20 ms after a probe: no answer. Of a confirmation: the search begins
 *   round    of the search: one probe of each length in half an overdue time, until the length in use is
 *            answered, or data packets of the whole MTU arrive (nothing has changed), or shorter ones were
 *            answered SEARCH_ANSWERS times: the longest of these is used from now on. Without any answer the
 *            path is down, not too small: a short probe at doubling intervals
 *   raise    while packets are in pieces, three probes of each longer length, 4 s after the change, then at
 *            doubling intervals up to 600 s (RFC 8899, PMTU_RAISE_TIMER): the path may have recovered, and
 *            asking costs a few packets
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RUN_PATH_MTU_H
#define LH_SDR_RUN_PATH_MTU_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/types.h>

#define PATH_MTU_LENGTHS          4u /* packets in 1, 2, 4 or 8 pieces */
#define PATH_MTU_CONFIRM_NS       LH_NS_PER_S
#define PATH_MTU_CONFIRM_OVERDUES 8u
#define PATH_MTU_WAIT_MIN_NS      (20 * LH_NS_PER_MS)
/* Where a third of all packets is lost, both ways, 1 in 10,000 searches finds none of eight long probes
 * answered that pass; data packets that arrive end it before. */
#define PATH_MTU_SEARCH_ANSWERS 8u
#define PATH_MTU_SEARCH_SPAN_NS LH_NS_PER_S /* longest interval of rounds without an answer */
#define PATH_MTU_SILENT_ROUNDS  16u         /* without an answer: the search ends until more is sent */
#define PATH_MTU_RAISE_MIN_NS   (4 * LH_NS_PER_S)
#define PATH_MTU_RAISE_MAX_NS   (600 * LH_NS_PER_S)
#define PATH_MTU_RAISE_PROBES   3u /* RFC 8899, MAX_PROBES */

enum path_mtu_state {
    PATH_MTU_IDLE,       /* until data has left and a timer expires */
    PATH_MTU_CONFIRMING, /* a probe of the length in use is in flight */
    PATH_MTU_SEARCHING,  /* it was not answered */
    PATH_MTU_RAISING,    /* probes of longer packets are in flight */
};

/* What the machine knows of the queue pair, in each step. */
struct path_mtu_view {
    uint64_t sent_bytes; /* payload of packets that had to have the length in use, ever */
    lh_time overdue_ns;  /* 0: no round trip is known */
    lh_time now;
};

struct path_mtu {
    enum path_mtu_state state;
    uint32_t mtu_bytes; /* agreed */
    uint32_t lengths;   /* 1: nothing can be changed, so nothing is probed */
    uint32_t shift;
    uint64_t sent_noted; /* view.sent_bytes at the last answer */
    bool has_sent;       /* a packet has left since */
    lh_time at;          /* when the timer of the state expires */
    lh_time raise_at;
    lh_time raise_span;
    lh_time raised_ns; /* when packets became larger last; 0: never */
    uint32_t probes;   /* of this search, or of this try to raise */
    uint32_t next_id;
    uint32_t first_id;                 /* of this state's probes: older answers are of no use any more */
    uint32_t newest_id;                /* answered, of this state's */
    bool answered;                     /* one was */
    uint32_t newest[PATH_MTU_LENGTHS]; /* likewise of each length; counts where it has answers */
    uint32_t silent;                   /* probes of the search, since there was no answer for long */
    lh_time answered_ns;               /* last answer of the search, or its beginning */
    uint32_t answers[PATH_MTU_LENGTHS];
    uint32_t due; /* bit s: a probe of 1 / 2^s of the MTU is to be sent; one at a time */
};

/* The machine is off, and never has anything due, until path_mtu_start(). */
void path_mtu_init(struct path_mtu *mtu, uint32_t mtu_bytes);
/* The peer takes pieces of so many lengths, and answers probes. */
void path_mtu_start(struct path_mtu *mtu, uint32_t lengths);
/* Timers; then probes may be due. */
void path_mtu_on_time(struct path_mtu *mtu, const struct path_mtu_view *view);
/* The next probe to be sent: its id, and its length as a shift. False: none. One that cannot be sent counts
 * as lost. */
bool path_mtu_take_probe(struct path_mtu *mtu, uint32_t *id, uint32_t *shift);
/* The peer answered a probe. full: data packets of the whole MTU have arrived there since the probe before.
 * True: the length in use is another from now on. */
bool path_mtu_on_answer(struct path_mtu *mtu, uint32_t id, bool full, const struct path_mtu_view *view);
/* When path_mtu_on_time() is to be called again: LH_TIME_NEVER until more has left. */
lh_time path_mtu_next(const struct path_mtu *mtu);

#endif
