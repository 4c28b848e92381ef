/*
 * collective_measure.h - a collective by its kind: data, warm-up, measurement and check of the results at one
 * size.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_COLLECTIVE_COLLECTIVE_MEASURE_H
#define LH_CLI_COLLECTIVE_COLLECTIVE_MEASURE_H

#include <longhaul/collective.h>

/* ---- kind ------------------------------------------------------------------------------------------ */

/*
 * The collectives that 'longhaul collective' measures: their buffers, and what each element of the
 * result is made of.
 */

struct cli_kind {
    const char *name; /* as of lh_collective_schedule() */
    bool reduces, rooted;
    bool in_parts, out_parts; /* a part per rank there, else one */
    bool in_root, out_root;   /* only the root has it */
    bool uneven;              /* a v-variant */
    bool same;                /* all ranks get the same */
    bool no_data;
};

/* One call of a collective. */
struct cli_call {
    const struct cli_kind *kind;
    uint32_t rank, ranks, root;
    /* elements of a part, or of the whole where there are no parts; of a v-variant, whose parts have 1 to
     * `ranks` times as many, of the smallest */
    size_t count;
    enum lh_type type;
    enum lh_reduction reduction;
    bool encoded; /* sums may be of encoded tensors: other roundings */
};

/* NULL: no such collective. */
const struct cli_kind *cli_kind_find(const char *name);
/* The name that is meant by "all_reduce", "AllReduce", "all_reduce_perf", "allredcue", "bcast"; or NULL. */
const char *cli_kind_close(const char *typed);
/* "allreduce, reduce, ..." */
const char *cli_kind_names(void);

/* Elements of the buffers of this rank. */
size_t cli_call_in(const struct cli_call *call);
size_t cli_call_out(const struct cli_call *call);
/* Elements of the largest buffer of any rank: the size of the table is that many. */
size_t cli_call_total(const struct cli_call *call);
/* Largest count whose total is at most `elements`. */
size_t cli_call_count(const struct cli_call *call, size_t elements);
/* Elements of a row with a count of one: fewer are nothing for somebody. */
size_t cli_call_elements_min(const struct cli_call *call);
/* What nccl-tests multiplies size/time by, to get what a link carries. */
double cli_call_bus_factor(const struct cli_call *call);

/* ---- measure --------------------------------------------------------------------------------------- */

#define CLI_COLLECTIVE_ITERATIONS_MAX 100000u

struct cli_measure {
    struct lh_group *group;
    struct lh_collective_options options;
    uint32_t iterations, warmup;
    void *in, *out;   /* large enough for the call */
    double *times_s;  /* one of each iteration */
    double *others_s; /* likewise */
};

struct cli_measured {
    const char *schedule; /* that ran, a literal */
    double mean_s, p50_s, p99_s;
    uint64_t wrong;       /* elements, at all ranks, of two runs; but for what is missing */
    double missing_share; /* of the results' bytes, mean of ranks and iterations */
};

/* All ranks call it, and get the same. An iteration begins with a barrier, which is not measured; its time is
 * the mean over the ranks of that from the call to the end. CLI_PROCEED, or the exit status after reporting
 * why. */
int cli_measure(const struct cli_measure *measure, const struct cli_call *call,
                struct cli_measured *measured);

/* ---- data ------------------------------------------------------------------------------------------ */

/*
 * What ranks give to a collective, by rank and element, and whether the result is right: each
 * element of integers exactly, of floats within the rounding of any order of summation.
 */

/* Fills this rank's input; of a broadcast, the root's `out`. out gets bytes that no result has. */
void cli_data_fill(const struct cli_call *call, void *in, void *out);
/* Number of wrong elements of this rank's result. missing: some of it is, so that elements may be 0, and
 * sums are not compared. */
uint64_t cli_data_check(const struct cli_call *call, const void *out, bool missing);

#endif
