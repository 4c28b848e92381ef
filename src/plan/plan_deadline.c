/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/plan.h>

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "plan/plan_list.h"

/* Of the messages that are to keep to what may be missing; 0: the mean is. */
static double share_of(enum lh_plan_by by)
{
    static const double shares[] = {
        [LH_PLAN_BY_MEAN] = 0, [LH_PLAN_BY_P50] = 0.5, [LH_PLAN_BY_P99] = 0.99, [LH_PLAN_BY_P999] = 0.999};
    return shares[by];
}

static double measure(enum lh_plan_by by, const struct lh_model_bounded *bounded)
{
    switch (by) {
    case LH_PLAN_BY_P50:
        return bounded->p50_s;
    case LH_PLAN_BY_P99:
        return bounded->p99_s;
    case LH_PLAN_BY_P999:
        return bounded->p999_s;
    case LH_PLAN_BY_MEAN:
        break;
    }
    return bounded->mean_s;
}

/* One size of the mix, with its weight, into the sums; ideal_s is its time without loss. */
static int add_size(const struct lh_plan_question *question, const struct lh_model_path *path,
                    double missing, double ideal_s, double weight, struct lh_plan_deadline *sum)
{
    struct lh_model_bounded bounded;
    double deadline_s = 0;
    int failed = lh_model_deadline(path, &sum->scheme, missing, share_of(question->by), &deadline_s);
    if (!failed)
        failed = lh_model_bounded(path, &sum->scheme, deadline_s, &bounded);
    if (failed)
        return failed;
    double seconds = measure(question->by, &bounded);
    sum->seconds += weight * seconds;
    sum->times_ideal += weight * seconds / ideal_s;
    sum->wait_s = fmax(sum->wait_s, deadline_s - ideal_s);
    sum->missing += weight * bounded.missing;
    sum->missing_p999 = fmax(sum->missing_p999, bounded.missing_p999);
    sum->whole += weight * bounded.whole;
    sum->overhead += weight * bounded.overhead_bytes / (double)path->message_bytes;
    return 0;
}

static int weigh(const struct lh_plan_question *question, uint64_t chunk_bytes, double missing,
                 struct lh_plan_deadline *deadline)
{
    struct lh_plan_deadline sum = {.scheme = {.kind = LH_MODEL_SR_NACK}, .chunk_bytes = chunk_bytes};
    struct lh_model_path path = question->link;
    double weights = 0;
    path.chunk_bytes = chunk_bytes;
    for (uint32_t i = 0; i < question->sizes_count; i++)
        weights += question->sizes[i].weight;
    for (uint32_t i = 0; i < question->sizes_count; i++) {
        struct lh_model_times times;
        path.message_bytes = question->sizes[i].message_bytes;
        int failed = lh_model_predict(&path, &sum.scheme, &times);
        if (!failed)
            failed = add_size(question, &path, missing, times.ideal_s, question->sizes[i].weight / weights,
                              &sum);
        if (failed)
            return failed;
    }
    if (question->link.burst_packets > 1)
        sum.missing_p999 = NAN;
    *deadline = sum;
    return 0;
}

int lh_plan_deadline(const struct lh_plan_question *question, double missing,
                     struct lh_plan_deadline *deadline)
{
    const struct lh_model_scheme simplest = {.kind = LH_MODEL_SR_NACK};
    struct lh_plan_deadline found[PLAN_CHUNKS];
    struct lh_plan_choice choice;
    uint64_t chunks[PLAN_CHUNKS];
    uint32_t chunks_count = plan_list_chunks(question, chunks), count = 0;
    double fastest = INFINITY;
    if (question->link.chunk_bytes == 0 && question->link.loss_of_chunk)
        return lh_fail(LH_EINVAL, "a loss of chunks says nothing about chunks of another size; give the "
                                  "size of a chunk too, or the loss of packets");
    /* Checks the question. */
    int failed = lh_plan_weigh(question, &simplest, chunks[chunks_count - 1], &choice);
    if (failed)
        return failed;
    /* Larger chunks may be lost too often to be weighed. The smallest come last. */
    for (uint32_t i = 0; i < chunks_count; i++) {
        failed = weigh(question, chunks[i], missing, &found[count]);
        if (!failed)
            fastest = fmin(fastest, found[count++].times_ideal);
    }
    if (failed)
        return failed;
    assert(count > 0);
    uint32_t best = 0;
    while (found[best].times_ideal > fastest * (1 + LH_PLAN_TIE))
        best++;
    *deadline = found[best];
    return 0;
}
