/*
 * kernel.c - which kernels this CPU can run, and which is in use.
 *
 * Decided before main(), so that no call has to look, or to lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/kernel.h"

#include <assert.h>

/* Best first. */
static const struct hadamard_kernel *const all[] = {
#if defined(__x86_64__)
    &hadamard_kernel_avx512,
    &hadamard_kernel_avx2,
#endif
    &hadamard_kernel_base,
    &hadamard_kernel_simple,
};
#define ALL_COUNT (sizeof all / sizeof all[0])

static const struct hadamard_kernel *runnable[ALL_COUNT + 1];
static const struct hadamard_kernel *in_use = &hadamard_kernel_simple;

__attribute__((constructor)) static void find_runnable(void)
{
    size_t count = 0;
    for (size_t i = 0; i < ALL_COUNT; i++)
        if (all[i]->runs_here())
            runnable[count++] = all[i];
    assert(count >= 1); /* base and simple run anywhere */
    in_use = runnable[0];
}

const struct hadamard_kernel *const *hadamard_kernels(void)
{
    return runnable;
}

const struct hadamard_kernel *hadamard_kernel_now(void)
{
    return in_use;
}

void hadamard_kernel_use(const struct hadamard_kernel *kernel)
{
    assert(kernel->runs_here());
    in_use = kernel;
}
