/*
 * bounded_missing.h - selective repeat that ends at a deadline: how many chunks are missing then.
 *
 * As in repeat.h the unit of time is T_inj, and s the time since the last chunk was first injected. The
 * k-th repeat of a chunk comes k O after its start, O = RTO + T_inj. C_k(s) chunks have theirs still to
 * come, so C_k - C_{k-1} were sent k times and are missing with the chance p^k each (C_0 = 0):
 *     mean = sum over k of (C_k - C_{k-1}) p^k.
 * That is exact, with bursts too where repeats do not meet the burst of what they repeat.
 *
 * Their number is a sum of independent draws with unequal chances. What is said of its tail is that of
 * Binomial(M, mean / M): the same where all were sent once, and never less far beyond the mean (W.
 * Hoeffding, On the distribution of the number of successes in independent trials, 1956). With bursts it
 * would be wrong.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_BOUNDED_MISSING_H
#define LH_SCHEMES_SR_BOUNDED_MISSING_H

/* Mean number of chunks that are missing at s, of so many that are lost with `loss` each time. */
double sr_bounded_missing(double loss, double overhead, double chunks, double s);

#endif
