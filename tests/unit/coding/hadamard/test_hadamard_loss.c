/*
 * test_hadamard_loss.c - decoding what has lost packets: exactly the missing bytes count as 0, the error is
 * their energy (Parseval) whatever the transform, blocks with stride spread it as a whole message does;
 * sums of several contributors, some of which are lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/hadamard_reference.h"

#define PACKET  64u
#define PACKETS 64u
#define COUNT   (PACKET * PACKETS)

static float tensor[COUNT], encoded[COUNT], work[COUNT], decoded[COUNT];

static struct lh_hadamard description(uint32_t block, uint32_t stride)
{
    return (struct lh_hadamard){LH_HADAMARD_F32, LH_HADAMARD_REFUSE, block, stride, 77, NULL};
}

/* Ordinary numbers, and some that are far larger. */
static void fill(struct lh_prng *prng)
{
    for (size_t i = 0; i < COUNT; i++)
        tensor[i] = (float)(tensor_normal(prng) * (lh_prng_chance(prng, 0.002) ? 50 : 1));
}

/* Of the numbers in these ranges. */
static double energy_of(const float *numbers, const struct lh_range *ranges, uint64_t count)
{
    double sum = 0;
    for (uint64_t r = 0; r < count; r++)
        for (uint64_t i = ranges[r].offset / 4; i < (ranges[r].offset + ranges[r].bytes) / 4; i++)
            sum += (double)numbers[i] * (double)numbers[i];
    return sum;
}

static double squared_error(const float *a, const float *b, size_t from, size_t count)
{
    double sum = 0;
    for (size_t i = from; i < from + count; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

static void decode_without(const struct lh_hadamard *hadamard, const struct lh_range *missing,
                           uint64_t count)
{
    const struct lh_hadamard_arrival arrival = {.missing = missing, .missing_count = count};
    memcpy(work, encoded, sizeof work);
    for (uint64_t i = 0; i < count; i++) /* what was there before is no number at all */
        memset((char *)work + missing[i].offset, 0xff, missing[i].bytes);
    assert_int_equal(lh_hadamard_decode(hadamard, &arrival, work, decoded, COUNT, NULL), 0);
}

static uint64_t lose(struct lh_prng *prng, double rate, struct lh_range *ranges)
{
    uint64_t count = 0;
    for (unsigned packet = 0; packet < PACKETS; packet++)
        if (lh_prng_chance(prng, rate))
            ranges[count++] = (struct lh_range){packet * PACKET * 4, PACKET * 4};
    return count;
}

static void test_parseval(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (uint32_t block = 16; block <= COUNT; block *= 4)
        for (uint32_t stride = 1; stride <= block && (size_t)block * stride <= COUNT; stride *= 2) {
            const struct lh_hadamard hadamard = description(block, stride);
            struct lh_range missing[PACKETS];
            fill(&prng);
            assert_int_equal(lh_hadamard_encode(&hadamard, tensor, encoded, COUNT, NULL), 0);
            const struct lh_range all = {0, sizeof tensor};
            const double energy = energy_of(tensor, &all, 1);
            assert_true(fabs(energy_of(encoded, &all, 1) / energy - 1) < 1e-5);
            uint64_t count = lose(&prng, 0.1, missing);
            decode_without(&hadamard, missing, count);
            const double lost = energy_of(encoded, missing, count);
            assert_true(fabs(squared_error(decoded, tensor, 0, COUNT) - lost) <= 1e-5 * energy);
        }
}

/* ---- the mean is the same, the spread is not ----------------------------------------------------------
 */

enum { RAW, MESSAGE, BLOCK, STRIDE, WAYS };
#define MESSAGES 1500u

struct spread {
    double errors[MESSAGES], mean;
    unsigned blocks_lost; /* of messages */
    double worst;         /* of a block, mean over messages */
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_message(struct spread *spread, unsigned number, double energy)
{
    double worst = 0;
    for (size_t block = 0; block < COUNT; block += PACKET) {
        const struct lh_range here = {block * 4, PACKET * 4};
        double share = squared_error(decoded, tensor, block, PACKET) / energy_of(tensor, &here, 1);
        worst = fmax(worst, share);
    }
    spread->errors[number] = squared_error(decoded, tensor, 0, COUNT) / energy;
    spread->mean += spread->errors[number] / MESSAGES;
    spread->blocks_lost += worst > 0.999 && worst < 1.001;
    spread->worst += worst / MESSAGES;
}

static void run_messages(struct spread *spreads, double rate)
{
    const struct lh_hadamard ways[] = {[MESSAGE] = description(COUNT, 1),
                                       [BLOCK] = description(PACKET, 1),
                                       [STRIDE] = description(PACKET, PACKET)};
    struct lh_prng prng;
    lh_prng_seed(&prng, 2);
    for (unsigned message = 0; message < MESSAGES; message++) {
        struct lh_range missing[PACKETS];
        const struct lh_range all = {0, sizeof tensor};
        for (size_t i = 0; i < COUNT; i++) /* blocks differ in size */
            tensor[i] = (float)(tensor_normal(&prng) * (1 + (double)(i / PACKET % 4)));
        const double energy = energy_of(tensor, &all, 1);
        uint64_t count = lose(&prng, rate, missing);
        for (unsigned way = 0; way < WAYS; way++) {
            if (way == RAW) {
                memcpy(decoded, tensor, sizeof decoded);
                for (uint64_t i = 0; i < count; i++)
                    memset((char *)decoded + missing[i].offset, 0, missing[i].bytes);
            } else {
                assert_int_equal(lh_hadamard_encode(&ways[way], tensor, encoded, COUNT, NULL), 0);
                decode_without(&ways[way], missing, count);
            }
            add_message(&spreads[way], message, energy);
        }
    }
}

static void test_spread(void **state)
{
    (void)state;
    static struct spread spreads[WAYS];
    const double rate = 0.05;
    run_messages(spreads, rate);
    double p99[WAYS];
    for (unsigned way = 0; way < WAYS; way++) {
        qsort(spreads[way].errors, MESSAGES, sizeof(double), by_size);
        p99[way] = spreads[way].errors[MESSAGES * 99 / 100];
        assert_true(fabs(spreads[way].mean / spreads[RAW].mean - 1) < 0.03);
    }
    assert_true(fabs(p99[STRIDE] / p99[MESSAGE] - 1) < 0.05);
    assert_true(p99[RAW] > 1.1 * p99[MESSAGE] && p99[BLOCK] > 1.1 * p99[MESSAGE]);
    /* Nearly each message loses a packet; blocks by themselves lose a block with it. */
    assert_true(spreads[BLOCK].blocks_lost > MESSAGES * 9 / 10 && spreads[BLOCK].worst > 0.9);
    assert_true(spreads[STRIDE].blocks_lost == 0 && spreads[STRIDE].worst < 0.25);
}

/* ---- what is missing ----------------------------------------------------------------------------------
 */

/* Ranges in any order, that overlap, begin and end inside an element, or are empty. */
static void test_ranges(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 4);
    const struct lh_hadamard hadamard = description(64, 16);
    const struct lh_range ranges[] = {{4001, 2}, {0, 0}, {400, 40}, {420, 100}, {sizeof tensor, 0}, {7, 1}};
    fill(&prng);
    assert_int_equal(lh_hadamard_encode(&hadamard, tensor, encoded, COUNT, NULL), 0);
    decode_without(&hadamard, ranges, 6);
    static float wanted[COUNT];
    memcpy(work, encoded, sizeof work);
    for (size_t i = 0; i < COUNT; i++)
        if (i == 1000 || (i >= 100 && i < 130) || i == 1)
            work[i] = 0;
    assert_int_equal(lh_hadamard_decode(&hadamard, NULL, work, wanted, COUNT, NULL), 0);
    assert_memory_equal(decoded, wanted, sizeof wanted);
}

static void test_bad_arrival(void **state)
{
    (void)state;
    const struct lh_hadamard hadamard = description(64, 16);
    struct lh_range range = {sizeof tensor - 3, 4};
    struct lh_hadamard_arrival arrival = {.missing = &range, .missing_count = 1};
    assert_int_equal(lh_hadamard_decode(&hadamard, &arrival, work, decoded, COUNT, NULL), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "missing range of 4 bytes at 16381"));
    range = (struct lh_range){8, UINT64_MAX - 4};
    assert_int_equal(lh_hadamard_decode(&hadamard, &arrival, work, decoded, COUNT, NULL), -LH_EINVAL);
    uint32_t contributions[PACKETS] = {[3] = 5};
    arrival = (struct lh_hadamard_arrival){.contributions = contributions, .contributors = 4};
    assert_int_equal(lh_hadamard_decode(&hadamard, &arrival, work, decoded, COUNT, NULL), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "packet 3 has 5 contributions of 4"));
}

/* ---- sums ---------------------------------------------------------------------------------------------
 */

#define HOSTS 8u

/* Hosts' tensors are equal; packets of their sum lack some. Scaled by their number, these bias nothing: the
 * error is that of packets without any contribution. */
static void check_sum(enum lh_hadamard_type type, double noise)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 5);
    struct lh_hadamard hadamard = description(PACKET, PACKET);
    hadamard.type = type;
    static double sum[COUNT], part[COUNT];
    memset(sum, 0, sizeof sum);
    memset(part, 0, sizeof part);
    uint32_t contributions[PACKETS];
    for (unsigned packet = 0; packet < PACKETS; packet++)
        contributions[packet] = packet % 3 ? HOSTS : HOSTS - 1 - packet % HOSTS;
    static double common[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        common[i] = tensor_normal(&prng);
    for (unsigned host = 0; host < HOSTS; host++) {
        for (size_t i = 0; i < COUNT; i++) {
            tensor_put(tensor, i, common[i], type);
            sum[i] += tensor_get(tensor, i, type);
        }
        assert_int_equal(lh_hadamard_encode(&hadamard, tensor, encoded, COUNT, NULL), 0);
        for (size_t i = 0; i < COUNT; i++)
            if (host < contributions[i / PACKET])
                part[i] += tensor_get(encoded, i, type);
    }
    double lost = 0, energy = 0;
    for (size_t i = 0; i < COUNT; i++) {
        tensor_put(work, i, part[i], type);
        lost += contributions[i / PACKET] == 0 ? pow(tensor_get(encoded, i, type) * HOSTS, 2) : 0;
        energy += sum[i] * sum[i];
    }
    const struct lh_hadamard_arrival arrival = {.contributions = contributions, .contributors = HOSTS};
    assert_int_equal(lh_hadamard_decode(&hadamard, &arrival, work, decoded, COUNT, NULL), 0);
    double error = 0;
    for (size_t i = 0; i < COUNT; i++)
        error += pow(tensor_get(decoded, i, type) - sum[i], 2);
    assert_true(lost > 0.01 * energy);
    assert_true(fabs(error - lost) < noise * energy);
}

static void test_sums(void **state)
{
    (void)state;
    check_sum(LH_HADAMARD_F32, 1e-5);
    check_sum(LH_HADAMARD_BF16, 2e-3);
    check_sum(LH_HADAMARD_F16, 1e-4);
}

/* Scaling may exceed F16. */
static void test_scaled_too_far(void **state)
{
    (void)state;
    static uint16_t half[COUNT];
    struct lh_hadamard hadamard = {LH_HADAMARD_F16, LH_HADAMARD_REFUSE, 64, 1, 0, NULL};
    uint32_t contributions[PACKETS];
    for (unsigned i = 0; i < PACKETS; i++)
        contributions[i] = i == 9 ? 1 : 1000;
    tensor_put(half, 9 * 64 + 5, 1000, LH_HADAMARD_F16);
    const struct lh_hadamard_arrival arrival = {.contributions = contributions, .contributors = 1000};
    assert_int_equal(lh_hadamard_decode(&hadamard, &arrival, half, half, COUNT, NULL), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "packet 9"));
    tensor_put(half, 9 * 64 + 5, 1000, LH_HADAMARD_F16);
    hadamard.non_finite = LH_HADAMARD_ZERO;
    assert_int_equal(lh_hadamard_decode(&hadamard, &arrival, half, half, COUNT, NULL), 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(tensor_get(half, i, LH_HADAMARD_F16) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parseval), cmocka_unit_test(test_spread),
        cmocka_unit_test(test_ranges),   cmocka_unit_test(test_bad_arrival),
        cmocka_unit_test(test_sums),     cmocka_unit_test(test_scaled_too_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
