/*
 * checked_schemes.c - every machine of the fault world keeps the rules of longhaul/scheme.h: what asks the
 * table for a scheme gets one that is watched (support/scheme_check.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/scheme_table.h"

#include "support/scheme_check.h"

#define SCHEMES_MAX 16u

/* Names that the linker gives. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
const struct lh_scheme *const *__real_lh_schemes(void);
const struct lh_scheme *const *__wrap_lh_schemes(void);
const struct lh_scheme *__real_scheme_table_machines(const char *name, size_t bytes);
const struct lh_scheme *__wrap_scheme_table_machines(const char *name, size_t bytes);

const struct lh_scheme *const *__wrap_lh_schemes(void)
{
    static const struct lh_scheme *checked[SCHEMES_MAX + 1];
    const struct lh_scheme *const *all = __real_lh_schemes();
    for (size_t i = 0; i < SCHEMES_MAX && all[i]; i++)
        checked[i] = scheme_checked(all[i]);
    return checked;
}

const struct lh_scheme *__wrap_scheme_table_machines(const char *name, size_t bytes)
{
    return scheme_checked(__real_scheme_table_machines(name, bytes));
}
/* NOLINTEND(bugprone-reserved-identifier) */
