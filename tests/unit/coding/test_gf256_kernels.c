/*
 * test_gf256_kernels.c - every kernel that this CPU can run, against the definition and against ISA-L:
 * every number of rows, every length up to some vectors and some long ones, all alignments.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/gf256_kernels.h"

#include <longhaul/code.h>
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/code_reference.h"
#include "support/sanitized.h"

#define LENGTH_MAX 70000u
/* Of base, which is slow, and of the kernels that others run. */
#define WORK_MAX ((uint64_t)(SANITIZED ? 1 : 4) << 20)

struct world {
    struct lh_prng prng;
    struct chunk_set actual, wanted; /* in first, then out */
    uint8_t matrix[KERNEL_ROWS_MAX * PRODUCT_SIDE_MAX];
};

static int create_world(void **state)
{
    struct world *world = malloc(sizeof *world);
    lh_prng_seed(&world->prng, 4711);
    chunk_set_create(&world->actual, LH_CODE_CHUNKS_MAX, LENGTH_MAX);
    chunk_set_create(&world->wanted, LH_CODE_CHUNKS_MAX, LENGTH_MAX);
    *state = world;
    return 0;
}

static int destroy_world(void **state)
{
    struct world *world = *state;
    chunk_set_destroy(&world->actual);
    chunk_set_destroy(&world->wanted);
    free(world);
    return 0;
}

/* The same places and random bytes in both. */
static size_t place_chunks(struct world *world, uint32_t count, size_t bytes)
{
    size_t used = chunk_set_place(&world->actual, count, bytes, &world->prng);
    fill_random(world->actual.memory, used, &world->prng);
    memcpy(world->wanted.memory, world->actual.memory, used);
    for (uint32_t i = 0; i < count; i++)
        world->wanted.chunks[i] =
            world->wanted.memory + ((uint8_t *)world->actual.chunks[i] - world->actual.memory);
    return used;
}

static void isal_product(const struct kernel_task *task)
{
    uint8_t *tables = malloc(32ul * task->rows * task->columns);
    uint8_t *in[PRODUCT_SIDE_MAX], *out[KERNEL_ROWS_MAX];
    for (uint32_t j = 0; j < task->columns; j++)
        in[j] = (uint8_t *)(uintptr_t)task->in[j] + task->from;
    for (uint32_t r = 0; r < task->rows; r++)
        out[r] = (uint8_t *)task->out[r] + task->from;
    ec_init_tables((int)task->columns, (int)task->rows, (uint8_t *)(uintptr_t)task->matrix, tables);
    ec_encode_data((int)task->bytes, (int)task->columns, (int)task->rows, tables, in, out);
    free(tables);
}

static void definition_product(const struct kernel_task *task)
{
    for (uint32_t r = 0; r < task->rows; r++) {
        uint8_t *out = (uint8_t *)task->out[r] + task->from;
        memset(out, 0, task->bytes);
        for (uint32_t j = 0; j < task->columns; j++) {
            const uint8_t *in = (const uint8_t *)task->in[j] + task->from;
            uint8_t factor = task->matrix ? task->matrix[r * task->columns + j] : 1;
            for (size_t at = 0; at < task->bytes; at++)
                out[at] ^= reference_multiply(factor, in[at]);
        }
    }
}

static bool is_base(void)
{
    return strcmp(lh_code_kernel(), "base") == 0;
}

/* Runs the kernel in use on `actual` and the other on `wanted`, which must give the same memory. */
static void compare_product(struct world *world, void (*other)(const struct kernel_task *),
                            struct kernel_task task)
{
    const size_t reach = task.from + task.bytes;
    size_t used = place_chunks(world, task.columns + task.rows, reach);
    fill_random(world->matrix, task.rows * task.columns, &world->prng);
    task.first_is_sum = lh_prng_chance(&world->prng, 0.5);
    if (task.first_is_sum)
        memset(world->matrix, 1, task.columns);
    task.matrix = world->matrix;
    task.stream = lh_prng_chance(&world->prng, 0.5);
    task.in = (const void *const *)world->wanted.chunks;
    task.out = world->wanted.chunks + task.columns;
    other(&task);
    task.in = (const void *const *)world->actual.chunks;
    task.out = world->actual.chunks + task.columns;
    kernel_now()->product(&task);
    if (memcmp(world->actual.memory, world->wanted.memory, used) != 0)
        fail_msg("%s: %u rows, %u columns, %zu bytes from %zu", lh_code_kernel(), task.rows, task.columns,
                 task.bytes, task.from);
}

static void compare_sum(struct world *world, struct kernel_task task)
{
    size_t used = place_chunks(world, task.columns + 1, task.from + task.bytes);
    task.rows = 1;
    task.first_is_sum = true;
    task.stream = lh_prng_chance(&world->prng, 0.5);
    task.in = (const void *const *)world->wanted.chunks;
    task.out = world->wanted.chunks + task.columns;
    definition_product(&task);
    task.in = (const void *const *)world->actual.chunks;
    task.out = world->actual.chunks + task.columns;
    kernel_now()->sum(&task);
    if (memcmp(world->actual.memory, world->wanted.memory, used) != 0)
        fail_msg("%s: sum of %u, %zu bytes from %zu", lh_code_kernel(), task.columns, task.bytes,
                 task.from);
}

/* 1 … 300, and now and then up to LENGTH_MAX, short ones more often. */
static size_t random_length(struct world *world)
{
    if (!lh_prng_chance(&world->prng, 0.05))
        return 1 + lh_prng_below(&world->prng, 300);
    return 1 + lh_prng_below(&world->prng, 1 + lh_prng_below(&world->prng, LENGTH_MAX));
}

static void for_each_kernel(struct world *world, void (*check)(struct world *))
{
    const char *best = lh_code_kernel();
    for (const char *const *name = lh_code_kernels(); *name; name++) {
        assert_int_equal(lh_code_kernel_use(*name), 0);
        assert_string_equal(lh_code_kernel(), *name);
        check(world);
    }
    lh_code_kernel_use(best);
}

static void every_length(struct world *world)
{
    for (size_t bytes = 1; bytes <= 600; bytes++) {
        uint32_t rows = 1 + (uint32_t)(bytes * 5 % KERNEL_ROWS_MAX);
        compare_product(world, definition_product,
                        (struct kernel_task){.rows = rows, .columns = 3, .bytes = bytes});
        compare_sum(world, (struct kernel_task){.columns = 1 + (uint32_t)(bytes % 5), .bytes = bytes});
    }
}

static void every_shape(struct world *world)
{
    for (uint32_t columns = 1; columns <= PRODUCT_SIDE_MAX; columns += columns < 40 ? 1 : 41)
        for (uint32_t rows = 1; rows <= KERNEL_ROWS_MAX; rows++) {
            struct kernel_task task = {
                .rows = rows, .columns = columns, .from = rows, .bytes = 33 + 64 * (columns % 9)};
            compare_product(world, isal_product, task);
            compare_sum(world, task);
        }
}

static void random_shapes(struct world *world)
{
    for (unsigned i = 0; i < (SANITIZED ? 100 : 1000); i++) {
        struct kernel_task task = {
            .rows = 1 + (uint32_t)lh_prng_below(&world->prng, KERNEL_ROWS_MAX),
            .columns = 1 + (uint32_t)lh_prng_below(&world->prng, 1 + lh_prng_below(&world->prng, 250)),
            .bytes = random_length(world),
        };
        task.from = lh_prng_below(&world->prng, LENGTH_MAX - task.bytes + 1) % 200;
        if (is_base() && (uint64_t)task.rows * task.columns * task.bytes > WORK_MAX)
            continue;
        compare_product(world, isal_product, task);
    }
}

static void test_every_length(void **state)
{
    for_each_kernel(*state, every_length);
}

static void test_every_shape(void **state)
{
    for_each_kernel(*state, every_shape);
}

static void test_random_shapes(void **state)
{
    for_each_kernel(*state, random_shapes);
}

/* Each coefficient, times each byte. */
static void every_product(struct world *world)
{
    (void)world;
    uint8_t in[256], out[256];
    for (unsigned value = 0; value < 256; value++)
        in[value] = (uint8_t)value;
    for (unsigned factor = 0; factor < 256; factor++) {
        uint8_t matrix = (uint8_t)factor;
        struct kernel_task task = {.rows = 1,
                                   .columns = 1,
                                   .first_is_sum = factor == 1,
                                   .matrix = &matrix,
                                   .in = (const void *[]){in},
                                   .out = (void *[]){out},
                                   .bytes = 256};
        kernel_now()->product(&task);
        for (unsigned value = 0; value < 256; value++)
            assert_int_equal(out[value], reference_multiply(matrix, (uint8_t)value));
    }
}

static void test_every_product(void **state)
{
    for_each_kernel(*state, every_product);
}

/* xor_gen() takes aligned chunks only. */
static void sums_as_isal(struct world *world)
{
    for (uint32_t count = 2; count <= 32; count++) {
        size_t bytes = 1 + lh_prng_below(&world->prng, 8192);
        void *chunks[33];
        uint8_t *memory = aligned_alloc(64, 34 * 8192);
        fill_random(memory, 34 * 8192, &world->prng);
        for (uint32_t i = 0; i <= count; i++)
            chunks[i] = memory + (size_t)i * 8192;
        uint8_t *wanted = chunks[count];
        uint8_t *actual = memory + (size_t)33 * 8192;
        assert_int_equal(xor_gen((int)count + 1, (int)bytes, chunks), 0);
        struct kernel_task task = {.rows = 1,
                                   .columns = count,
                                   .in = (const void *const *)chunks,
                                   .out = (void *[]){actual},
                                   .bytes = bytes};
        kernel_now()->sum(&task);
        assert_memory_equal(actual, wanted, bytes);
        free(memory);
    }
}

static void test_sums_as_isal(void **state)
{
    for_each_kernel(*state, sums_as_isal);
}

static void test_names(void **state)
{
    (void)state;
    const char *const *names = lh_code_kernels();
    assert_string_equal(names[0], lh_code_kernel());
    unsigned count = 0;
    while (names[count])
        count++;
    assert_true(count >= 2);
    assert_string_equal(names[count - 1], "base");
    assert_int_equal(lh_code_kernel_use("abacus"), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "abacus"));
    assert_string_equal(names[0], lh_code_kernel());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_every_product),
        cmocka_unit_test(test_every_length),  cmocka_unit_test(test_every_shape),
        cmocka_unit_test(test_random_shapes), cmocka_unit_test(test_sums_as_isal),
    };
    return cmocka_run_group_tests(tests, create_world, destroy_world);
}
