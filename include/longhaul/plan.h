/*
 * plan.h - which scheme brings messages over a link soonest, within limits, and what it costs.
 *
 * The planner weighs the schemes that Longhaul has, with a bounded list of parameters, by the model
 * (longhaul/model.h), and takes the fastest that keeps to the limits. Choices within LH_PLAN_TIE of the
 * fastest count as equally fast; of those it takes the one that sends least, then the one that needs the
 * fewest cores, then the one with the largest chunks. docs/planning.md has examples.
 *
 * Several sizes with weights are a mix. What is compared is then the weighted mean of each size's time over
 * its own ideal, so that the largest size does not decide alone.
 *
 * The calls may come from any thread and allocate nothing. Those that return int return 0, or -LH_EINVAL or
 * -LH_ERANGE with the value and the remedy in lh_last_error().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_PLAN_H
#define LONGHAUL_PLAN_H

#include <longhaul/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Slower by this share of the fastest is as fast. */
#define LH_PLAN_TIE 0.01

#define LH_PLAN_SIZES_MAX   16
#define LH_PLAN_CHOICES_MAX 512
/* No choice. */
#define LH_PLAN_NONE UINT32_MAX

/* What is to be small: the mean completion time, or what half, 99 % or 99.9 % of the messages keep to. */
enum lh_plan_by { LH_PLAN_BY_MEAN, LH_PLAN_BY_P50, LH_PLAN_BY_P99, LH_PLAN_BY_P999 };

struct lh_plan_size {
    uint64_t message_bytes;
    double weight; /* above 0; only the ratios count */
};

struct lh_plan_question {
    struct lh_model_path link; /* message_bytes is not read; chunk_bytes 0: the planner chooses it */
    struct lh_plan_size sizes[LH_PLAN_SIZES_MAX];
    uint32_t sizes_count;
    enum lh_plan_by by;
    enum lh_model_timing timing; /* whose machines are counted, whatever a scheme says */
    /* Most that may be sent beside the messages (parity and repeats, in the mean), as a share of them;
     * compared to a tenth of a percent. INFINITY: no limit. */
    double max_overhead;
    double max_cores; /* most that may be busy encoding, at line rate; INFINITY: no limit */
    /* Data that one core encodes: ec:mds with up to 8 parity chunks (each 8 more take as long again), ec:xor.
     */
    double mds_bytes_per_s;
    double xor_bytes_per_s;
};

/* Limits that a choice may break, as bits. */
enum lh_plan_limit {
    LH_PLAN_LIMIT_OVERHEAD = 1,
    LH_PLAN_LIMIT_CORES = 2,
    LH_PLAN_LIMIT_MODEL = 4, /* nearly every chunk would be lost; its figures are 0 */
};

struct lh_plan_choice {
    struct lh_model_scheme scheme;
    uint64_t chunk_bytes;
    double seconds;     /* by what was asked for; in a mix the weighted mean */
    double times_ideal; /* that over what it would be without loss; what is compared */
    double overhead;    /* bytes sent beside the messages, as a share of them */
    double cores;       /* that encode at line rate; 0 without erasure code */
    double p_fallback;  /* chance that parity is not enough for a message */
    uint32_t breaks;    /* enum lh_plan_limit; 0: it keeps to all */
};

/* Everything that was weighed, and places in that list. About 60 KiB. */
struct lh_plan {
    uint32_t best;      /* LH_PLAN_NONE: nothing keeps to the limits */
    uint32_t runner_up; /* the best that repairs the other way, by repeats or by parity; LH_PLAN_NONE */
    uint32_t unlimited; /* the best without limits */
    uint32_t count;
    struct lh_plan_choice choices[LH_PLAN_CHOICES_MAX];
};

/* No sizes, no limits, by the mean; packets of 4096 bytes; encoding as fast as docs/erasure-codes.md measured
 * it. The bandwidth, the RTT and the loss are 0. */
LH_API void lh_plan_init(struct lh_plan_question *question);
/* One scheme of the caller's own, with chunks of that size. LH_PLAN_LIMIT_MODEL does not happen: it is
 * -LH_ERANGE. */
LH_API int lh_plan_weigh(const struct lh_plan_question *question, const struct lh_model_scheme *scheme,
                         uint64_t chunk_bytes, struct lh_plan_choice *choice);
/* Weighs the list. That nothing keeps to the limits is no error. */
LH_API int lh_plan_make(const struct lh_plan_question *question, struct lh_plan *plan);

/* Selective repeat that ends at a deadline and hands over what has come, for messages that may be incomplete.
 * No scheme of Longhaul does this; it is what one would bring. */
struct lh_plan_deadline {
    struct lh_model_scheme scheme; /* what repeats until then */
    uint64_t chunk_bytes;
    double seconds;     /* by what was asked for; in a mix the weighted mean */
    double times_ideal; /* that over what it would be without loss */
    double wait_s;      /* the deadline is so long after that; in a mix, the most */
    double missing;     /* share of a message in the mean */
    double
        missing_p999; /* no more in 99.9 % of the messages; of the size that misses most; NaN with bursts */
    double whole;     /* share of the messages that miss nothing */
    double overhead;  /* bytes that are repeated, as a share of the messages */
};

/* The earliest deadline by which no more than `missing` (above 0, below 1) of a message is missing, by the
 * question's measure: in the mean, or in that share of the messages (-LH_EINVAL with bursts); and the chunks
 * with which that is soonest. Limits are not looked at. */
LH_API int lh_plan_deadline(const struct lh_plan_question *question, double missing,
                            struct lh_plan_deadline *deadline);

/* Bytes that lh_plan_verdict needs at most, with the final zero. */
#define LH_PLAN_VERDICT_MAX 2048

/* What lh_plan_make chose and why, in sentences, a line each; returns out. Cuts at size. */
LH_API char *lh_plan_verdict(const struct lh_plan_question *question, const struct lh_plan *plan, char *out,
                             size_t size);

#ifdef __cplusplus
}
#endif
#endif
