/*
 * kernel.c - which kernels this CPU can run, and which is in use.
 *
 * Decided before main(), so that no call has to look, or to lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/kernel.h"

#include <assert.h>
#include <string.h>

#include <longhaul/code.h>

#include "base/error.h"

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
                   "kernel \"%s\": not available on this CPU (lh_code_kernels() lists those that are)",
                   name);
}
