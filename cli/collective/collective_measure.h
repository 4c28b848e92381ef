/*
 * kind.h - the collectives that 'longhaul collective' measures: their buffers, and what each element of the
 * result is made of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_COLLECTIVE_KIND_H
#define LH_CLI_COLLECTIVE_KIND_H

#include <longhaul/collective.h>

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

/* Element of the result that this rank gets: element *index of rank *source; of a reduction, of each rank. */
void cli_call_source(const struct cli_call *call, size_t element, uint32_t *source, size_t *index);

/* Starts it. A broadcast is of `out`, where the root has its input. */
int cli_call_start(const struct cli_call *call, struct lh_group *group, const void *in, void *out,
                   const struct lh_collective_options *options, struct lh_collective **op);

#endif
