/*
 * operation_digest.h - what ranks compare: names and signatures of operations, digests of buffers, notices of
 * failures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_OPERATION_DIGEST_H
#define LH_COLLECTIVE_OPERATION_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#include <longhaul/collective.h>

#include "collective/reduce.h"
#include "collective/schedule.h"

#define DIGEST_BYTES 16u /* XXH3-128, in canonical order */

void digest_of(const struct lh_buffer *buffer, uint8_t out[DIGEST_BYTES]);
/* digests: of rank r's buffer b at r * buffers + b, as differs[ranks * buffers]: whether it is not the one of
 * most ranks; where several are of as many, of those the lowest rank's counts. */
void digests_compare(const uint8_t *digests, uint32_t ranks, uint32_t buffers, bool *differs);

/* ---- names ----------------------------------------------------------------------------------------- */

/* Types, reductions and schedules by name: the calls of longhaul/collective.h, and these. */

/* Whether it is defined for the type; both are valid. */
bool reduction_takes(enum lh_reduction reduction, enum lh_type type);
/* What it does with two elements: LH_AVG adds, and divides at the end. */
enum reduce_operation reduction_operation(enum lh_reduction reduction);

/* What a call makes of a collective. Ranks send the number to each other. */
enum call_form {
    CALL_PLAIN = 0,
    CALL_UNEVEN = 1,  /* its v-variant */
    CALL_COMPARE = 2, /* lh_compare(): of an all-gather, of digests */
    CALL_FORMS
};
/* "gatherv"; NULL: the collective has no v-variant. */
const char *parts_collective_name(enum collective collective);
/* The schedule of a v-variant: each part goes from its source to its destination at once. */
const struct schedule *parts_schedule(enum collective collective);
/* "gather", "gatherv"; of one that exists. */
const char *call_name(enum collective collective, enum call_form form);
/* The schedule of a collective by its name. NULL: there is none, and names[size] has those that there are. */
const struct schedule *named_schedule(enum collective collective, const char *name, char *names,
                                      size_t size);

/* ---- signature ------------------------------------------------------------------------------------- */

/* What the ranks of a collective have to agree on: each sends it to its peers with the data. */

#define SIGNATURE_NAME_MAX 32u /* of a schedule, with the final zero */
#define SIGNATURE_BYTES    80u

struct signature {
    enum collective collective;
    uint32_t type;      /* enum element_type */
    uint32_t reduction; /* enum lh_reduction; 0 where there is none */
    uint32_t root;      /* 0 where there is none */
    uint64_t count;     /* of a v-variant: that this rank has for the other; of a comparison: buffers */
    uint64_t returned;  /* of a v-variant: that it gets of the other */
    uint64_t block_bytes;
    bool reliable; /* every byte arrives, whatever the hops */
    enum call_form form;
    uint32_t paths; /* hash of the measured paths whose order it follows; 0: none */
    char schedule[SIGNATURE_NAME_MAX];
};

void signature_encode(const struct signature *signature, uint8_t out[SIGNATURE_BYTES]);
/* Anything may be in `in`. False: it is none. */
bool signature_decode(const uint8_t *in, size_t bytes, struct signature *signature);
/* Writes what differs between two ranks' into text[size], the first thing, the lower rank first: "count 5 at
 * rank 0, 6 at rank 1". False: nothing. */
bool signature_differs(const struct signature *one, uint32_t rank, const struct signature *other,
                       uint32_t other_rank, char *text, size_t size);

/* ---- notice ---------------------------------------------------------------------------------------- */

/* The bodies of small messages: an operation has failed, a rank has failed. */

struct notice {
    int error; /* negative */
    uint32_t
        rank; /* that it is of: of an operation in its group, of a failure in the mesh; or LH_NO_RANK */
    char text[LH_COLLECTIVE_MESSAGE_MAX]; /* of an operation */
};

#define NOTICE_BYTES_MAX (8 + LH_COLLECTIVE_MESSAGE_MAX)

/* Returns the bytes. */
size_t notice_encode(const struct notice *notice, uint8_t out[NOTICE_BYTES_MAX]);
/* Anything may be in `in`. False: it is none. */
bool notice_decode(const uint8_t *in, size_t bytes, struct notice *notice);

#endif
