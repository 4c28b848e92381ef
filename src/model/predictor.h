/*
 * predictor.h - how completion times are predicted: an entry for each scheme, and the parameters common to
 * all.
 *
 * A *prediction* is one message on one path by one scheme, made ready. Its predictor keeps what it has
 * computed in `state`, which the caller owns: nothing is allocated. All times are seconds from the
 * injection of the first chunk. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_PREDICTOR_H
#define LH_MODEL_PREDICTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/model.h>
#include <longhaul/plan.h>
#include <longhaul/scheme.h>
#include <longhaul/types.h>

#include "base/prng.h"
#include "model/repeat_model.h"

#define MODEL_STATE_BYTES ((size_t)80 << 10)
#define MODEL_RTTS_MAX    1e6 /* of a timeout */

struct model_predictor;

struct model_prediction {
    const struct model_predictor *predictor;
    struct lh_model_scheme scheme;
    struct model_message message;
    double log_loss; /* of a chunk */
    size_t cells;    /* bytes of scratch that a thread needs to draw */
    _Alignas(64) unsigned char state[MODEL_STATE_BYTES];
};

struct model_predictor {
    /* Parameters other than the timeout: 0, -LH_EINVAL or -LH_ERANGE. NULL: the scheme has none. */
    int (*check)(const struct lh_model_scheme *scheme);
    /* Timeout of a scheme that does not set one, in RTT. NULL: the scheme has no timeout. */
    double (*rto_rtts)(const struct lh_model_scheme *scheme);
    /* Changes the message's times to those of Longhaul's machines. NULL: they are the paper's. */
    void (*longhaul)(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     struct model_message *message);
    /* Computes the state, and cells; the rest of the prediction is set. NULL: there is no state. */
    int (*start)(struct model_prediction *prediction, const struct lh_model_path *path);
    double (*mean)(const struct model_prediction *prediction);
    double (*quantile)(const struct model_prediction *prediction, double share); /* 0 to below 1 */
    double (*cdf)(const struct model_prediction *prediction, double seconds);
    /* Mean of the bytes beyond the message sent once. */
    double (*overhead_bytes)(const struct model_prediction *prediction);
    /* The mean by the formula that the paper prints. NULL: it is the mean by the paper's timing. */
    double (*paper_mean)(const struct model_prediction *prediction);
    /* Erasure codes, else NULL: chunks of parity that are sent unasked, chance of a fallback. */
    double (*parity_chunks)(const struct model_prediction *prediction);
    double (*p_fallback)(const struct model_prediction *prediction);
    /* Mean share of the message that is delivered. NULL: all of it. */
    double (*delivered)(const struct model_prediction *prediction);
    /* One completion time. cells: prediction->cells bytes, aligned for uint32_t, zero before the first draw
     * and unchanged between two. */
    double (*sample)(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells);
};

/* Checks path and scheme, and fills in the message. -LH_EINVAL, -LH_ERANGE. */
int model_predictor_message(const struct model_predictor *predictor, const struct lh_model_path *path,
                            const struct lh_model_scheme *scheme, struct model_message *message);
/* The same, and starts the prediction. */
int model_predictor_start(const struct model_predictor *predictor, const struct lh_model_path *path,
                          const struct lh_model_scheme *scheme, struct model_prediction *prediction);
/* The timeout in RTT: the scheme's own, or the predictor's. */
double model_predictor_rto(const struct model_predictor *predictor, const struct lh_model_scheme *scheme);
int model_predictor_times(const struct model_predictor *predictor, const struct lh_model_path *path,
                          const struct lh_model_scheme *scheme, struct lh_model_times *times);

/* Range and timing of a scheme, whoever its predictor is. -LH_EINVAL, -LH_ERANGE. */
int model_predictor_check(const struct model_predictor *predictor, const struct lh_model_scheme *scheme);

/* ---- parameter ------------------------------------------------------------------------------------- */

/*
 * Parameters of the model's schemes as text: "key=value", several of them separated by
 * commas.
 */

/* One of them. It points into the text, and does not end with zero. */
struct model_parameter {
    const char *text;
    int length;
    const char *value; /* NULL: there is no '=' */
    int key_length;
};

/* The one that begins there. */
struct model_parameter model_parameter_at(const char *text);
bool model_parameter_is(const struct model_parameter *parameter, const char *key);
bool model_parameter_value_is(const struct model_parameter *parameter, const char *word);

/* Its value. -LH_EINVAL; -LH_ERANGE: a timeout that is too short. */
int model_parameter_number(const struct model_parameter *parameter, double *value);
int model_parameter_whole(const struct model_parameter *parameter, uint32_t *value);
/* A timeout in RTT, of which `more` is not in the text. */
int model_parameter_rto(const struct model_parameter *parameter, double more, double *rto_rtts);

/* A text that is being written, cut at size. `used` counts all of it, without the final zero. */
struct model_text {
    char *out;
    size_t size, used;
};

void model_text_add(struct model_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* ",name=value", as short as it reads back. */
void model_text_add_number(struct model_text *text, const char *name, double value);

/* ---- longhaul timing ------------------------------------------------------------------------------- */

/* The times of Longhaul's own machines, where they are not the paper's (docs/planning.md). */

#define MODEL_RTO_DEFAULT 3.0 /* of sr-rto and of a fallback to selective repeat: paper, section 5.1.1 */
#define MODEL_RTO_NACK    1.0 /* the paper's best case of negative acknowledgements */

/* Of a path that lh_connection_path() has not measured: sdr/qp_path.h begins with these. */
#define MODEL_WINDOW_RTTS 0.125

/* Losses are found by a timeout, which runs from the moment a chunk is queued. Sets rto_s, first_s,
 * window_s and longhaul; everything else in the message is set. */
void model_timing_by_timeout(const struct lh_model_path *path, struct model_message *message);
/* Losses are reported by the receiver, after a reordering window; rto_rtts 0: as soon as possible. */
void model_timing_by_report(const struct lh_model_path *path, double rto_rtts,
                            struct model_message *message);
/* Then, by selective repeat: repairs share the link with the first injections. Sets repairs_s. */
void model_timing_repairs(struct model_message *message);

/* ---- path estimate --------------------------------------------------------------------------------- */

/*
 * How lossy, how bursty and how fast a path is, from the chunks that arrive over it.
 *
 * Loss is that of chunks, for chunks are what a receiver sees; a *run* is a row of lost chunks. What is old
 * counts less: everything is halved now and then, and when the newest chunks contradict the older ones,
 * only the newest are believed. Runs are what is compared, not chunks: within a run, chunks are no news.
 *
 * Times are looks, not arrivals: a look finds what has come since the one before. So the rate is taken over
 * busy periods, from one look to a later one, and never over a pause. Pure.
 */

/* Chunks after which the newest ones are compared with the older. */
#define PATH_ESTIMATE_RECENT 2048u
/* Chunks after which what is known counts half. */
#define PATH_ESTIMATE_MEMORY (1u << 18)
/* A busy period of fewer chunks tells no rate. */
#define PATH_ESTIMATE_PERIOD 8u

struct path_counts {
    double seen; /* chunks that arrived or were lost */
    double lost;
    double runs;
};

struct path_arrivals {
    double bytes;
    double ns; /* that they took */
};

struct path_estimate {
    struct path_counts known;
    struct path_counts recent; /* not in `known` yet */
    uint64_t chunks_seen;      /* ever */
    uint64_t chunks_lost;
    struct path_arrivals rate; /* of busy periods */
    struct path_arrivals slow; /* at less than half of that rate */
    struct path_arrivals span; /* of this busy period, not counted yet */
    lh_time period_at;         /* the first look of what follows it */
    lh_time last_at;           /* the newest that found anything; LH_TIME_NEVER: none yet */
    uint64_t period_bytes;
    uint32_t period_chunks;
};

void path_estimate_init(struct path_estimate *estimate);

/* So many chunks were sent, of which some were lost, in so many runs. */
void path_estimate_on_chunks(struct path_estimate *estimate, uint32_t seen, uint32_t lost, uint32_t runs);
/* A look found so many new chunks. A pause of pause_ns ends a busy period, whose spans are half as long. */
void path_estimate_on_arrivals(struct path_estimate *estimate, lh_time now, uint32_t chunks, uint64_t bytes,
                               lh_time pause_ns);

/* Share of the chunks that is lost; 0 when none was seen. */
double path_estimate_loss(const struct path_estimate *estimate);
/* The same, but as much as it well may be (a standard deviation more; when none was lost, one of those that
 * were seen): a plan for too little loss costs round trips, one for too much some parity. At most 0.5. */
double path_estimate_loss_upper(const struct path_estimate *estimate);
/* Mean length of a run; 1 when none was seen. */
double path_estimate_run_chunks(const struct path_estimate *estimate);
/* The same, but as long as it well may be: a standard deviation more. */
double path_estimate_run_upper(const struct path_estimate *estimate);
/* The mean in packets, where a chunk has so many: a burst of B that begins anywhere in a chunk of n touches
 * 1 + (B - 1) / n of them in the mean. */
double path_estimate_burst_packets(const struct path_estimate *estimate, uint32_t chunk_packets);
/* Bits a second that arrive while the path is busy; 0: not known yet. */
double path_estimate_rate_bps(const struct path_estimate *estimate);

/* ---- scheme entry ---------------------------------------------------------------------------------- */

/*
 * One entry of the table of schemes (schemes/scheme_table.c): all that anybody outside the
 * scheme's own folder knows of it.
 */

struct scheme_entry {
    struct lh_model_entry shown; /* name, help line, machines */
    const struct model_predictor *predictor;

    /* The flag by which a peer announces that it can send by the machines (enum wire_announcement); 0: each
     * peer can. */
    uint16_t announced;
    /* What `auto` weighs, the plainest first, ended by NULL: "ec:mds,k=8,m=2". NULL: `auto` does not choose
     * the scheme. */
    const char *const *automatic;
    bool code_is_optional; /* without k it sends no parity */

    /* Parameters, as the model reads them: those of the machines, and others that only the model has. All
     * of it NULL: the text is what the machines' parse() takes, and the model has no use for it. */
    const char *parameters; /* "alpha and rto": for messages */
    void (*defaults)(struct lh_model_scheme *scheme);
    /* False: the key is not one of the scheme's. Else *failed is 0, -LH_EINVAL or -LH_ERANGE. */
    bool (*take)(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed);
    void (*format)(const struct lh_model_scheme *scheme, struct model_text *text);

    /* What the planner weighs: parameters with which the scheme comes into question, into out, which has
     * room for SCHEME_CANDIDATES_MAX; returns their number. Where loss comes in bursts it asks a second
     * time, unspread: a code whose submessages are not interleaved. NULL: the planner does not choose it.
     * */
    uint32_t (*candidates)(bool unspread, struct lh_model_scheme *out);
    uint32_t
        planner_rank; /* of choices that are equal otherwise, the planner takes the one of lowest rank */
    /* Its times are those of a message that no other follows at once: in a stream it repairs otherwise. */
    bool for_ends;
    /* Data that one core encodes a second. NULL: nothing is encoded. */
    double (*encode_rate)(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);
};

#define SCHEME_CANDIDATES_MAX 32u

/* ---- collective ------------------------------------------------------------------------------------ */

/* Collectives as rounds of messages that wait for each other (SDR-RDMA paper, appendix C). */

/* The path of one of its messages. -LH_EINVAL, -LH_ERANGE. */
int model_collective_path(const struct lh_model_path *path, enum lh_model_collective collective,
                          uint32_t datacenters, struct lh_model_path *message);
/* Rounds, each as long as a message, that the longest chain of dependent messages has. */
uint32_t model_collective_rounds(enum lh_model_collective collective, uint32_t datacenters);
/* Seconds until the last datacenter is done. ready: 2 * datacenters numbers of scratch. */
double model_collective_sample(const struct model_prediction *prediction,
                               enum lh_model_collective collective, uint32_t datacenters,
                               struct lh_prng *prng, uint8_t *cells, double *ready);

#endif
