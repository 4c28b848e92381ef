/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/event_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/prng.h"

#define EVENTS 500u

struct wheel {
    struct netsim_event_queue queue;
    void *memory;
};

static void wheel_open(struct wheel *wheel, uint32_t events, netsim_time bucket_ps)
{
    struct netsim_arena arena = {0};
    netsim_event_queue_init(&wheel->queue, &arena, events, bucket_ps);
    arena.capacity_bytes = arena.used_bytes;
    arena.used_bytes = 0;
    wheel->memory = aligned_alloc(64, arena.capacity_bytes);
    arena.base = wheel->memory;
    netsim_event_queue_init(&wheel->queue, &arena, events, bucket_ps);
}

static void wheel_close(struct wheel *wheel)
{
    free(wheel->memory);
}

/* What the queue must do, by looking at everything. */
struct model {
    netsim_time at_ps[EVENTS];
    uint64_t order[EVENTS];
    uint64_t orders;
};

static uint32_t model_next(const struct model *model)
{
    uint32_t best = NETSIM_NO_EVENT;
    for (uint32_t e = 0; e < EVENTS; e++) {
        if (model->at_ps[e] == NETSIM_NEVER)
            continue;
        bool sooner = best == NETSIM_NO_EVENT || model->at_ps[e] < model->at_ps[best] ||
                      (model->at_ps[e] == model->at_ps[best] && model->order[e] < model->order[best]);
        if (sooner)
            best = e;
    }
    return best;
}

/* Often the same moment, or just beyond the edge of a window, or very far off. */
static netsim_time sample_span(struct lh_prng *prng, const struct netsim_event_queue *queue)
{
    netsim_time window_ps = (netsim_time)1 << queue->window_shift;
    switch (lh_prng_below(prng, 6)) {
    case 0:
        return 0;
    case 1:
        return lh_prng_below(prng, 40);
    case 2:
        return lh_prng_below(prng, window_ps);
    case 3:
        return window_ps * lh_prng_below(prng, 5) + lh_prng_below(prng, 3);
    case 4:
        return window_ps * (NETSIM_FAR - 2 + lh_prng_below(prng, 4));
    default:
        return lh_prng_below(prng, window_ps * NETSIM_FAR * 3);
    }
}

static void schedule(struct wheel *wheel, struct model *model, uint32_t event, netsim_time at_ps)
{
    netsim_event_schedule(&wheel->queue, event, at_ps);
    model->at_ps[event] = at_ps;
    model->order[event] = model->orders++;
}

static void compare_with_model(uint64_t seed, netsim_time bucket_ps)
{
    struct wheel wheel;
    static struct model model;
    struct lh_prng prng;
    netsim_time now_ps = 0;
    lh_prng_seed(&prng, seed);
    wheel_open(&wheel, EVENTS, bucket_ps);
    model.orders = 0;
    for (uint32_t e = 0; e < EVENTS; e++)
        model.at_ps[e] = NETSIM_NEVER;
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t event = (uint32_t)lh_prng_below(&prng, EVENTS);
        uint64_t what = lh_prng_below(&prng, 10);
        if (what < 5) {
            if (!netsim_event_pending(&wheel.queue, event))
                schedule(&wheel, &model, event, now_ps + sample_span(&prng, &wheel.queue));
        } else if (what == 5) {
            if (netsim_event_pending(&wheel.queue, event)) {
                netsim_event_cancel(&wheel.queue, event);
                model.at_ps[event] = NETSIM_NEVER;
            }
        } else {
            netsim_time limit_ps = now_ps + sample_span(&prng, &wheel.queue);
            netsim_time at_ps = 0;
            uint32_t expected = model_next(&model);
            netsim_time due_ps = expected == NETSIM_NO_EVENT ? NETSIM_NEVER : model.at_ps[expected];
            assert_true(netsim_event_peek(&wheel.queue) == due_ps);
            uint32_t got = netsim_event_next(&wheel.queue, limit_ps, &at_ps);
            if (due_ps > limit_ps) {
                assert_int_equal(got, NETSIM_NO_EVENT);
                now_ps = limit_ps;
            } else {
                assert_int_equal(got, expected);
                assert_true(at_ps == due_ps);
                model.at_ps[expected] = NETSIM_NEVER;
                now_ps = at_ps;
            }
        }
    }
    wheel_close(&wheel);
}

static void like_a_model_that_looks_at_everything(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        compare_with_model(seed, 1);
        compare_with_model(seed, 64);
        compare_with_model(seed, 1000000);
    }
}

static void equal_times_in_the_order_of_scheduling(void **state)
{
    (void)state;
    struct wheel wheel;
    wheel_open(&wheel, 300, 64);
    for (uint32_t e = 0; e < 300; e++)
        netsim_event_schedule(&wheel.queue, (e * 7) % 300, 12345678901);
    for (uint32_t e = 0; e < 300; e++) {
        netsim_time at_ps = 0;
        assert_int_equal(netsim_event_next(&wheel.queue, NETSIM_TIME_MAX, &at_ps), (e * 7) % 300);
        assert_true(at_ps == 12345678901);
    }
    wheel_close(&wheel);
}

static void nothing_beyond_the_limit(void **state)
{
    (void)state;
    struct wheel wheel;
    netsim_time at_ps = 0;
    wheel_open(&wheel, 2, 64);
    netsim_event_schedule(&wheel.queue, 0, 1000);
    assert_int_equal(netsim_event_next(&wheel.queue, 999, &at_ps), NETSIM_NO_EVENT);
    netsim_event_schedule(&wheel.queue, 1, 999);
    assert_int_equal(netsim_event_next(&wheel.queue, 1000, &at_ps), 1);
    assert_int_equal(netsim_event_next(&wheel.queue, 1000, &at_ps), 0);
    assert_int_equal(netsim_event_next(&wheel.queue, NETSIM_TIME_MAX, &at_ps), NETSIM_NO_EVENT);
    assert_true(netsim_event_peek(&wheel.queue) == NETSIM_NEVER);
    wheel_close(&wheel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_a_model_that_looks_at_everything),
        cmocka_unit_test(equal_times_in_the_order_of_scheduling),
        cmocka_unit_test(nothing_beyond_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
