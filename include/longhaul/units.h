/*
 * units.h - sizes, rates and times as people write them: 128MiB, 10Gbit, 25ms.
 *
 *   sizes   B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024); a bare number is bytes
 *   rates   bit, kbit, Mbit, Gbit, Tbit (powers of 1000), with or without "/s" or "ps"; also bps … Tbps;
 *           a unit is required (save for 0)
 *   times   ns, us, ms, s, min; a unit is required (save for 0)
 *   ratios  1e-4, 0.0001, 0.01%
 *
 * Decimal fractions are allowed (1.5GiB); results are rounded to a whole byte, bit/s or ns. Errors:
 * -LH_EINVAL for any other syntax; -LH_ERANGE for a value that is too large or would round to 0.
 * lh_last_error() quotes the text and gives a valid example.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_UNITS_H
#define LONGHAUL_UNITS_H

#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

LH_API int lh_parse_size(const char *text, uint64_t *bytes);
LH_API int lh_parse_rate(const char *text, uint64_t *bps);
LH_API int lh_parse_time(const char *text, lh_time *ns);
LH_API int lh_parse_ratio(const char *text, double *ratio); /* 0 to 1 */

/* Buffer size that suffices for every call below, with the final zero. */
#define LH_FORMAT_MAX 32

/* Format a value with three significant digits into out[size], and return out. They never fail; they truncate
 * at size. */
LH_API char *lh_format_size(uint64_t bytes, char *out, size_t size);
LH_API char *lh_format_rate(double bps, char *out, size_t size);
LH_API char *lh_format_time(double seconds, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
