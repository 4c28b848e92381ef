/*
 * allreduce.c - sums a vector over the ranks that a launcher starts, on this machine or many:
 *
 *   longhaul run -n 4 -- allreduce [BYTES [ROUNDS]]
 *   mpirun -n 4 allreduce            torchrun, srun and flux run likewise
 *
 * Ranks meet by what the launcher has put into their environment (lh_group_create_env(3)). A program whose
 * ranks meet in a way of its own gives lh_group_create(3) a function that exchanges bytes among them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/collective.h>
#include <longhaul/error.h>
#include <longhaul/launch.h>

#include <stdio.h>
#include <stdlib.h>

static int sum(struct lh_group *group, const float *in, float *out, size_t count, lh_time *elapsed_ns)
{
    struct lh_collective *op;
    struct lh_collective_result result;
    int error = lh_allreduce(group, in, out, count, LH_F32, LH_SUM, NULL, &op);
    if (error)
        return error;
    error = lh_collective_wait(op, LH_TIME_NEVER, &result);
    lh_collective_free(op);
    *elapsed_ns = result.ended_ns - result.started_ns;
    if (!error && result.error)
        error = lh_error_set(result.error, result.message);
    return error;
}

static int rounds(struct lh_group *group, size_t count, unsigned number)
{
    uint32_t rank = lh_group_rank(group), ranks = lh_group_size(group);
    float *in = malloc(count * sizeof *in), *out = malloc(count * sizeof *out);
    int error = in && out ? 0 : lh_error_set(LH_ENOMEM, "no memory for two vectors");
    for (size_t i = 0; i < count && !error; i++)
        in[i] = (float)(rank + i % 1000);
    for (unsigned n = 0; n < number && !error; n++) {
        lh_time elapsed_ns = 0;
        size_t wrong = 0;
        error = sum(group, in, out, count, &elapsed_ns);
        for (size_t i = 0; i < count; i++)
            wrong += out[i] != (float)(ranks * (ranks - 1) / 2 + ranks * (i % 1000));
        if (!error && rank == 0)
            printf("%zu bytes over %u ranks in %.3f ms, %zu wrong\n", count * sizeof *in, ranks,
                   (double)elapsed_ns / 1e6, wrong);
    }
    free(in);
    free(out);
    return error;
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1 << 20;
    unsigned number = argc > 2 ? (unsigned)atoi(argv[2]) : 3;
    struct lh_group *group;
    int error = lh_group_create_env(NULL, &group);
    if (!error) {
        error = rounds(group, bytes / sizeof(float), number);
        if (error)
            fprintf(stderr, "allreduce: rank %u: %s\n", lh_group_rank(group), lh_last_error());
        lh_group_destroy(group);
    } else {
        fprintf(stderr, "allreduce: %s\n", lh_last_error());
    }
    return error != 0;
}
