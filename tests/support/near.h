/*
 * near.h - numbers that are the same but for rounding.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_NEAR_H
#define LH_TESTS_SUPPORT_NEAR_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* value is `wanted` within a share of it (within `share` itself when it is 0). A NaN is near nothing. */
static inline void near_check(double value, double wanted, double share, const char *what, const char *file,
                              int line)
{
    double allowed = share * (wanted == 0 ? 1 : fabs(wanted));
    if (!(fabs(value - wanted) <= allowed)) {
        print_error("%s is %.15g, not %.15g within %g of it\n", what, value, wanted, share);
        _fail(file, line);
    }
}

#define assert_near(value, wanted, share) near_check((value), (wanted), (share), #value, __FILE__, __LINE__)

#endif
