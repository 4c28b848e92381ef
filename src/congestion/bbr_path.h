/*
 * bbr_path.h - what bbr finds of a path by experiments: its rate, by a packet train; whether packets are lost
 * at random or by a policer, by a lower rate. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_BBR_PATH_H
#define LH_CONGESTION_BBR_PATH_H

#include <longhaul/congestion.h>

/* ---- train ----------------------------------------------------------------------------------------- */

/*
 * The first packets of a connection leave far faster than most paths: their spacing at the receiver is the
 * path's rate, after one round trip (the dispersion of packet trains: Dovrolis, Ramanathan, Moore, 2004).
 * Hosts hold packets back and let them go together, so a rate is believed only when parts of the train agree
 * on it.
 */

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

/* Whether the path has about the round trip that is remembered, and its product is worth it. */
bool bbr_train_remembers(const struct lh_congestion_path *path);

/* ---- loss ------------------------------------------------------------------------------------------ */

/*
 * Packets that are lost while none waits in a queue are lost at random (radio, a bad fibre), or a policer
 * drops what exceeds its rate (a token bucket without a queue: clouds, carriers). Delays tell nothing. The
 * share at a lower rate does: by chance it is the same, and a policer drops nothing.
 *
 * A test is half of what was delivered, until as many packets have left that a share as before would show.
 * `up` is one, too: of what it adds a policer lets nothing through. While random loss is made up for and
 * packets wait, it is repeated: loss that has gone would be made up for by a queue.
 *
 * Of a loss that many flows cause together one changes little, and each would make up for it. So where `up`
 * brings neither more nor a queue, several times, as much loss at a lower rate proves nothing for a while,
 * or until it is as much at half of the rate.
 *
 * Once a policer is found, the rate is what it delivered, and is not probed for a while: a probe empties the
 * bucket, which hides that it fails, and then loses packets. Then half as much again is believed each time,
 * until eight times the rate has passed and the policer seems to be gone.
 */

/* A round trip, or several. Bytes. */
struct bbr_loss_sample {
    double arrived, lost;
    double timed, ns; /* arrived, and in which time: of round trips that did not stall */
};

enum bbr_loss_found {
    BBR_LOSS_NOTHING,
    BBR_LOSS_UNKNOWN, /* to be tested, at bbr_loss_test_bps() */
    BBR_LOSS_END,     /* of a test that says nothing */
    BBR_LOSS_QUEUE,   /* this flow's own queue drops packets: test_bps is the path's rate */
    BBR_LOSS_RANDOM,  /* share is that of the path */
    BBR_LOSS_POLICED  /* policed_bps is the policer's rate */
};

/* Whether a test ends now, whatever it shows. */
enum bbr_loss_end {
    BBR_LOSS_GOES_ON,
    BBR_LOSS_LAST,  /* it took long enough */
    BBR_LOSS_PAUSED /* the application sends too little */
};

struct bbr_loss {
    uint32_t mtu;
    double share;                      /* at random, smoothed */
    double tested;                     /* as the last test has found it */
    struct bbr_loss_sample cruised;    /* without a queue, since the last test */
    struct bbr_loss_sample test;       /* of the test that runs: */
    double test_bps;                   /* what was delivered before it */
    uint32_t test_rounds;              /* of it so far */
    struct bbr_loss_sample earlier;    /* round trips, each counted half of the next */
    uint64_t test_round;               /* when the last one ended */
    uint32_t limits;                   /* in a row, without a queue */
    uint64_t doubted_until;            /* round; nothing is taken for random before */
    double doubted_share, doubted_bps; /* as it began */
    double policed_bps;                /* of the policer that was found last; 0: none */
    double probed_bps;                 /* as it was when it was probed last; 0: not yet */
    double max_bps;                    /* more is not believed yet; 0: anything */
    uint32_t lowered;                  /* so often without a test, since the last one or probe */
    double step;                       /* of max_bps, after the next wait */
    double longer;                     /* than the first time: the wait until it is probed */
    uint64_t max_round;                /* when max_bps changed */
    lh_time max_ns;
};

void bbr_loss_start(struct bbr_loss *loss, uint32_t mtu_bytes);
/* So much of a round trip lost is more than chance explains. sure: also where no queue confirms it. */
bool bbr_loss_is_excess(const struct bbr_loss *loss, double lost, double all, bool sure);
/* A round trip ends; `rounds` counts them. */
void bbr_loss_on_round(struct bbr_loss *loss, uint64_t rounds, lh_time now);
/* One of packets that were all sent at the path's rate, in a test, or in `up`; queue: some of them waited.
 * bps: the estimate of the path's rate. */
enum bbr_loss_found bbr_loss_on_cruise(struct bbr_loss *loss, const struct bbr_loss_sample *round,
                                       bool queue, double bps, uint64_t rounds, lh_time now);
/* queue: there was one when it began. */
enum bbr_loss_found bbr_loss_on_test(struct bbr_loss *loss, const struct bbr_loss_sample *round,
                                     enum bbr_loss_end end, bool queue, double bps, uint64_t rounds,
                                     lh_time now);
enum bbr_loss_found bbr_loss_on_up(struct bbr_loss *loss, const struct bbr_loss_sample *round, double bps,
                                   uint64_t rounds, lh_time now);
/* At a higher rate no more arrived. Where that fills no queue either, no random loss limits the rate: others
 * send through the same policer. */
void bbr_loss_on_limit(struct bbr_loss *loss, bool queue, double bps, uint64_t rounds);
/* What arrived and was lost in the round trip that ends, in bytes. */
void bbr_loss_end_round(struct bbr_loss *loss, double arrived, double lost);
/* The share lost of this round trip and earlier ones, each counted half of the next: what the last window of
 * a message loses is reported when all that arrives of it has been. */
double bbr_loss_lately(const struct bbr_loss *loss, double arrived, double lost);
/* Nothing arrives any more; with less it is the random loss of a last window. */
bool bbr_loss_is_stall(const struct bbr_loss *loss, double arrived, double lost);
/* With random loss: how many times as much must arrive when `up` shows so many times as much, or the path has
 * no more. packets: of a round trip. */
double bbr_loss_growth(const struct bbr_loss *loss, double shown, double packets);
/* While cruising, without a queue; 0: unknown. */
double bbr_loss_delivered_bps(const struct bbr_loss *loss);
double bbr_loss_test_bps(const struct bbr_loss *loss);
/* That rate, but not more than is believed yet. */
double bbr_loss_believed(const struct bbr_loss *loss, double bps);
/* What may leave at once at that rate: the bucket of the policer that was found holds it; 0: none was. */
uint64_t bbr_loss_burst_bytes(const struct bbr_loss *loss, double bps);
/* The rate is a policer's, and is not to be probed. */
bool bbr_loss_is_policed(const struct bbr_loss *loss);

#endif
