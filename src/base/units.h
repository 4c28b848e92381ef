/*
 * units.h - sizes, rates, times, ratios and decimals from text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_UNITS_H
#define LH_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* ---- decimal --------------------------------------------------------------------------------------- */

/* Decimal numbers in text, exact and the same in every locale (strtod and printf are neither). */

/* whole + fraction / 10^fraction_digits. */
struct lh_decimal {
    uint64_t whole;
    uint64_t fraction;
    unsigned fraction_digits; /* at most LH_DECIMAL_FRACTION_MAX; further digits are dropped */
};

/* Bytes that lh_decimal_format_double needs, with the final zero. */
#define LH_DECIMAL_DOUBLE_MAX 32

/* Reads "12" or "12.5" at *text and moves *text behind it. No sign, no space, a digit on both sides of the
 * point. 0, -LH_EINVAL when there is none, -LH_ERANGE when the whole part exceeds 64 bits; sets no
 * lh_last_error(), since only the caller knows what the number is for. */
int lh_decimal_read(const char **text, struct lh_decimal *decimal);
/* The number times unit, to the nearest integer. -LH_ERANGE when that exceeds 64 bits, or is 0 though the
 * number is not: a rate of "0.1bit" must not become "no limit". */
int lh_decimal_scale(const struct lh_decimal *decimal, uint64_t unit, uint64_t *value);
/* As lh_decimal_read, with an optional exponent (1e-4). -LH_ERANGE when a double cannot hold it. */
int lh_decimal_read_double(const char **text, double *value);
/* As lh_decimal_read_double, with an optional % at the end; 0.07% is the same double as 7e-4. */
int lh_decimal_read_ratio(const char **text, double *value);
/* The shortest text that lh_decimal_read_double reads as this value, which is finite and not negative, into
 * out[size]; returns out. Cuts at size. */
char *lh_decimal_format_double(double value, char *out, size_t size);

#endif
