/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/reduce.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- kernel ---------------------------------------------------------------------------------------- */

/*
 * Which kernels this CPU can run, and which is in use.
 *
 * Decided before main(), so that no call has to look, or to lock.
 */

/* Best first. */
static const struct reduce_kernel *const all[] = {
#if defined(__x86_64__)
    &reduce_kernel_avx512,
    &reduce_kernel_avx2,
#endif
    &reduce_kernel_base,
};
#define ALL_COUNT (sizeof all / sizeof all[0])

static const struct reduce_kernel *runnable[ALL_COUNT + 1];
static const struct reduce_kernel *in_use = &reduce_kernel_base;

__attribute__((constructor)) static void find_runnable(void)
{
    size_t count = 0;
    for (size_t i = 0; i < ALL_COUNT; i++)
        if (all[i]->runs_here())
            runnable[count++] = all[i];
    assert(count >= 1); /* base runs anywhere */
    in_use = runnable[0];
}

const struct reduce_kernel *const *reduce_kernels(void)
{
    return runnable;
}

const struct reduce_kernel *reduce_kernel_now(void)
{
    return in_use;
}

void reduce_kernel_use(const struct reduce_kernel *kernel)
{
    assert(kernel->runs_here());
    in_use = kernel;
}

/* ---- reduce ---------------------------------------------------------------------------------------- */

size_t element_bytes_of(enum element_type type)
{
    static const size_t bytes[] = {
#define ELEMENT_BYTES(constant, name, bytes) bytes,
        ELEMENT_TYPES(ELEMENT_BYTES)
#undef ELEMENT_BYTES
    };
    assert(type < ELEMENT_COUNT);
    return bytes[type];
}

const char *element_name(enum element_type type)
{
    static const char *const names[] = {
#define ELEMENT_NAME(constant, name, bytes) #name,
        ELEMENT_TYPES(ELEMENT_NAME)
#undef ELEMENT_NAME
    };
    assert(type < ELEMENT_COUNT);
    return names[type];
}

void reduce_elements(enum element_type type, enum reduce_operation operation, void *to, const void *left,
                     const void *right, size_t count)
{
    assert(type < ELEMENT_COUNT && operation < REDUCE_COUNT);
    if (count == 0)
        return;
    const struct reduce_kernel *kernel = reduce_kernel_now();
    if (operation >= REDUCE_BAND)
        kernel->bits[operation - REDUCE_BAND](to, left, right, count * element_bytes_of(type));
    else
        kernel->reduce[type][operation](to, left, right, count);
}

#define DIVIDE_INTEGERS(name, element)                                                                     \
    static void name(void *at, size_t count, int64_t by)                                                   \
    {                                                                                                      \
        for (size_t i = 0; i < count; i++) {                                                               \
            element value;                                                                                 \
            memcpy(&value, (uint8_t *)at + i * sizeof value, sizeof value);                                \
            value = (element)(value / by);                                                                 \
            memcpy((uint8_t *)at + i * sizeof value, &value, sizeof value);                                \
        }                                                                                                  \
    }
DIVIDE_INTEGERS(divide_i32, int32_t)
DIVIDE_INTEGERS(divide_i64, int64_t)
DIVIDE_INTEGERS(divide_u8, uint8_t)
DIVIDE_INTEGERS(divide_i8, int8_t)
DIVIDE_INTEGERS(divide_i16, int16_t)

void reduce_divide(enum element_type type, void *at, size_t count, uint32_t by)
{
    static void (*const integers[ELEMENT_COUNT])(void *at, size_t count, int64_t by) = {
        [ELEMENT_I32] = divide_i32, [ELEMENT_I64] = divide_i64, [ELEMENT_U8] = divide_u8,
        [ELEMENT_I8] = divide_i8,   [ELEMENT_I16] = divide_i16,
    };
    assert(type < ELEMENT_COUNT && by > 0);
    if (integers[type])
        integers[type](at, count, by);
    else
        reduce_kernel_now()->divide[type](at, count, by);
}
