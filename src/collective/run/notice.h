/*
 * notice.h - the bodies of small messages: an operation has failed, a rank has failed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_NOTICE_H
#define LH_COLLECTIVE_RUN_NOTICE_H

#include <longhaul/collective.h>

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
