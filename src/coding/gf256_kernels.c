/* SPDX-License-Identifier: BSD-3-Clause */
#include "coding/gf256_kernels.h"

#include <assert.h>
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <longhaul/code.h>

#include "base/bytes.h"
#include "base/error.h"

/* ---- product --------------------------------------------------------------------------------------- */

/*
 * Cuts a product into what a kernel takes at once.
 *
 * A stretch of all chunks at a time, so that what goes in is still in the cache when the next rows need it.
 */

/* The next rows read the same stretch of all chunks again: 254 of these are 4 MiB. */
#define STRETCH_BYTES ((size_t)16 << 10)

/* What is read in all, from which on results go past the caches: they would hardly stay there until they are
 * read again, and a line that is written through a cache is read before. The second-level cache of a server's
 * core has 1 or 2 MiB. */
#define STREAM_BYTES ((size_t)1 << 20)

static bool all_ones(const uint8_t *row, uint32_t columns)
{
    for (uint32_t j = 0; j < columns; j++)
        if (row[j] != 1)
            return false;
    return true;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void product_run(const struct product *product, size_t from, size_t bytes)
{
    assert(product->rows >= 1 && product->columns >= 1);
    assert(product->rows * product->columns <= PRODUCT_MATRIX_MAX);
    const size_t end = from + bytes;
    const bool first_is_sum = all_ones(product->matrix, product->columns);
    if (product->rows == 1 && first_is_sum) {
        product_sum(product->columns, product->in, product->out[0], from, bytes, bytes * product->columns);
        return;
    }
    const size_t stretch = product->rows > KERNEL_ROWS_MAX ? STRETCH_BYTES : KERNEL_BYTES_MAX;
    for (size_t at = from; at < end; at += stretch)
        for (uint32_t row = 0; row < product->rows; row += KERNEL_ROWS_MAX) {
            struct kernel_task task = {
                .rows = (uint32_t)smaller(product->rows - row, KERNEL_ROWS_MAX),
                .columns = product->columns,
                .first_is_sum = row == 0 && first_is_sum,
                .matrix = product->matrix + row * product->columns,
                .in = product->in,
                .out = product->out + row,
                .stream = bytes * product->columns >= STREAM_BYTES,
                .from = at,
                .bytes = smaller(end - at, stretch),
            };
            kernel_now()->product(&task);
        }
}

void product_sum(uint32_t count, const void *const *in, void *out, size_t from, size_t bytes,
                 size_t group_bytes)
{
    assert(count >= 1 && count <= PRODUCT_SIDE_MAX);
    const size_t end = from + bytes;
    for (size_t at = from; at < end; at += KERNEL_BYTES_MAX) {
        struct kernel_task task = {
            .rows = 1,
            .columns = count,
            .first_is_sum = true,
            .in = in,
            .out = &out,
            .stream = group_bytes >= STREAM_BYTES,
            .from = at,
            .bytes = smaller(end - at, KERNEL_BYTES_MAX),
        };
        kernel_now()->sum(&task);
    }
}

/* ---- kernel isal ----------------------------------------------------------------------------------- */

/* Intel's library, where no kernel of ours is faster. It chooses by CPU itself. */

#define TABLE_BYTES   32u /* of a coefficient, in ISA-L */
#define XOR_ALIGNMENT 32u

static bool runs_here(void)
{
    return true;
}

static void product(const struct kernel_task *task)
{
    assert(task->rows <= KERNEL_ROWS_MAX && task->columns <= PRODUCT_SIDE_MAX);
    assert(task->bytes <= KERNEL_BYTES_MAX);
    /* Not const in ISA-L, but it changes neither the matrix nor what goes in. */
    uint8_t tables[TABLE_BYTES * KERNEL_ROWS_MAX * PRODUCT_SIDE_MAX];
    uint8_t *in[PRODUCT_SIDE_MAX];
    uint8_t *out[KERNEL_ROWS_MAX];
    for (uint32_t j = 0; j < task->columns; j++)
        in[j] = (uint8_t *)(uintptr_t)task->in[j] + task->from;
    for (uint32_t r = 0; r < task->rows; r++)
        out[r] = (uint8_t *)task->out[r] + task->from;
    int columns = (int)task->columns;
    int rows = (int)task->rows;
    ec_init_tables(columns, rows, (uint8_t *)(uintptr_t)task->matrix, tables);
    ec_encode_data((int)task->bytes, columns, rows, tables, in, out);
    lh_vzeroupper();
}

static void sum(const struct kernel_task *task)
{
    assert(task->rows == 1 && task->columns <= PRODUCT_SIDE_MAX && task->bytes <= KERNEL_BYTES_MAX);
    void *chunks[PRODUCT_SIDE_MAX + 1];
    uintptr_t places = 0;
    for (uint32_t j = 0; j < task->columns; j++) {
        chunks[j] = (uint8_t *)(uintptr_t)task->in[j] + task->from;
        places |= (uintptr_t)chunks[j];
    }
    chunks[task->columns] = (uint8_t *)task->out[0] + task->from;
    places |= (uintptr_t)chunks[task->columns];
    /* It wants two sources, and aligned ones. */
    if (task->columns < 2 || places % XOR_ALIGNMENT != 0) {
        kernel_base.sum(task);
        return;
    }
    int failed = xor_gen((int)task->columns + 1, (int)task->bytes, chunks);
    lh_vzeroupper();
    assert(!failed);
    (void)failed;
}

static const struct kernel kernel_isal = {"isa-l", runs_here, product, sum};

/* ---- kernel ---------------------------------------------------------------------------------------- */

/*
 * Which kernels this CPU can run, and which is in use.
 *
 * Decided before main(), so that no call has to look, or to lock.
 */

/* Best first. */
static const struct kernel *const all[] = {
#if defined(__x86_64__)
    &kernel_avx512_gfni,
    &kernel_avx2,
#endif
    &kernel_isal,
    &kernel_base,
};
#define ALL_COUNT (sizeof all / sizeof all[0])

static const struct kernel *runnable[ALL_COUNT];
static const char *names[ALL_COUNT + 1];
static const struct kernel *in_use = &kernel_base;

__attribute__((constructor)) static void find_runnable(void)
{
    size_t count = 0;
    for (size_t i = 0; i < ALL_COUNT; i++)
        if (all[i]->runs_here()) {
            runnable[count] = all[i];
            names[count++] = all[i]->name;
        }
    assert(count >= 1); /* base runs anywhere */
    in_use = runnable[0];
}

const struct kernel *kernel_now(void)
{
    return in_use;
}

const char *const *lh_code_kernels(void)
{
    return names;
}

const char *lh_code_kernel(void)
{
    return in_use->name;
}

int lh_code_kernel_use(const char *name)
{
    for (size_t i = 0; i < ALL_COUNT && runnable[i]; i++)
        if (strcmp(runnable[i]->name, name) == 0) {
            in_use = runnable[i];
            return 0;
        }
    return lh_fail(LH_EINVAL,
                   "kernel \"%s\": not available on this CPU (lh_code_kernels() lists the available ones)",
                   name);
}
