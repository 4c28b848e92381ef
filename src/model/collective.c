/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/collective.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"

#define DATACENTERS_MAX 4096u /* all-to-all draws a message for each pair */

static uint32_t tree_height(uint32_t datacenters)
{
    uint32_t height = 0;
    while (((uint64_t)1 << height) < datacenters)
        height++;
    return height;
}

uint32_t model_collective_rounds(enum lh_model_collective collective, uint32_t datacenters)
{
    switch (collective) {
    case LH_MODEL_RING_ALLREDUCE:
        return 2 * datacenters - 2;
    case LH_MODEL_TREE_ALLREDUCE:
        return 2 * tree_height(datacenters);
    case LH_MODEL_ALL_TO_ALL:
        break;
    }
    return datacenters - 1;
}

int model_collective_path(const struct lh_model_path *path, enum lh_model_collective collective,
                          uint32_t datacenters, struct lh_model_path *message)
{
    if ((unsigned)collective > LH_MODEL_ALL_TO_ALL)
        return lh_fail(LH_EINVAL, "collective %d is none of enum lh_model_collective", (int)collective);
    if (datacenters < 2 || datacenters > DATACENTERS_MAX)
        return lh_fail(LH_ERANGE, "collective of %u datacenters: out of range (2 to %u)", datacenters,
                       DATACENTERS_MAX);
    *message = *path;
    if (collective != LH_MODEL_TREE_ALLREDUCE) /* a part for each; what is no size at all stays so */
        message->message_bytes =
            path->message_bytes / datacenters + (path->message_bytes % datacenters != 0);
    if (path->message_bytes >> 63)
        message->message_bytes = path->message_bytes;
    return 0;
}

struct run {
    const struct model_prediction *prediction;
    struct lh_prng *prng;
    uint8_t *cells;
    uint32_t datacenters;
    double *ready; /* of each datacenter */
    double *next;
};

static double message(const struct run *run)
{
    return run->prediction->predictor->draw(run->prediction, run->prng, run->cells);
}

/* T(i, r) = max(T(i - d, r - 1), T(i, r - 1)) + t: everyone receives from the one d before. */
static void shift_round(struct run *run, uint32_t distance)
{
    for (uint32_t i = 0; i < run->datacenters; i++) {
        uint32_t from = (i + run->datacenters - distance) % run->datacenters;
        run->next[i] = fmax(run->ready[from], run->ready[i]) + message(run);
    }
    double *ready = run->ready;
    run->ready = run->next;
    run->next = ready;
}

/* A binomial tree with root 0: pairs at this distance; both are busy until the message is there. */
static void tree_round(struct run *run, uint32_t distance)
{
    for (uint64_t parent = 0; parent + distance < run->datacenters; parent += 2 * (uint64_t)distance) {
        double *one = &run->ready[parent];
        double *other = &run->ready[parent + distance];
        *one = *other = fmax(*one, *other) + message(run);
    }
}

double model_collective_draw(const struct model_prediction *prediction, enum lh_model_collective collective,
                             uint32_t datacenters, struct lh_prng *prng, uint8_t *cells, double *ready)
{
    struct run run = {prediction, prng, cells, datacenters, ready, ready + datacenters};
    const uint32_t rounds = model_collective_rounds(collective, datacenters);
    for (uint32_t i = 0; i < datacenters; i++)
        ready[i] = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t up = rounds / 2; /* rounds towards the root, then as many back */
        if (collective == LH_MODEL_TREE_ALLREDUCE)
            tree_round(&run, (uint32_t)1 << (round < up ? round : rounds - 1 - round));
        else
            shift_round(&run, collective == LH_MODEL_RING_ALLREDUCE ? 1 : round + 1);
    }
    double last = 0;
    for (uint32_t i = 0; i < datacenters; i++)
        last = fmax(last, run.ready[i]);
    assert(last > 0);
    return last;
}
