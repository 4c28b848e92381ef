/*
 * test_encoder.c - groups shared out among threads give what one thread gives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/code.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/code_reference.h"
#include "support/sanitized.h"

#define GROUPS_MAX 9u
#define BYTES_MAX  40000u
#define K          6u
#define M          3u

struct groups {
    uint8_t *memory; /* data, parity, parity as it should be */
    const void *data[GROUPS_MAX * K];
    void *parity[GROUPS_MAX * M];
    void *wanted[GROUPS_MAX * M];
};

static void create_groups(struct groups *groups, struct lh_prng *prng)
{
    const size_t chunks = GROUPS_MAX * (K + 2 * M);
    groups->memory = malloc(chunks * BYTES_MAX);
    fill_random(groups->memory, chunks * BYTES_MAX, prng);
    uint8_t *at = groups->memory;
    for (unsigned i = 0; i < GROUPS_MAX * K; i++, at += BYTES_MAX)
        groups->data[i] = at;
    for (unsigned i = 0; i < GROUPS_MAX * M; i++, at += BYTES_MAX)
        groups->parity[i] = at;
    memcpy(at, groups->parity[0], (size_t)GROUPS_MAX * M * BYTES_MAX);
    for (unsigned i = 0; i < GROUPS_MAX * M; i++, at += BYTES_MAX)
        groups->wanted[i] = at;
}

static void test_as_one_thread(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 8192, 20000, BYTES_MAX};
    struct lh_prng prng;
    lh_prng_seed(&prng, 7);
    struct groups groups;
    create_groups(&groups, &prng);
    for (uint32_t threads = 0; threads <= 4; threads++) {
        struct lh_encoder *encoder;
        assert_int_equal(lh_encoder_create(threads, NULL, &encoder), 0);
        for (unsigned round = 0; round < (SANITIZED ? 40 : 200); round++) {
            struct lh_code code = {round % 2 ? LH_CODE_XOR : LH_CODE_MDS, K, M};
            uint32_t count = (uint32_t)lh_prng_below(&prng, GROUPS_MAX + 1);
            size_t bytes = lengths[lh_prng_below(&prng, sizeof lengths / sizeof lengths[0])];
            for (uint32_t g = 0; g < count; g++)
                lh_encode(&code, groups.data + g * K, groups.wanted + g * M, bytes);
            lh_encoder_encode(encoder, &code, count, groups.data, groups.parity, bytes);
            assert_memory_equal(groups.parity[0], groups.wanted[0], (size_t)GROUPS_MAX * M * BYTES_MAX);
        }
        lh_encoder_destroy(encoder);
    }
    free(groups.memory);
}

static void test_arguments(void **state)
{
    (void)state;
    struct lh_encoder *encoder = NULL;
    assert_int_equal(lh_encoder_create(256, NULL, &encoder), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "256"));
    assert_int_equal(lh_encoder_create(1, (int[]){1 << 20}, &encoder), -LH_ESYSTEM);
    assert_null(encoder);
    assert_int_equal(lh_encoder_create(1, (int[]){0}, &encoder), 0);
    lh_encoder_destroy(encoder);
    lh_encoder_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_one_thread),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
