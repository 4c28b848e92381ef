/*
 * plan_list.h - what the planner weighs: schemes with parameters, and sizes of chunks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_PLAN_LIST_H
#define LH_MODEL_PLAN_LIST_H

#include <longhaul/plan.h>

/* Chunks of 1, 4, 16 and 64 packets. Larger ones are lost too easily, and smaller steps differ little. */
#define PLAN_CHUNKS 4u
/* Schemes of one size of chunks. */
#define PLAN_SCHEMES_MAX (LH_PLAN_CHOICES_MAX / PLAN_CHUNKS)

/* Sizes of chunks that come into question, the largest first, into out[PLAN_CHUNKS]; returns how many. The
 * last is the question's own, or one packet. */
uint32_t plan_list_chunks(const struct lh_plan_question *question, uint64_t *out);

/* Schemes that Longhaul runs, the simplest first, into out[PLAN_SCHEMES_MAX]; returns how many. Their
 * encode_bytes_per_s is 0. Where loss comes in bursts, codes are listed with and without spreading. */
uint32_t plan_list_schemes(const struct lh_plan_question *question, struct lh_model_scheme *out);

/* Data that one core encodes with a scheme: what the question says, for as many parity chunks. */
double plan_list_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);

#endif
