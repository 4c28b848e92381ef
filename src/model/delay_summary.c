/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/delay_summary.h"

#include <assert.h>

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
