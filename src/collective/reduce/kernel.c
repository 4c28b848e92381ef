/*
 * kernel.c - which kernels this CPU can run, and which is in use.
 *
 * Decided before main(), so that no call has to look, or to lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/reduce/kernel.h"

#include <assert.h>

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
