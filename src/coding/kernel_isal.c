/*
 * kernel_isal.c - Intel's library, where no kernel of ours is faster. It chooses by CPU itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/kernel.h"

#include <assert.h>

#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>

#include "base/vzeroupper.h"
#include "coding/product.h"

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

const struct kernel kernel_isal = {"isa-l", runs_here, product, sum};
