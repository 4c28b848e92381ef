/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/plan.h>

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/binomial.h"
#include "model/longhaul_timing.h"
#include "plan/plan_list.h"
#include "schemes/scheme_table.h"

#define SCHEMES_MAX (1 + 2 * SCHEME_CANDIDATES_MAX)
#define CERTAIN     (1 - 1e-12) /* of messages: the others end at the deadline */
#define PER_S       1e6         /* a deadline is a whole number of microseconds */

struct weighed {
    struct lh_plan_choice choice;
    struct lh_plan_deadline deadline;
};

/* Of the messages that are to keep to what may be missing; 0: the mean is. */
static double share_of(enum lh_plan_by by)
{
    static const double shares[] = {
        [LH_PLAN_BY_MEAN] = 0, [LH_PLAN_BY_P50] = 0.5, [LH_PLAN_BY_P99] = 0.99, [LH_PLAN_BY_P999] = 0.999};
    return shares[by];
}

/* Without a code, and with those that the planner considers for messages that have to be whole. */
static uint32_t list_schemes(struct lh_model_scheme out[SCHEMES_MAX])
{
    static const enum lh_model_kind kinds[] = {LH_MODEL_EC_XOR, LH_MODEL_EC_MDS};
    struct lh_model_scheme codes[SCHEME_CANDIDATES_MAX];
    uint32_t count = 0;
    out[count++] = (struct lh_model_scheme){.kind = LH_MODEL_BOUNDED};
    for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        uint32_t listed = plan_list_find(scheme_table(), kinds[kind])->candidates(false, codes);
        for (uint32_t i = 0; i < listed; i++)
            out[count++] = (struct lh_model_scheme){.kind = LH_MODEL_BOUNDED,
                                                    .k = codes[i].k,
                                                    .m = codes[i].m,
                                                    .xor_code = kinds[kind] == LH_MODEL_EC_XOR};
    }
    assert(count <= SCHEMES_MAX);
    return count;
}

/* A reordering window behind the last packet, in each size of message: what ends by itself is not cut off. */
static int find_deadline(const struct lh_plan_question *question, struct lh_model_path *path,
                         struct weighed *of)
{
    struct lh_model_scheme *scheme = &of->deadline.scheme;
    double deadline_s = 0;
    for (uint32_t i = 0; i < question->sizes_count; i++) {
        struct lh_model_times times;
        double settled_s;
        path->message_bytes = question->sizes[i].message_bytes;
        int failed = lh_model_predict(path, scheme, &times);
        if (!failed)
            failed = lh_model_quantile(path, scheme, CERTAIN, &settled_s);
        if (failed)
            return failed;
        double window_s =
            path->reorder_window_s > 0 ? path->reorder_window_s : MODEL_WINDOW_RTTS * path->rtt_s;
        settled_s = fmax(settled_s, times.ideal_s + window_s);
        of->deadline.wait_s = fmax(of->deadline.wait_s, settled_s - times.ideal_s);
        deadline_s = fmax(deadline_s, settled_s);
    }
    scheme->deadline_s = ceil(deadline_s * PER_S) / PER_S;
    return 0;
}

/* At most that share is missing in this share of the messages; NaN: nobody knows. Nothing where they
 * are whole; else without a code packets are lost one by one. */
static double missing_quantile(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                               const struct lh_model_times *times, double share)
{
    double packets = ceil((double)path->message_bytes / path->mtu_bytes);
    if (1 - times->p_fallback >= share)
        return 0;
    if (scheme->k > 0 || path->burst_packets > 1)
        return NAN;
    return model_binomial_quantile((1 - times->delivered) * packets, packets, share) / packets;
}

/* Whether each size keeps to what may be missing. */
static int add_missing(const struct lh_plan_question *question, struct lh_model_path *path, double allowed,
                       struct weighed *of, bool *keeps)
{
    struct lh_plan_deadline *sum = &of->deadline;
    double share = share_of(question->by), weights = 0;
    *keeps = true;
    for (uint32_t i = 0; i < question->sizes_count; i++) {
        struct lh_model_times times;
        double weight = question->sizes[i].weight;
        path->message_bytes = question->sizes[i].message_bytes;
        int failed = lh_model_predict(path, &sum->scheme, &times);
        if (failed)
            return failed;
        double rare = missing_quantile(path, &sum->scheme, &times, 0.999);
        double missing =
            share > 0 ? missing_quantile(path, &sum->scheme, &times, share) : 1 - times.delivered;
        *keeps = *keeps && missing <= allowed; /* not where it is unknown */
        sum->missing += weight * (1 - times.delivered);
        sum->missing_p999 = isnan(rare) || rare > sum->missing_p999 ? rare : sum->missing_p999;
        sum->whole += weight * (1 - times.p_fallback);
        weights += weight;
    }
    sum->missing /= weights;
    sum->whole /= weights;
    return 0;
}

/* False: more would be missing, or a limit is exceeded. */
static bool weigh(const struct lh_plan_question *question, const struct lh_model_scheme *scheme,
                  uint64_t chunk_bytes, double allowed, struct weighed *of)
{
    struct lh_model_path path = question->link;
    bool keeps = false;
    path.chunk_bytes = chunk_bytes;
    *of = (struct weighed){.deadline = {.scheme = *scheme, .chunk_bytes = chunk_bytes}};
    of->deadline.scheme.timing = question->timing;
    int failed = find_deadline(question, &path, of);
    if (!failed)
        failed = add_missing(question, &path, allowed, of, &keeps);
    if (!failed)
        failed = lh_plan_weigh(question, &of->deadline.scheme, chunk_bytes, &of->choice);
    of->deadline.seconds = of->choice.seconds;
    of->deadline.times_ideal = of->choice.times_ideal;
    of->deadline.overhead = of->choice.overhead;
    return !failed && keeps && of->choice.breaks == 0;
}

static int check(const struct lh_plan_question *question, double missing, const uint64_t *chunks,
                 uint32_t count)
{
    const struct lh_model_scheme simplest = plan_list_simplest(scheme_table());
    struct lh_plan_choice choice;
    if (!(missing > 0) || !(missing < 1))
        return lh_fail(LH_ERANGE, "a missing share of %g: out of range (above 0 to below 1)", missing);
    if (question->link.chunk_bytes == 0 && question->link.loss_of_chunk)
        return lh_fail(LH_EINVAL, "a loss of chunks says nothing about chunks of another size; give the "
                                  "size of a chunk too, or the loss of packets");
    return lh_plan_weigh(question, &simplest, chunks[count - 1], &choice);
}

/* Of those that are as fast as the fastest, the cheapest. */
static const struct weighed *best_of(const struct weighed *found, uint32_t count)
{
    const struct weighed *best = NULL;
    double fastest = INFINITY;
    for (uint32_t i = 0; i < count; i++)
        fastest = fmin(fastest, found[i].choice.times_ideal);
    for (uint32_t i = 0; i < count; i++)
        if (found[i].choice.times_ideal <= fastest * (1 + LH_PLAN_TIE) &&
            (!best || plan_list_is_cheaper(&found[i].choice, &best->choice)))
            best = &found[i];
    return best;
}

int lh_plan_deadline(const struct lh_plan_question *question, double missing,
                     struct lh_plan_deadline *deadline)
{
    struct lh_model_scheme schemes[SCHEMES_MAX];
    struct weighed found[PLAN_CHUNKS * SCHEMES_MAX];
    uint64_t chunks[PLAN_CHUNKS];
    uint32_t chunks_count = plan_list_chunks(question, chunks), count = 0;
    int failed = check(question, missing, chunks, chunks_count);
    if (failed)
        return failed;
    uint32_t schemes_count = list_schemes(schemes);
    for (uint32_t i = 0; i < chunks_count; i++)
        for (uint32_t j = 0; j < schemes_count; j++)
            count += weigh(question, &schemes[j], chunks[i], missing, &found[count]);
    if (count == 0)
        return lh_fail(LH_ERANGE, "more than %g would be missing with each code within the limits",
                       missing);
    *deadline = best_of(found, count)->deadline;
    return 0;
}
