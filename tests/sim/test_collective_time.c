/*
 * test_collective_time.c - how long an all-reduce of two sites takes, in virtual time: close to half a round
 * trip and the time of its bytes, also where packets get lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/group_world.h"
#include "support/sanitized.h"

#define RANKS    2u
#define RATE_BPS 2000000000ull
#define DELAY_NS 12500000ull
#define LINK     "delay=12.5ms,rate=2Gbit"
#define LIMIT_NS (60 * LH_NS_PER_S)

static double run_once(struct group_world *world, float *const *in, float *const *out, size_t count)
{
    struct lh_collective *ops[RANKS];
    struct lh_collective_result result;
    struct lh_collective_options options;
    lh_time begin = group_world_now(world);
    lh_collective_options_init(&options);
    options.schedule = "direct";
    for (uint32_t r = 0; r < RANKS; r++)
        sim_engines_must(
            lh_allreduce(world->groups[r], in[r], out[r], count, LH_F32, LH_SUM, &options, &ops[r]),
            "lh_allreduce");
    assert_true(group_world_run(world, ops, RANKS, LIMIT_NS));
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(lh_collective_test(ops[r], &result), 1);
        assert_int_equal(result.error, 0);
        lh_collective_free(ops[r]);
    }
    return (double)(group_world_now(world) - begin);
}

/* In ns. */
struct times {
    double mean;
    double longest;
};

/* Of the last two thirds: by then the loss is known. */
static struct times times_of(struct group_world *world, size_t bytes, uint32_t number)
{
    float *in[RANKS], *out[RANKS];
    struct times times = {0};
    for (uint32_t r = 0; r < RANKS; r++) {
        in[r] = calloc(1, bytes);
        out[r] = calloc(1, bytes);
        assert_true(in[r] && out[r]);
    }
    for (uint32_t i = 0; i < number; i++) {
        double duration = run_once(world, in, out, bytes / sizeof(float));
        if (i < number / 3)
            continue;
        times.mean += duration / (number - number / 3);
        times.longest = duration > times.longest ? duration : times.longest;
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        free(in[r]);
        free(out[r]);
    }
    return times;
}

static void check(const char *link, size_t bytes, uint32_t number, double max_mean, double maximum)
{
    struct lh_attr connection;
    struct lh_group_attr attr;
    struct group_world world;
    double bound = (double)DELAY_NS + (double)bytes * 8 * 1e9 / (double)RATE_BPS;
    lh_attr_init(&connection);
    connection.mtu_bytes = 4096;
    connection.rate_bps = RATE_BPS;
    lh_group_attr_init(&attr);
    attr.attr = &connection;
    group_world_open(&world, "time", 2, link, RANKS, &attr, NULL);
    struct times times = times_of(&world, bytes, number);
    printf("%s: all-reduce of %zu KiB: mean %.2f ms, longest %.2f ms, bound %.2f ms\n", link, bytes >> 10,
           times.mean / 1e6, times.longest / 1e6, bound / 1e6);
    assert_true(times.mean >= bound && times.mean <= max_mean * bound && times.longest <= maximum * bound);
    group_world_close(&world);
}

static void test_without_loss(void **state)
{
    (void)state;
    check(LINK, 1u << 20, 6, 1.05, 1.05);
}

static void test_with_loss(void **state)
{
    (void)state;
    check(LINK ",loss=1e-3", 1u << 20, 60, 1.1, 1.6);
    check(LINK ",loss=1e-3", 16u << 20, 12, 1.1, 1.2);
    if (!SANITIZED)
        check(LINK ",loss=1e-3", 64u << 20, 6, 1.1, 1.2);
}

/* ---- a length that only the root knows ---------------------------------------------------------------- */

#define MEMBERS 4u

struct message {
    uint64_t bytes;
    uint8_t *data;
    struct lh_collective *length, *content;
};

/* As is chosen over long links. */
static void begin(struct lh_group *group, void *buffer, size_t count, enum lh_type type,
                  struct lh_collective **op)
{
    struct lh_collective_options options;
    lh_collective_options_init(&options);
    options.schedule = "sequential";
    sim_engines_must(lh_broadcast(group, buffer, count, type, 0, &options, op), "lh_broadcast");
}

static void begin_content(struct group_world *world, struct message *message, uint32_t rank)
{
    if (rank > 0)
        message->data = malloc(message->bytes);
    assert_non_null(message->data);
    begin(world->groups[rank], message->data, message->bytes, LH_U8, &message->content);
}

/* Until the last of the others has it, in ns. They begin the content once they have its length, which the
 * root sends just ahead of it; or all know it. */
static double broadcast_time(struct group_world *world, size_t bytes, bool announced)
{
    struct message messages[MEMBERS] = {0};
    struct lh_collective_result result;
    lh_time start = group_world_now(world);
    double duration = 0;
    uint32_t left = MEMBERS;
    messages[0].data = calloc(1, bytes);
    for (uint32_t r = 0; r < MEMBERS; r++) {
        struct message *message = &messages[r];
        message->bytes = r == 0 || !announced ? bytes : 0;
        if (announced)
            begin(world->groups[r], &message->bytes, 1, LH_I64, &message->length);
        if (message->bytes > 0)
            begin_content(world, message, r);
    }
    while (left > 0) {
        group_world_turn(world, start + LIMIT_NS);
        assert_true(group_world_now(world) < start + LIMIT_NS);
        left = 0;
        for (uint32_t r = 0; r < MEMBERS; r++) {
            struct message *message = &messages[r];
            if (!message->content && lh_collective_test(message->length, NULL) == 1)
                begin_content(world, message, r);
            bool ended = message->content && lh_collective_test(message->content, &result) == 1;
            if (ended && r > 0 && (double)(result.ended_ns - start) > duration)
                duration = (double)(result.ended_ns - start);
            left += !ended;
        }
    }
    for (uint32_t r = 0; r < MEMBERS; r++) {
        assert_int_equal(messages[r].bytes, bytes);
        lh_collective_free(messages[r].length);
        lh_collective_free(messages[r].content);
        free(messages[r].data);
    }
    return duration;
}

/* What comes ahead of its operation waits in buffers: a length in front costs no round trip. */
static void test_announced_length(void **state)
{
    static const char *const sites[] = {"one", "two", "three", "one"};
    static const size_t sizes[] = {1000, 1u << 20, 6u << 20};
    struct lh_attr connection;
    struct lh_group_attr attr;
    struct group_world world;
    (void)state;
    lh_attr_init(&connection);
    connection.mtu_bytes = 4096;
    connection.rate_bps = RATE_BPS;
    lh_group_attr_init(&attr);
    attr.attr = &connection;
    group_world_open(&world, "time", 1, LINK, MEMBERS, &attr, sites);
    broadcast_time(&world, 1, false); /* all have ended its creation */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double known = broadcast_time(&world, sizes[i], false);
        double announced = broadcast_time(&world, sizes[i], true);
        printf("broadcast of %zu bytes: %.2f ms, with its length ahead of it %.2f ms\n", sizes[i],
               known / 1e6, announced / 1e6);
        assert_true(announced <= known + 1e6);
    }
    group_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_loss),
        cmocka_unit_test(test_with_loss),
        cmocka_unit_test(test_announced_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
