/*
 * data_path.h - do packets of data pass? Control and data go to different UDP ports, and a firewall may let
 * the first alone through; a link may take small packets only, and report nothing: the peer is there, and
 * what it sends never arrives. Pure.
 *
 * The receiving side decides. It knows what the peer has sent from the lengths that the peer announces for
 * each segment, and retransmits while nothing answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_DATA_PATH_H
#define LH_MESSAGE_RX_DATA_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include <longhaul/types.h>

/* Packets of one kind: announced since the last of them arrived. */
struct data_path_kind {
    bool passed;       /* some did arrive */
    uint32_t evidence; /* packets of segments whose lengths came since */
    double silent;     /* share of the silence that is needed, from the first of them on */
    lh_time last_ns;   /* the latest of them */
};

struct data_path {
    struct data_path_kind any;
    struct data_path_kind full; /* of the whole MTU */
    bool small;                 /* a lone one that was announced lately is smaller */
    uint64_t packets;           /* that had arrived at the last announcement */
};

/* An announcement, and what is known when it comes. */
struct data_path_view {
    uint32_t bytes;     /* of the segment, at least 1: its packets are sent */
    uint32_t mtu_bytes; /* of each but the last */
    uint64_t packets;   /* of data that arrived on this connection, so far */
    bool full;          /* one of the MTU did, since the last announcement */
    lh_time overdue_ns;
    lh_time timeout_ns; /* attr.peer_timeout_ns: of a path that worked before */
};

enum data_path_state {
    DATA_PATH_PASSES, /* or there is no proof yet that it does not */
    DATA_PATH_BLOCKED,
    DATA_PATH_TOO_SMALL, /* small packets arrive, full ones do not */
};

/* The peer announced a segment, and sends it. */
enum data_path_state data_path_on_announced(struct data_path *path, const struct data_path_view *view,
                                            lh_time now);
/* Evidence of the path's MTU from then on is of the path as it is. */
lh_time data_path_since(const struct data_path_view *view, lh_time now);
/* Formats cause and remedy of a path that does not pass, as one line; returns out. Truncates at size.
 * probed_bytes: the largest payload of packets as long as which probes of the peer have arrived since; 0:
 * none did. No other size is recommended. */
char *data_path_reason(const struct data_path *path, enum data_path_state state, uint32_t mtu_bytes,
                       uint32_t probed_bytes, char *out, size_t size);

#endif
