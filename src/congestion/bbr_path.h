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

/* ---- cohort ---------------------------------------------------------------------------------------- */

/*
 * The packets that left in a span of time: how fast, and what arrived of them. From one report to another
 * within the span, so what left before and after it, or not at all because the application paused, is not
 * mixed with it as in a delivery rate over a round trip.
 */
struct bbr_cohort {
    double from_ns, until_ns; /* of the sends */
    bool begun;
    lh_time first_ns;
    uint64_t first_passed, first_arrived;
    double spacing_ns;          /* on the receiver's clock, since the first report of it */
    double sent_ns, arrived_ns; /* from its first packet to its last */
    double bytes, arrived_bytes;
};

void bbr_cohort_start(struct bbr_cohort *cohort, double from_ns, double until_ns);
void bbr_cohort_on_feedback(struct bbr_cohort *cohort, const struct lh_congestion_feedback *f);
/* bit/s; 0: unknown. */
double bbr_cohort_sent_bps(const struct bbr_cohort *cohort);
double bbr_cohort_delivered_bps(const struct bbr_cohort *cohort);

/* ---- arrivals without a time ------------------------------------------------------------------------ */

/* Reports that name no packet: what arrives is of no use to the receiver. */
struct bbr_untimed {
    uint32_t reports; /* in a row */
    lh_time since_ns;
    uint64_t bytes; /* since then */
};

/* What arrived so, once in each span. 0: nothing, or too few reports of it in a row. */
double bbr_untimed_bps(struct bbr_untimed *untimed, const struct lh_congestion_feedback *f, double span_ns);

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

#define BBR_MADE_UP 0.95 /* of random loss, so that many flows at a policer yield */

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

struct bbr_loss {
    uint32_t mtu;
    double share;                      /* at random, smoothed */
    double tested;                     /* as the last test has found it */
    struct bbr_loss_sample cruised;    /* without a queue, since the last test */
    struct bbr_loss_sample test;       /* of the test that runs: */
    double test_bps;                   /* what was delivered before it */
    struct bbr_loss_sample earlier;    /* round trips, each counted half of the next */
    uint64_t test_round;               /* when the last one ended */
    struct bbr_loss_sample recent;     /* until it has enough packets for */
    double lowest;                     /* the lowest share lately, */
    uint64_t lowest_round;             /* and when; 0: not yet */
    uint32_t limits;                   /* in a row, without a queue */
    uint64_t doubted_until;            /* round; nothing is taken for random before */
    double doubted_share, doubted_bps; /* as it began */
    bool doubted_rose;
    double restored_bps; /* the rate that a doubt, which a test has ended, has cost; 0: none */
    double policed_bps;  /* of the policer that was found last; 0: none */
    double probed_bps;   /* as it was when it was probed last; 0: not yet */
    double max_bps;      /* more is not believed yet; 0: anything */
    uint32_t lowered;    /* so often without a test, since the last one or probe */
    double step;         /* of max_bps, after the next wait */
    double longer;       /* than the first time: the wait until it is probed */
    uint64_t max_round;  /* when max_bps changed */
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
/* last: the test ends now, whatever it shows; queue: there was one when it began. */
enum bbr_loss_found bbr_loss_on_test(struct bbr_loss *loss, const struct bbr_loss_sample *round, bool last,
                                     bool queue, double bps, uint64_t rounds, lh_time now);
enum bbr_loss_found bbr_loss_on_up(struct bbr_loss *loss, const struct bbr_loss_sample *round, double bps,
                                   uint64_t rounds, lh_time now);
/* At a higher rate no more arrived. Where that fills no queue either, no random loss limits the rate: others
 * send through the same policer. */
void bbr_loss_on_limit(struct bbr_loss *loss, bool queue, double bps, uint64_t rounds);
/* The rate before a doubt that a test has ended, where the loss had not risen: the rate again. Once;
 * 0: none. */
double bbr_loss_take_restored(struct bbr_loss *loss);
/* What arrived and was lost in the round trip that ends, in bytes. */
void bbr_loss_end_round(struct bbr_loss *loss, double arrived, double lost, uint64_t rounds);
/* The share lost of this round trip and earlier ones, each counted half of the next: what the last window of
 * a message loses is reported when all that arrives of it has been. */
double bbr_loss_lately(const struct bbr_loss *loss, double arrived, double lost);
/* Nothing arrives any more; with less it is the random loss of a last window. */
bool bbr_loss_is_stall(const struct bbr_loss *loss, double arrived, double lost);
/* With random loss: how many times as much must arrive when `up` shows so many times as much, or the path has
 * no more. packets: of a round trip. */
double bbr_loss_growth(const struct bbr_loss *loss, double shown, double packets);
/* What the path delivers of such a cohort in the long run: all but the share that is lost at random, since
 * what arrives of few packets varies; where more is lost than chance explains, what arrived. 0: unknown. */
double bbr_loss_cohort_bps(const struct bbr_loss *loss, const struct bbr_cohort *cohort);
/* While cruising, without a queue; 0: unknown. */
double bbr_loss_delivered_bps(const struct bbr_loss *loss);
double bbr_loss_test_bps(const struct bbr_loss *loss);
/* That rate, but not more than is believed yet. */
double bbr_loss_believed(const struct bbr_loss *loss, double bps);
/* What may leave at once at that rate: the bucket of the policer that was found holds it; 0: none was. */
uint64_t bbr_loss_burst_bytes(const struct bbr_loss *loss, double bps);
/* The rate is a policer's, and is not to be probed. */
bool bbr_loss_is_policed(const struct bbr_loss *loss);

/* ---- up --------------------------------------------------------------------------------------------- */

/* For a time a little faster: is there more? */
struct bbr_up {
    double bw, gain, ns; /* the rate, how many times of it, for how long */
    struct bbr_cohort cohort;
    bool seen;       /* what was sent in it arrives, */
    bool full;       /* at a rate that the application did not limit, */
    uint32_t queued; /* and so many reports of it show a queue */
    bool fast;       /* there was more */
};

struct bbr_up_result {
    double bps;     /* what it brought, */
    double shown;   /* where so many times as much could have come, */
    double packets; /* of so many */
    bool tells;     /* it says anything */
};

void bbr_up_start(struct bbr_up *up, double bw, double gain, double ns, lh_time now);
/* By what left faster alone. */
struct bbr_up_result bbr_up_by_cohort(const struct bbr_up *up, const struct bbr_loss *loss);
/* By the highest delivery rate. Of many flows at a policer it shows less of what one takes from others, so
 * that they yield sooner. packets: of a round trip. */
struct bbr_up_result bbr_up_by_rates(const struct bbr_up *up, double bps, double rtt_ns, double packets);
bool bbr_up_is_more(const struct bbr_up *up, const struct bbr_up_result *result);
/* What it sends on top makes a longer queue than that, where the path is full; within these bounds. */
double bbr_up_queue_ns(const struct bbr_up *up, double min_ns, double max_ns);

#endif
