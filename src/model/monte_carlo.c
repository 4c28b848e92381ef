/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/monte_carlo.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <longhaul/model.h>
#include <longhaul/types.h>

#include "base/error.h"
#include "model/predictor.h"

/* ---- monte carlo ----------------------------------------------------------------------------------- */

#define MODEL_THREADS_MAX 256u
#define MODEL_BLOCK       128u

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
            work->results[i] = work->job->sample(work->job->context, &prng, scratch);
    }
    free(scratch);
    return NULL;
}

int model_monte_carlo(const struct model_job *job, uint64_t seed, uint32_t threads, double *results,
                      size_t count)
{
    if (threads < 1 || threads > MODEL_THREADS_MAX)
        return lh_fail(LH_EINVAL, "%u threads: out of range (1 to %u)", threads, MODEL_THREADS_MAX);
    if (count == 0 || count > SIZE_MAX / sizeof *results - MODEL_BLOCK || !results)
        return lh_fail(LH_EINVAL, "%zu samples: out of range (at least 1, with a buffer)", count);
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
                       "no memory for %zu bytes of scratch per thread (use fewer threads, or spread fewer "
                       "submessages over a block)",
                       job->scratch_bytes);
    return 0;
}

/* ---- what is drawn ----------------------------------------------------------------------------------- */

static double sample_message(const void *context, struct lh_prng *prng, void *scratch)
{
    const struct model_prediction *prediction = context;
    return prediction->predictor->sample(prediction, prng, scratch);
}

int model_sample(const struct model_prediction *prediction, uint64_t seed, uint32_t threads,
                 double *seconds, size_t count)
{
    const struct model_job job = {sample_message, prediction, prediction->cells};
    return model_monte_carlo(&job, seed, threads, seconds, count);
}

struct collective {
    const struct model_prediction *prediction;
    enum lh_model_collective kind;
    uint32_t datacenters;
};

static double sample_collective(const void *context, struct lh_prng *prng, void *scratch)
{
    const struct collective *collective = context;
    double *ready = scratch;
    uint8_t *cells = (uint8_t *)(ready + 2 * (size_t)collective->datacenters);
    return model_collective_sample(collective->prediction, collective->kind, collective->datacenters, prng,
                                   cells, ready);
}

int model_sample_collective(const struct model_prediction *prediction, enum lh_model_collective kind,
                            uint32_t datacenters, uint64_t seed, uint32_t threads, double *seconds,
                            size_t count)
{
    const struct collective collective = {prediction, kind, datacenters};
    const struct model_job job = {sample_collective, &collective,
                                  2 * (size_t)datacenters * sizeof(double) + prediction->cells};
    return model_monte_carlo(&job, seed, threads, seconds, count);
}

/* ---- delay summary --------------------------------------------------------------------------------- */

/* Heap sort: in place, and never worse than n log n. (qsort may allocate, and this room does not.) */
static void sift_down(lh_time *heap, size_t at, size_t count)
{
    for (;;) { /* a level deeper each time */
        size_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && heap[child + 1] > heap[child])
            child++;
        if (heap[at] >= heap[child])
            return;
        lh_time moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

static void sort(lh_time *samples, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sift_down(samples, at, count);
    for (size_t left = count; left-- > 1;) {
        lh_time largest = samples[0];
        samples[0] = samples[left];
        samples[left] = largest;
        sift_down(samples, 0, left);
    }
}

static lh_time mean_distance(const lh_time *samples, size_t count)
{
    lh_time sum = 0;
    for (size_t i = 1; i < count; i++)
        sum += samples[i] > samples[i - 1] ? samples[i] - samples[i - 1] : samples[i - 1] - samples[i];
    return count > 1 ? sum / (count - 1) : 0;
}

/* The smallest sample that at least `percent` of a hundred do not exceed. */
static lh_time rank(const lh_time *sorted, size_t count, size_t percent)
{
    size_t place = (count * percent + 99) / 100;
    assert(place >= 1 && place <= count);
    return sorted[place - 1];
}

struct model_delays model_delays_of(lh_time *samples_ns, size_t count)
{
    struct model_delays spread = {.samples = count};
    lh_time sum = 0;
    if (count == 0)
        return spread;
    spread.jitter_ns = mean_distance(samples_ns, count);
    sort(samples_ns, count);
    for (size_t i = 0; i < count; i++)
        sum += samples_ns[i];
    spread.mean_ns = sum / count;
    spread.minimum_ns = samples_ns[0];
    spread.p50_ns = rank(samples_ns, count, 50);
    spread.p99_ns = rank(samples_ns, count, 99);
    spread.maximum_ns = samples_ns[count - 1];
    return spread;
}

/* ---- summary --------------------------------------------------------------------------------------- */

/* Mean and percentiles of samples, without sorting them all. */

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Puts the value of this rank (from 0) into its place, smaller ones before it: quickselect with a median of
 * three, and equal values on both sides, so that many equal ones do not make it slow. */
static double select_rank(double *values, size_t count, size_t rank)
{
    size_t low = 0;
    size_t high = count - 1;
    while (low < high) { /* each round leaves out a value at least, half of them as a rule */
        size_t middle = low + (high - low) / 2;
        if (values[middle] < values[low])
            swap(&values[middle], &values[low]);
        if (values[high] < values[low])
            swap(&values[high], &values[low]);
        if (values[high] < values[middle])
            swap(&values[high], &values[middle]);
        double pivot = values[middle];
        size_t i = low;
        size_t j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (pivot < values[j])
                j--;
            if (i > j)
                break;
            swap(&values[i], &values[j]);
            i++;
            if (j == 0)
                break;
            j--;
        }
        if (rank <= j)
            high = j;
        else if (rank >= i)
            low = i;
        else
            break;
    }
    return values[rank];
}

/* Nearest rank. share: above 0, below 1. */
static double quantile(double *values, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);
    assert(rank >= 1 && rank <= count);
    return select_rank(values, count, rank - 1);
}

int lh_model_summarize(double *seconds, size_t count, struct lh_model_summary *summary)
{
    if (count == 0 || !seconds)
        return lh_fail(LH_EINVAL, "no samples to summarize (at least 1)");
    double mean = 0;
    double squares = 0;
    for (size_t i = 0; i < count; i++) { /* Welford: no large sums are subtracted */
        if (isnan(seconds[i]))
            return lh_fail(LH_EINVAL, "sample %zu: not a number", i);
        double off = seconds[i] - mean;
        mean += off / (double)(i + 1);
        squares += off * (seconds[i] - mean);
    }
    double n = (double)count;
    *summary = (struct lh_model_summary){
        .mean_s = mean,
        .mean_error_s = count > 1 ? sqrt(squares / (n - 1) / n) : 0,
        .p50_s = quantile(seconds, count, 0.5),
        .p99_s = quantile(seconds, count, 0.99),
        .p999_s = quantile(seconds, count, 0.999),
    };
    assert(summary->p50_s <= summary->p99_s && summary->p99_s <= summary->p999_s);
    return 0;
}
