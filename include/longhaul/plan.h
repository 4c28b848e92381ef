/*
 * plan.h - the planner: recommends the fastest scheme for messages over a link, within limits.
 *
 * The planner compares Longhaul's schemes, with a bounded list of parameters, by the model
 * (longhaul/model.h), and picks the fastest choice within the limits. Choices within LH_PLAN_TIE of the
 * fastest tie; the lowest overhead decides, then the fewest cores, then the largest chunks. docs/planning.md
 * has examples.
 *
 * Several sizes with weights are a mix. The planner then compares the weighted mean of each size's time over
 * its own ideal, so that the largest size does not dominate.
 *
 * Any thread may call. The calls allocate nothing. Those that return int return 0, or -LH_EINVAL or
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

/* Choices slower than the fastest by at most this share are ties. */
#define LH_PLAN_TIE 0.01

#define LH_PLAN_SIZES_MAX   16
#define LH_PLAN_CHOICES_MAX 1024
/* Index of no choice. */
#define LH_PLAN_NONE UINT32_MAX

/* The measure to minimize: the mean completion time, or its 50th, 99th or 99.9th percentile. */
enum lh_plan_by { LH_PLAN_BY_MEAN, LH_PLAN_BY_P50, LH_PLAN_BY_P99, LH_PLAN_BY_P999 };

struct lh_plan_size {
    uint64_t message_bytes;
    double weight; /* above 0; only the ratios count */
};

struct lh_plan_question {
    struct lh_model_path link; /* message_bytes is unused; chunk_bytes 0: the planner chooses it */
    struct lh_plan_size sizes[LH_PLAN_SIZES_MAX];
    uint32_t sizes_count;
    enum lh_plan_by by;
    enum lh_model_timing timing; /* overrides that of a scheme */
    /* Maximum mean overhead (parity and retransmissions), as a share of the message bytes, compared in steps
     * of a tenth of a percent. INFINITY: no limit. */
    double max_overhead;
    double max_cores; /* maximum number of encoding cores at line rate; INFINITY: no limit */
    /* Encoding speed of one core: ec:mds with up to 8 parity chunks (each 8 more take the same time again),
     * ec:xor. */
    double mds_bytes_per_s;
    double xor_bytes_per_s;
};

/* Limits that a choice may exceed, as bits. */
enum lh_plan_limit {
    LH_PLAN_LIMIT_OVERHEAD = 1,
    LH_PLAN_LIMIT_CORES = 2,
    LH_PLAN_LIMIT_MODEL = 4, /* nearly every chunk would be lost; the choice's numbers are 0 */
};

struct lh_plan_choice {
    struct lh_model_scheme scheme;
    uint64_t chunk_bytes;
    double seconds;     /* completion time by the question's measure; in a mix the weighted mean */
    double times_ideal; /* seconds over the time without loss; the value compared */
    double overhead;    /* bytes beyond the messages, as a share of the message bytes */
    double cores;       /* cores to encode at line rate; 0 without erasure code */
    double p_fallback;  /* probability that parity does not suffice for a message */
    uint32_t breaks;    /* exceeded limits, enum lh_plan_limit; 0: none */
};

/* All compared choices, and indices into that list. About 60 KiB. */
struct lh_plan {
    uint32_t best; /* LH_PLAN_NONE: no choice is within the limits */
    uint32_t
        runner_up; /* the fastest other scheme with the same chunks within the limits; or LH_PLAN_NONE */
    uint32_t unlimited; /* the best without limits */
    uint32_t count;
    struct lh_plan_choice choices[LH_PLAN_CHOICES_MAX];
};

/* Initializes a question: no sizes, no limits, by the mean; packets of 4096 bytes; encoding speed as measured
 * in docs/erasure-codes.md. Bandwidth, RTT and loss are 0. */
LH_API void lh_plan_init(struct lh_plan_question *question);
/* Evaluates one scheme with chunks of chunk_bytes. -LH_ERANGE: in place of LH_PLAN_LIMIT_MODEL. */
LH_API int lh_plan_weigh(const struct lh_plan_question *question, const struct lh_model_scheme *scheme,
                         uint64_t chunk_bytes, struct lh_plan_choice *choice);
/* Compares all choices. It succeeds even if no choice is within the limits. */
LH_API int lh_plan_make(const struct lh_plan_question *question, struct lh_plan *plan);

/* Bounded completion, for messages that may be incomplete, with Longhaul's timing (docs/planning.md). */
struct lh_plan_deadline {
    struct lh_model_scheme
        scheme; /* LH_MODEL_BOUNDED, with its deadline and, if the loss requires it, a code */
    uint64_t chunk_bytes;
    double seconds;      /* completion time by the question's measure; in a mix the weighted mean */
    double times_ideal;  /* seconds over the time without loss */
    double wait_s;       /* deadline minus the time without loss; in a mix, the maximum */
    double missing;      /* mean share of a message */
    double missing_p999; /* 99.9th percentile, of the size with the maximum; NaN: unknown */
    double whole;        /* share of complete messages */
    double overhead;     /* bytes of parity, as a share of the messages */
};

/* Computes the fastest bounded completion within the limits that leaves at most `missing` (above 0, below 1)
 * of a message: in the mean, or in the share of messages that the question's measure names. Its deadline is
 * one reordering window after the last packet: it cuts off only late packets. Also -LH_ERANGE: every code
 * leaves more missing. */
LH_API int lh_plan_deadline(const struct lh_plan_question *question, double missing,
                            struct lh_plan_deadline *deadline);

/* ---- collectives ------------------------------------------------------------------------------------- */

#define LH_PLAN_SCHEDULES_MAX 6

/* A collective of ranks, distributed evenly over sites, in rank order. */
struct lh_plan_collective_question {
    const char *collective; /* "allreduce", as lh_collective_schedule() */
    const char *schedule;   /* NULL: any */
    uint32_t ranks;         /* 2 to 1024 */
    uint32_t sites;         /* 1 to ranks */
    uint64_t bytes; /* of a rank's input; for broadcast, scatter and all-gather of the whole result; unused
                       for a barrier */
    uint64_t block_bytes; /* maximum of a message */
    /* Paths between ranks of one site, and of two sites; message_bytes and chunk_bytes are unused. Bandwidth:
     * across, that of a pair of sites, shared by all their ranks; inside, that of a rank. */
    struct lh_model_path inside, across;
    double message_s; /* time of a rank per message */
    double sum_bytes_per_s;
    enum lh_plan_by by; /* not LH_PLAN_BY_P999 */
};

struct lh_plan_collective_choice {
    const char *schedule;
    uint64_t block_bytes;
    struct lh_model_scheme inside, across; /* for messages of a block */
    /* Time until the last rank is done; ideal_s: without loss, with the overhead of the schemes. */
    double ideal_s;
    double mean_s, p50_s, p99_s;
};

/* Initializes a question: 2 ranks in one site; inside 10 Gbit/s, 50 us and no loss; messages of at most
 * 256 KiB that cost 10 us; sums of 10 GB/s; by the mean. */
LH_API void lh_plan_collective_init(struct lh_plan_collective_question *question);
/* Returns the bytes of memory that lh_plan_collective() needs for a question; 0: invalid question. */
LH_API size_t lh_plan_collective_memory(const struct lh_plan_collective_question *question);
/* Finds the fastest block size and schemes for each schedule, the best schedule first. *count: number of
 * choices. memory: lh_plan_collective_memory() bytes, aligned as by malloc(). Equal questions get equal
 * answers. -LH_EINVAL, -LH_ERANGE. */
LH_API int lh_plan_collective(const struct lh_plan_collective_question *question, void *memory,
                              struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX],
                              uint32_t *count);

/* Buffer size that suffices for lh_plan_verdict, with the final zero. */
#define LH_PLAN_VERDICT_MAX 2048

/* Formats the recommendation of lh_plan_make and its reasons, one sentence per line, into out[size]; returns
 * out. Truncates at size. */
LH_API char *lh_plan_verdict(const struct lh_plan_question *question, const struct lh_plan *plan, char *out,
                             size_t size);

#ifdef __cplusplus
}
#endif
#endif
