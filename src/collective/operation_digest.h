/*
 * signature.h - what the ranks of a collective have to agree on: each sends it to its peers with the data.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_SIGNATURE_H
#define LH_COLLECTIVE_RUN_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "collective/run/names.h"
#include "collective/schedule/schedule.h"

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

#endif
