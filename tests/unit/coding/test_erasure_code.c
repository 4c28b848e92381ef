/*
 * test_erasure_code.c - both codes against their definition, and every way to lose chunks.
 *
 * All memory is compared, so a byte beside a chunk, or of one that is only read, counts as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "coding/erasure_code.h"
#include "support/code_reference.h"
#include "support/sanitized.h"

/* ---- test code ------------------------------------------------------------------------------------- */

static struct lh_prng code_prng;

/* ---- what a code can be ------------------------------------------------------------------------------ */

static void test_check(void **state)
{
    (void)state;
    static const struct lh_code good[] = {
        {LH_CODE_MDS, 1, 1}, {LH_CODE_MDS, 254, 1}, {LH_CODE_MDS, 1, 254},   {LH_CODE_MDS, 32, 8},
        {LH_CODE_XOR, 1, 1}, {LH_CODE_XOR, 8, 8},   {LH_CODE_XOR, 128, 127}, {LH_CODE_XOR, 254, 1},
    };
    static const struct lh_code bad[] = {
        {LH_CODE_MDS, 0, 1},          {LH_CODE_MDS, 1, 0},          {LH_CODE_MDS, 128, 128},
        {LH_CODE_MDS, 255, 1},        {LH_CODE_XOR, 7, 8},          {LH_CODE_XOR, 128, 128},
        {LH_CODE_XOR, 0, 0},          {(enum lh_code_kind)3, 4, 2}, {LH_CODE_MDS, 1, ~0u},
        {(enum lh_code_kind)0, 4, 2}, {LH_CODE_MDS, ~0u, 2},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(lh_code_check(&good[i]), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(lh_code_check(&bad[i]), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "255"));
}

/* ---- encoding ---------------------------------------------------------------------------------------- */

static struct chunk_set same_places(const struct chunk_set *set, uint8_t *memory)
{
    struct chunk_set other = *set;
    other.memory = memory;
    for (uint32_t i = 0; i < LH_CODE_CHUNKS_MAX && set->chunks[i]; i++)
        other.chunks[i] = memory + ((uint8_t *)set->chunks[i] - set->memory);
    return other;
}

/* Data in the first chunks of both sets; both coded. */
static void check_encode(struct chunk_set *set, uint8_t *copy, const struct lh_code *code, size_t bytes)
{
    size_t used = chunk_set_place(set, code->k + code->m, bytes, &code_prng);
    fill_random(set->memory, used, &code_prng);
    memcpy(copy, set->memory, used);
    struct chunk_set wanted = same_places(set, copy);
    reference_encode(code, (const void *const *)wanted.chunks, wanted.chunks + code->k, bytes);
    lh_encode(code, (const void *const *)set->chunks, set->chunks + code->k, bytes);
    if (memcmp(set->memory, copy, used) != 0)
        fail_msg("encoding %d(%u, %u) of %zu bytes", (int)code->kind, code->k, code->m, bytes);
}

static void test_encode(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{1, 1},  {1, 254}, {254, 1},   {32, 8},
                                         {32, 9}, {17, 16}, {128, 127}, {200, 55}};
    struct chunk_set set = {0};
    chunk_set_create(&set, LH_CODE_CHUNKS_MAX, 2000);
    uint8_t *copy = malloc(set.memory_bytes);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t bytes = 0; bytes < (SANITIZED ? 500 : 2000);
             bytes = bytes * 5 + 1 + lh_prng_below(&code_prng, 20)) {
            struct lh_code code = {LH_CODE_MDS, shapes[i][0], shapes[i][1]};
            check_encode(&set, copy, &code, bytes);
            code.kind = LH_CODE_XOR;
            if (code.m <= code.k)
                check_encode(&set, copy, &code, bytes);
        }
    free(copy);
    chunk_set_destroy(&set);
}

/* More than one stretch of gf256_kernels.c, and the last one short; and more than a kernel takes at once. */
static void test_long_chunks(void **state)
{
    (void)state;
    struct chunk_set set = {0};
    const size_t bytes = ((size_t)1 << 20) + 77;
    chunk_set_create(&set, 11, bytes);
    uint8_t *copy = malloc(set.memory_bytes);
    check_encode(&set, copy, &(struct lh_code){LH_CODE_MDS, 2, 9}, bytes);
    check_encode(&set, copy, &(struct lh_code){LH_CODE_MDS, 3, 2}, bytes);
    check_encode(&set, copy, &(struct lh_code){LH_CODE_XOR, 3, 2}, bytes);
    free(copy);
    chunk_set_destroy(&set);
}

/* A shortened code is the long one with zeros; fresh rows are rows of the code with more of them. */
static void test_shortened_and_fresh_rows(void **state)
{
    (void)state;
    enum { K = 40, M = 24, BYTES = 513 };
    static uint8_t data[K][BYTES], parity[M][BYTES], other[M][BYTES];
    const void *in[K];
    void *out[M], *out_other[M];
    for (unsigned j = 0; j < K; j++)
        in[j] = data[j];
    for (unsigned i = 0; i < M; i++) {
        out[i] = parity[i];
        out_other[i] = other[i];
    }
    for (uint32_t k = 1; k <= K; k++) {
        memset(data, 0, sizeof data);
        fill_random(data, (size_t)k * BYTES, &code_prng);
        lh_encode(&(struct lh_code){LH_CODE_MDS, K, M}, in, out, BYTES);
        lh_encode(&(struct lh_code){LH_CODE_MDS, k, M}, in, out_other, BYTES);
        assert_memory_equal(parity, other, sizeof parity);
        memset(other, 0, sizeof other);
        uint32_t first = (uint32_t)lh_prng_below(&code_prng, M);
        lh_encode(&(struct lh_code){LH_CODE_MDS, k, first + 1}, in, out_other, BYTES);
        assert_memory_equal(parity, other, (first + 1) * (size_t)BYTES);
        lh_encode_rows(&(struct lh_code){LH_CODE_MDS, k, M}, first, M - first, in, out_other, BYTES);
        assert_memory_equal(parity[first], other, (M - first) * (size_t)BYTES);
    }
    lh_encode(&(struct lh_code){LH_CODE_XOR, K, M}, in, out, BYTES);
    lh_encode_rows(&(struct lh_code){LH_CODE_XOR, K, M}, 5, 7, in, out_other, BYTES);
    assert_memory_equal(parity[5], other, 7 * (size_t)BYTES);
}

static void test_range(void **state)
{
    (void)state;
    static uint8_t data[3][400], parity[2][400], all[2][400];
    struct lh_code code = {LH_CODE_MDS, 3, 2};
    const void *in[] = {data[0], data[1], data[2]};
    fill_random(data, sizeof data, &code_prng);
    memset(parity, 0x77, sizeof parity);
    lh_encode(&code, in, (void *[]){all[0], all[1]}, 400);
    code_encode_range(&code, in, (void *[]){parity[0], parity[1]}, 101, 150);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned at = 0; at < 400; at++)
            assert_int_equal(parity[i][at], at >= 101 && at < 251 ? all[i][at] : 0x77);
}

/* ---- decoding ---------------------------------------------------------------------------------------- */

/* A coded set, as it was and as it is worked on. */
struct decoding {
    struct chunk_set actual;
    uint8_t *wanted;
    size_t used;
};

/* Loses what is not present: other bytes in its place. */
static void lose(struct decoding *decoding, uint32_t count, const uint8_t *present, size_t bytes,
                 bool data_comes_back, uint32_t k)
{
    for (uint32_t i = 0; i < count; i++) {
        if (present[i])
            continue;
        uint8_t *at = decoding->actual.chunks[i];
        for (size_t b = 0; b < bytes; b++)
            at[b] ^= 0xc3;
        if (i >= k || !data_comes_back)
            memcpy(decoding->wanted + (at - decoding->actual.memory), at, bytes);
    }
}

/* Decodes, compares all memory, and leaves both as they were before. */
static void check_decode(struct decoding *decoding, const struct lh_code *code, const uint8_t *present,
                         size_t bytes)
{
    const uint32_t count = code->k + code->m;
    const bool recoverable = reference_recoverable(code, present);
    lose(decoding, count, present, bytes, recoverable, code->k);
    void *chunks[LH_CODE_CHUNKS_MAX];
    for (uint32_t i = 0; i < count; i++)
        chunks[i] = i >= code->k && !present[i] ? NULL : decoding->actual.chunks[i];
    bool says = lh_recoverable(code, present);
    int error = lh_decode(code, chunks, present, bytes);
    bool same = memcmp(decoding->actual.memory, decoding->wanted, decoding->used) == 0;
    if (says != recoverable || error != (recoverable ? 0 : -LH_EUNRECOVERABLE) || !same)
        fail_msg("%s, decoding %d(%u, %u) of %zu bytes: error %d, %s", lh_code_kernel(), (int)code->kind,
                 code->k, code->m, bytes, error, same ? "right bytes" : "wrong bytes");
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = decoding->actual.chunks[i];
        if (!present[i] && !(recoverable && i < code->k))
            for (size_t b = 0; b < bytes; b++)
                decoding->wanted[at - decoding->actual.memory + (ptrdiff_t)b] = at[b] ^= 0xc3;
    }
}

static void every_pattern(struct decoding *decoding, const struct lh_code *code)
{
    const uint32_t count = code->k + code->m;
    const size_t bytes = 1 + lh_prng_below(&code_prng, 150);
    decoding->used = chunk_set_place(&decoding->actual, count, bytes, &code_prng);
    fill_random(decoding->actual.memory, decoding->used, &code_prng);
    lh_encode(code, (const void *const *)decoding->actual.chunks, decoding->actual.chunks + code->k, bytes);
    memcpy(decoding->wanted, decoding->actual.memory, decoding->used);
    for (uint32_t pattern = 0; pattern < 1u << count; pattern++) {
        uint8_t present[LH_CODE_CHUNKS_MAX];
        for (uint32_t i = 0; i < count; i++)
            present[i] = (uint8_t)(pattern >> i & 1) * (uint8_t)(1 + pattern % 255);
        check_decode(decoding, code, present, bytes);
    }
}

static void test_every_pattern(void **state)
{
    (void)state;
    struct decoding decoding = {0};
    const char *best = lh_code_kernel();
    const uint32_t largest = SANITIZED ? 9 : 12;
    chunk_set_create(&decoding.actual, 12, 200);
    decoding.wanted = malloc(decoding.actual.memory_bytes);
    for (const char *const *name = lh_code_kernels(); *name; name++) {
        lh_code_kernel_use(*name);
        for (uint32_t k = 1; k < largest; k++)
            for (uint32_t m = 1; k + m <= largest; m++) {
                every_pattern(&decoding, &(struct lh_code){LH_CODE_MDS, k, m});
                if (m <= k)
                    every_pattern(&decoding, &(struct lh_code){LH_CODE_XOR, k, m});
            }
    }
    lh_code_kernel_use(best);
    free(decoding.wanted);
    chunk_set_destroy(&decoding.actual);
}

#define MASTER_BYTES 70000u

/* Chunks of the longest length, coded once; a random pattern takes a range of their bytes. */
struct master {
    struct lh_code code;
    struct chunk_set chunks;
    struct decoding decoding;
};

static void create_master(struct master *master, struct lh_code code)
{
    memset(master, 0, sizeof *master);
    master->code = code;
    chunk_set_create(&master->chunks, code.k + code.m, MASTER_BYTES);
    chunk_set_create(&master->decoding.actual, code.k + code.m, MASTER_BYTES);
    master->decoding.wanted = malloc(master->decoding.actual.memory_bytes);
    size_t used = chunk_set_place(&master->chunks, code.k + code.m, MASTER_BYTES, &code_prng);
    fill_random(master->chunks.memory, used, &code_prng);
    lh_encode(&code, (const void *const *)master->chunks.chunks, master->chunks.chunks + code.k,
              MASTER_BYTES);
}

static void destroy_master(struct master *master)
{
    chunk_set_destroy(&master->chunks);
    free(master->decoding.wanted);
    chunk_set_destroy(&master->decoding.actual);
}

/* Mostly short: what depends on the pattern does not depend on the length. */
static size_t random_length(void)
{
    uint64_t maximum = lh_prng_chance(&code_prng, 1.0 / 500)  ? MASTER_BYTES
                       : lh_prng_chance(&code_prng, 1.0 / 16) ? 1500
                                                              : 100;
    return 1 + lh_prng_below(&code_prng, maximum);
}

/* Loses 0 … m + 1 chunks, m half of the time; an XOR code fewer, or it would never recover. */
static void random_pattern(const struct lh_code *code, uint8_t *present)
{
    const uint32_t count = code->k + code->m;
    uint32_t lost =
        lh_prng_chance(&code_prng, 0.5) ? code->m : (uint32_t)lh_prng_below(&code_prng, code->m + 2);
    if (code->kind == LH_CODE_XOR)
        lost = (uint32_t)lh_prng_below(&code_prng, 6);
    memset(present, 1, count);
    while (lost > 0) {
        uint64_t i = lh_prng_below(&code_prng, count);
        lost -= present[i];
        present[i] = 0;
    }
}

static void random_decode(struct master *master)
{
    struct decoding *decoding = &master->decoding;
    const uint32_t count = master->code.k + master->code.m;
    const size_t bytes = random_length();
    const size_t from = lh_prng_below(&code_prng, MASTER_BYTES - bytes + 1);
    decoding->used = chunk_set_place(&decoding->actual, count, bytes, &code_prng);
    for (uint32_t i = 0; i < count; i++)
        memcpy(decoding->actual.chunks[i], (uint8_t *)master->chunks.chunks[i] + from, bytes);
    memcpy(decoding->wanted, decoding->actual.memory, decoding->used);
    uint8_t present[LH_CODE_CHUNKS_MAX];
    random_pattern(&master->code, present);
    check_decode(decoding, &master->code, present, bytes);
}

/* Not with base, nor often with ISA-L: short chunks would take them most of the time. */
static void random_decodes(struct master *master, unsigned times)
{
    const char *best = lh_code_kernel();
    const char *const *name = lh_code_kernels();
    for (unsigned i = 0; i < times; i++) {
        if (!*name || strcmp(*name, "base") == 0)
            name = lh_code_kernels();
        lh_code_kernel_use(*name++);
        if (i % 8 != 0 && strcmp(lh_code_kernel(), "isa-l") == 0)
            lh_code_kernel_use(best);
        random_decode(master);
    }
    lh_code_kernel_use(best);
}

static void test_random_patterns(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{32, 8}, {128, 32}, {223, 32}};
    for (unsigned i = 0; i < 3; i++) {
        struct master master;
        create_master(&master, (struct lh_code){LH_CODE_MDS, shapes[i][0], shapes[i][1]});
        random_decodes(&master, SANITIZED ? 1000 : 33334);
        destroy_master(&master);
        create_master(&master, (struct lh_code){LH_CODE_XOR, shapes[i][0], shapes[i][1]});
        random_decodes(&master, SANITIZED ? 300 : 5000);
        destroy_master(&master);
    }
}

static void test_one_too_many_changes_nothing(void **state)
{
    (void)state;
    struct master master;
    create_master(&master, (struct lh_code){LH_CODE_MDS, 32, 8});
    for (unsigned i = 0; i < 200; i++) {
        struct decoding *decoding = &master.decoding;
        decoding->used = chunk_set_place(&decoding->actual, 40, 333, &code_prng);
        fill_random(decoding->actual.memory, decoding->used, &code_prng);
        memcpy(decoding->wanted, decoding->actual.memory, decoding->used);
        uint8_t present[40];
        memset(present, 1, sizeof present);
        for (unsigned lost = 0; lost < 9;) {
            uint64_t at = lh_prng_below(&code_prng, 40);
            lost += present[at];
            present[at] = 0;
        }
        assert_false(lh_recoverable(&master.code, present));
        assert_int_equal(lh_decode(&master.code, decoding->actual.chunks, present, 333),
                         -LH_EUNRECOVERABLE);
        assert_memory_equal(decoding->actual.memory, decoding->wanted, decoding->used);
    }
    assert_non_null(strstr(lh_last_error(), "mds(32, 8)"));
    destroy_master(&master);
}

/* The largest matrices there are. */
static void test_half_lost(void **state)
{
    (void)state;
    struct master master;
    create_master(&master, (struct lh_code){LH_CODE_MDS, 128, 127});
    struct decoding *decoding = &master.decoding;
    const size_t bytes = 300;
    decoding->used = chunk_set_place(&decoding->actual, 255, bytes, &code_prng);
    for (uint32_t i = 0; i < 255; i++)
        memcpy(decoding->actual.chunks[i], master.chunks.chunks[i], bytes);
    memcpy(decoding->wanted, decoding->actual.memory, decoding->used);
    uint8_t present[255];
    memset(present, 0, 127);
    memset(present + 127, 1, 128);
    check_decode(decoding, &master.code, present, bytes);
    destroy_master(&master);
}

static int seed(void **state)
{
    (void)state;
    lh_prng_seed(&code_prng, 1960);
    return 0;
}

static int run_code(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),           cmocka_unit_test(test_encode),
        cmocka_unit_test(test_long_chunks),     cmocka_unit_test(test_shortened_and_fresh_rows),
        cmocka_unit_test(test_range),           cmocka_unit_test(test_every_pattern),
        cmocka_unit_test(test_random_patterns), cmocka_unit_test(test_one_too_many_changes_nothing),
        cmocka_unit_test(test_half_lost),
    };
    return cmocka_run_group_tests(tests, seed, NULL);
}

/* ---- test mds matrix ------------------------------------------------------------------------------- */

/* Encoding by definition; decoding times encoding is the identity. */

static void test_every_coefficient(void **state)
{
    (void)state;
    uint8_t row[PRODUCT_MATRIX_MAX];
    for (uint32_t i = 0; i < 254; i++) {
        uint32_t k = 254 - i;
        mds_encode_matrix(i, 1, k, row);
        for (uint32_t j = 0; j < k; j++)
            assert_int_equal(row[j], reference_coefficient(i, j));
    }
}

static void test_row_0_is_all_ones(void **state)
{
    (void)state;
    uint8_t row[PRODUCT_MATRIX_MAX];
    mds_encode_matrix(0, 1, 254, row);
    for (uint32_t j = 0; j < 254; j++)
        assert_int_equal(row[j], 1);
}

static void test_rows_and_columns_fit_together(void **state)
{
    (void)state;
    static uint8_t large[PRODUCT_MATRIX_MAX], small[PRODUCT_MATRIX_MAX];
    mds_encode_matrix(0, 100, 150, large);
    mds_encode_matrix(30, 7, 20, small);
    for (uint32_t r = 0; r < 7; r++)
        for (uint32_t j = 0; j < 20; j++)
            assert_int_equal(small[r * 20 + j], large[(30 + r) * 150 + j]);
}

/* Which of count things, ascending, drawn out of `of`. */
static void draw(struct lh_prng *prng, uint32_t count, uint32_t of, uint8_t *drawn)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < of; i++)
        if (lh_prng_below(prng, of - i) < count - found)
            drawn[found++] = (uint8_t)i;
    assert_int_equal(found, count);
}

/* Chunk z, as the sum of data: one row. */
static uint8_t share_of_data(uint32_t k, uint32_t count, const uint8_t *lost, const uint8_t *parity,
                             uint32_t z, uint32_t data)
{
    for (uint32_t n = 0; n < count; n++)
        if (lost[n] == z)
            return reference_coefficient(parity[n], data);
    assert_true(z < k);
    return z == data;
}

static void check_inverse(uint32_t k, uint32_t count, const uint8_t *lost, const uint8_t *parity)
{
    static uint8_t matrix[PRODUCT_MATRIX_MAX];
    mds_decode_matrix(k, count, lost, parity, matrix);
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t data = 0; data < k; data++) {
            uint8_t sum = 0;
            for (uint32_t z = 0; z < k; z++)
                sum ^=
                    reference_multiply(matrix[r * k + z], share_of_data(k, count, lost, parity, z, data));
            assert_int_equal(sum, lost[r] == data);
        }
}

static void test_decoding_undoes_encoding(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 20);
    for (unsigned i = 0; i < 300; i++) {
        uint32_t k = 1 + (uint32_t)lh_prng_below(&prng, 24);
        uint32_t m = 1 + (uint32_t)lh_prng_below(&prng, 255 - k);
        uint32_t maximum = k < m ? k : m;
        uint32_t count = 1 + (uint32_t)lh_prng_below(&prng, maximum < 8 ? maximum : 8);
        uint8_t lost[8], parity[8];
        draw(&prng, count, k, lost);
        draw(&prng, count, m, parity);
        check_inverse(k, count, lost, parity);
    }
}

static void test_largest(void **state)
{
    (void)state;
    static uint8_t matrix[PRODUCT_MATRIX_MAX];
    uint8_t all[127];
    for (uint32_t i = 0; i < 127; i++)
        all[i] = (uint8_t)i;
    mds_encode_matrix(0, 127, 128, matrix);
    mds_decode_matrix(128, 127, all, all, matrix);
    assert_int_not_equal(matrix[PRODUCT_MATRIX_MAX - 1], 0);
}

static int run_mds_matrix(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_coefficient),
        cmocka_unit_test(test_row_0_is_all_ones),
        cmocka_unit_test(test_rows_and_columns_fit_together),
        cmocka_unit_test(test_decoding_undoes_encoding),
        cmocka_unit_test(test_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_code() + run_mds_matrix();
}
