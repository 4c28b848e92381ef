/*
 * planner.h - the planner and its list of candidates.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PLAN_PLANNER_H
#define LH_PLAN_PLANNER_H

#include <longhaul/plan.h>

#include "model/predictor.h"

/* lh_plan_make(3), for messages by themselves or for those of a stream. */
int plan_make(const struct lh_plan_question *question, bool stream, struct lh_plan *plan);

/* ---- plan list ------------------------------------------------------------------------------------- */

/* What the planner weighs: schemes with parameters, and sizes of chunks. */

/* Chunks of 1, 4, 16 and 64 packets. Larger ones are lost too easily, and smaller steps differ little. */
#define PLAN_CHUNKS 4u
/* Schemes of one size of chunks. */
#define PLAN_SCHEMES_MAX (LH_PLAN_CHOICES_MAX / PLAN_CHUNKS)

/* Sizes of chunks that come into question, the largest first, into out[PLAN_CHUNKS]; returns how many. The
 * last is the question's own, or one packet. */
uint32_t plan_list_chunks(const struct lh_plan_question *question, uint64_t *out);

/* Schemes of the table that the planner may choose, those of the lowest rank first, into
 * out[PLAN_SCHEMES_MAX]; returns their number. Their encode_bytes_per_s is 0. Where loss comes in bursts,
 * codes are listed with and without spreading. For a stream of messages, none that is only for ends. */
uint32_t plan_list_schemes(const struct scheme_entry *const *table, const struct lh_plan_question *question,
                           bool stream, struct lh_model_scheme *out);
/* The first of that list. */
struct lh_model_scheme plan_list_simplest(const struct scheme_entry *const *table);
/* The entry of a scheme; NULL: it is not in the table. */
const struct scheme_entry *plan_list_find(const struct scheme_entry *const *table, enum lh_model_kind kind);

/* Whether a choice costs less than another that is as fast: fewer bytes, fewer cores, larger chunks. */
bool plan_list_is_cheaper(const struct lh_plan_choice *one, const struct lh_plan_choice *other);

#endif
