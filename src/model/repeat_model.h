/*
 * repeat_model.h - selective repeat: distribution and samples of the time from a chunk's last injection to
 * the whole message.
 *
 * SDR-RDMA paper, section 4.2.2 and appendix A. Chunk i of M starts at i T_inj, each loss of it costs
 * O = RTO + T_inj: X_i = i T_inj + O (Y_i - 1), and the message takes max X_i. The unit of time here is
 * T_inj, and the excess is max X_i - M: 0 when nothing is lost that matters.
 *
 * A chunk has been lost k times with chance p^k. With s the time since the last chunk started, all chunks
 * that started s - k O or later may have been lost at most k - 1 times. So
 *     log P(excess <= s) = sum over k of (l_k - l_{k+1}) C_k(s),   l_k = log(1 - p^k),
 * where C_k(s) is the number of chunks with k O after their start still to come: a staircase from M to 0.
 * The mean is its integral. Between the points where a staircase begins or ends it is a sum of geometric
 * series, one for each place of a step within a T_inj; there are two such points for each k. That is exact.
 * Staircases whose steps change P by less than 10^-6 are taken as slopes where a message lasts for so many O
 * that it counts; the result keeps 8 digits, and more of a message with many chunks.
 *
 * With bursts the chunks that were lost k times stand in rows. Then p^k in l_k gives way to the chance that
 * such a row begins, with the k transmissions of a chunk taken as independent of each other and a row of
 * those lost k times as one that goes on with the chance that k independent ones do; the last chunk is lost k
 * times with the chance p^k as ever. This is exact for k = 1, and an approximation beyond.
 *
 * Where it is told so, the first loss of a chunk costs something else than each further one, and a chunk is
 * lost k times when one of its packets is: what arrived of it stays. Then l_k = log(1 - p_k) with
 * p_k = 1 - (1 - p_packet^k)^n, and the k-th staircase ends at k O + shift.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_REPEAT_MODEL_H
#define LH_MODEL_REPEAT_MODEL_H

#include <longhaul/model.h>

#include "base/prng.h"
#include "model/loss_model.h"

/* A chunk's loss of at most MODEL_CHUNK_LOSS_MAX and 10^15 chunks need fewer. */
#define MODEL_LEVELS_MAX 8192u

struct model_repeat {
    double overhead; /* O, in T_inj; at least 1 */
    double shift;    /* what the first loss costs more than each further one */
    bool packets;    /* that arrived of a chunk stay */
    bool bursty;     /* and anything is lost */
    struct model_loss loss;
    unsigned levels;                       /* the largest k that matters */
    double log_pass[MODEL_LEVELS_MAX + 2]; /* l_k for 1 ... levels; 0 behind them */
};

/* For up to so many chunks. Only the loss of chunks counts. */
void model_repeat_start(struct model_repeat *repeat, const struct model_loss *loss, double overhead,
                        double chunks);
/* Longhaul's: `first` for the first loss, and packets stay. */
void model_repeat_start_packets(struct model_repeat *repeat, const struct model_loss *loss, double first,
                                double overhead, double chunks);
/* What the k-th loss of a chunk costs, with those before it; 0 of none. */
double model_repeat_cost(const struct model_repeat *repeat, double losses);
/* Chance that a chunk is lost k times in a row. */
double model_repeat_loss(const struct model_loss *loss, bool packets, double k);
/* Mean of the excess. `chunks` need not be whole: the paper puts a mean number in. */
double model_repeat_excess(const struct model_repeat *repeat, double chunks);
/* The same of what is cut off at `limit`: the mean of the smaller of the two. */
double model_repeat_excess_until(const struct model_repeat *repeat, double chunks, double limit);
/* P(excess <= s). */
double model_repeat_cdf(const struct model_repeat *repeat, double chunks, double s);
/* The smallest excess that is not exceeded with the chance `share`, 0 to below 1. */
double model_repeat_quantile(const struct model_repeat *repeat, double chunks, double share);

/* ---- repeat sampler -------------------------------------------------------------------------------- */

/*
 * Completion times of selective repeat, one after another, by drawing only what is lost.
 */

/* Excess over M T_inj in T_inj. From the last chunk backwards: the later a chunk started, the
 * fewer losses make it the last to arrive. Only those chunks are looked for that have been lost often
 * enough to be later than the latest so far, so few are. */
double model_sample_repeat(const struct model_repeat *repeat, double log_loss, double chunks,
                           struct lh_prng *prng);
/* The same on a link that loses in bursts: bursts of lost chunks, of these what is lost again, and so on.
 * Each transmission of the message meets bursts of its own. */
double model_sample_repeat_bursts(const struct model_repeat *repeat, const struct model_loss *loss,
                                  double chunks, struct lh_prng *prng);

/* ---- message --------------------------------------------------------------------------------------- */

/* A message on a path: its chunks, the times they take, what is lost; checked. */

struct model_message {
    double chunks;  /* M */
    double packets; /* of the message */
    double
        inject_s; /* T_inj: of a chunk; M T_inj is what the message takes, though its last may be shorter */
    double packet_inject_s;
    double rtt_s;
    double rto_s;     /* from an injection that is lost to the next; behind the first, see first_s */
    double first_s;   /* the same behind the first injection of a chunk */
    double repairs_s; /* what repairs take of the link before the last first injection */
    double window_s;  /* of reordering */
    bool longhaul;    /* Longhaul's timing, not the paper's: sets first_s, repairs_s, window_s */
    double message_wire_bytes; /* all packets once */
    double ideal_s;
    struct model_loss loss;
};

/* By the paper's timing, with a timeout of rto_rtts round trips. -LH_EINVAL, -LH_ERANGE: the path is
 * invalid, or loses too much for the model. */
int model_message_of(const struct lh_model_path *path, double rto_rtts, struct model_message *message);
/* Bytes of a segment, whole chunks: the message is cut into these, and a last one that may be shorter. */
uint64_t model_message_segment(const struct lh_model_path *path);
/* O = RTO + T_inj, in T_inj. */
double model_message_overhead(const struct model_message *message);
/* Selective repeat of the whole message. */
void model_message_repeat(const struct model_message *message, struct model_repeat *repeat);
/* Without a loss of the last chunks: M T, what is repeated meanwhile, RTT. */
double model_message_whole(const struct model_message *message);

/* ---- series ---------------------------------------------------------------------------------------- */

/* The geometric series that the model's closed sums are made of. */

/* Sum over j = 0 ... count - 1 of 1 - exp(first + j * rise), to 12 digits however small it is. count is whole
 * and may be large; first, rise >= 0 and first + (count - 1) * rise <= 0 but for rounding. */
double model_series_missing(double first, double rise, double count);

#endif
