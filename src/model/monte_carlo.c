/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/monte_carlo.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "model/collective.h"

struct work {
    const struct model_job *job;
    struct lh_prng prng;
    double *results;
    size_t count;
    atomic_size_t next_block;
    atomic_bool no_memory;
};

static void *take_blocks(void *argument)
{
    struct work *work = argument;
    size_t bytes = work->job->scratch_bytes;
    void *scratch = calloc(1, bytes ? bytes : 1);
    if (!scratch) {
        atomic_store(&work->no_memory, true);
        return NULL;
    }
    for (;;) { /* until all blocks are taken */
        size_t block = atomic_fetch_add(&work->next_block, 1);
        if (block > (work->count - 1) / MODEL_BLOCK)
            break;
        struct lh_prng prng = lh_prng_fork(&work->prng, block);
        size_t end = (block + 1) * MODEL_BLOCK;
        for (size_t i = block * MODEL_BLOCK; i < end && i < work->count; i++)
            work->results[i] = work->job->draw(work->job->context, &prng, scratch);
    }
    free(scratch);
    return NULL;
}

int model_monte_carlo(const struct model_job *job, uint64_t seed, uint32_t threads, double *results,
                      size_t count)
{
    if (threads < 1 || threads > MODEL_THREADS_MAX)
        return lh_fail(LH_EINVAL, "%u threads cannot draw samples; use 1 to %u", threads,
                       MODEL_THREADS_MAX);
    if (count == 0 || count > SIZE_MAX / sizeof *results - MODEL_BLOCK || !results)
        return lh_fail(LH_EINVAL,
                       "%zu samples cannot be drawn; at least 1 and a buffer for them are needed", count);
    struct work work = {.job = job, .results = results, .count = count};
    lh_prng_seed(&work.prng, seed);
    pthread_t others[MODEL_THREADS_MAX];
    uint32_t started = 0;
    while (started + 1 < threads && pthread_create(&others[started], NULL, take_blocks, &work) == 0)
        started++;
    take_blocks(&work);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    /* Others may have done what one without memory left, but then the next call would not. */
    if (atomic_load(&work.no_memory))
        return lh_fail(LH_ENOMEM,
                       "no memory for %zu bytes of scratch a thread; use fewer threads, or spread "
                       "fewer submessages over a block",
                       job->scratch_bytes);
    return 0;
}

/* ---- what is drawn ----------------------------------------------------------------------------------- */

static double draw_message(const void *context, struct lh_prng *prng, void *scratch)
{
    const struct model_prediction *prediction = context;
    return prediction->predictor->draw(prediction, prng, scratch);
}

int model_sample(const struct model_prediction *prediction, uint64_t seed, uint32_t threads,
                 double *seconds, size_t count)
{
    const struct model_job job = {draw_message, prediction, prediction->cells};
    return model_monte_carlo(&job, seed, threads, seconds, count);
}

struct collective {
    const struct model_prediction *prediction;
    enum lh_model_collective kind;
    uint32_t datacenters;
};

static double draw_collective(const void *context, struct lh_prng *prng, void *scratch)
{
    const struct collective *collective = context;
    double *ready = scratch;
    uint8_t *cells = (uint8_t *)(ready + 2 * (size_t)collective->datacenters);
    return model_collective_draw(collective->prediction, collective->kind, collective->datacenters, prng,
                                 cells, ready);
}

int model_sample_collective(const struct model_prediction *prediction, enum lh_model_collective kind,
                            uint32_t datacenters, uint64_t seed, uint32_t threads, double *seconds,
                            size_t count)
{
    const struct collective collective = {prediction, kind, datacenters};
    const struct model_job job = {draw_collective, &collective,
                                  2 * (size_t)datacenters * sizeof(double) + prediction->cells};
    return model_monte_carlo(&job, seed, threads, seconds, count);
}
