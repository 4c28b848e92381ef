/*
 * bbr_train.h - the first packets of a connection, sent far faster than most paths: their spacing at the
 * receiver is the path's rate, after one round trip (the dispersion of packet trains: Dovrolis, Ramanathan,
 * Moore, 2004). Hosts hold packets back and let them go together, so a rate is believed only when parts of
 * the train agree on it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_BBR_TRAIN_H
#define LH_CONGESTION_BBR_TRAIN_H

#include <longhaul/congestion.h>

#define BBR_TRAIN_BYTES         65536 /* and at least 10 packets (RFC 6928) */
#define BBR_TRAIN_BURST_PACKETS 4     /* so that several reports can tell its spacing */
#define BBR_TRAIN_BPS           40e9
#define BBR_TRAIN_AGREE         1.5 /* at most, between rates that agree */

/* What arrived since the first report of a train, and in which time. */
struct bbr_spacing {
    double bytes, ns;
};

struct bbr_train {
    uint32_t mtu;
    uint64_t bytes;       /* to send, in all trains so far */
    uint64_t base;        /* of that, settled before this one, */
    uint64_t start;       /* and before those that it continues */
    uint32_t longer;      /* trains after the first, without those of an idle application */
    double since;         /* nanoseconds from the first to this one */
    uint32_t starts;      /* reports after nothing was in flight; several: the application was idle */
    uint64_t first_bytes; /* of these reports: they have no spacing */
    uint64_t busy_bytes;  /* that arrived since the last of them */
    struct bbr_spacing all, quarter, half; /* now, and at these parts of it; 0: not yet */
};

/* Of the path, since the connection began. Bytes, nanoseconds. */
struct bbr_train_path {
    uint64_t settled_bytes; /* arrived or lost */
    uint64_t lost_bytes;
    double rtt_min;     /* 0: unknown */
    double since_start; /* of the train */
    bool is_limit;      /* delivers less than was sent */
};

struct bbr_train_rate {
    double bps;      /* 0: not known yet */
    bool is_of_path; /* else the path may have more */
};

/* bytes: at least; 0: as many as suit a path of which nothing is known. */
void bbr_train_start(struct bbr_train *train, uint32_t mtu_bytes, uint64_t bytes);
/* A train that shows nothing is followed by longer ones: bytes grows. */
struct bbr_train_rate bbr_train_on_feedback(struct bbr_train *train, const struct lh_congestion_feedback *f,
                                            const struct bbr_train_path *path);

#endif
