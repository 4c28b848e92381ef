/*
 * call.h - one collective of a life: what its ranks call, with which data, and whether what they get is
 * right.
 *
 * Integers, and what is not added, are compared bit by bit; sums of floats with a bound of their rounding.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_GROUP_CALL_H
#define LH_TESTS_WORLD_GROUP_CALL_H

#include "support/collective_call.h"
#include "world/plan.h"

/* Ranks that call it, by their numbers in the group: hosts. */
struct team {
    uint32_t size;
    uint8_t hosts[PLAN_HOSTS_MAX];
};

struct call_plan {
    struct collective_call call;
    bool in_place;
    struct lh_collective_options options;
};

/* What an event means in a group of that size; odd: what the one rank calls that differs. */
void call_plan_make(const struct plan_event *event, uint32_t block_bytes, uint32_t size, bool odd,
                    struct call_plan *made);
/* A host's input. */
void call_fill(const struct plan_event *event, const struct call_plan *plan, uint8_t host, uint8_t *to,
               size_t elements);
/* What may be lost of a call's result. */
struct call_loss {
    bool bounded;       /* sums are of encoded tensors */
    uint64_t missing;   /* bytes that were reported */
    uint64_t wrong;     /* set: bytes that are 0 in place of others */
    uint64_t zero;      /* set: bytes that are 0 */
    long double energy; /* set: squares of errors of a sum that lacks contributions */
};
/* Whether the output of a rank is right, but for that. False: what[size] says where it is not. */
bool call_is_right(const struct plan_event *event, const struct call_plan *plan, const struct team *team,
                   uint32_t rank, const uint8_t *out, struct call_loss *loss, char *what, size_t size);
/* Elements of the longest row. */
size_t call_row(const struct call_plan *plan, uint32_t size);
/* Whether all ranks have the same output. */
bool call_is_same(const struct call_plan *plan);

#endif
