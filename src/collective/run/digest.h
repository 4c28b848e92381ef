/*
 * digest.h - digests of buffers that should be the same on all ranks, and which of them differ.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_DIGEST_H
#define LH_COLLECTIVE_RUN_DIGEST_H

#include <longhaul/collective.h>

#define DIGEST_BYTES 16u /* XXH3-128, in canonical order */

void digest_of(const struct lh_buffer *buffer, uint8_t out[DIGEST_BYTES]);
/* digests: of rank r's buffer b at r * buffers + b, as differs[ranks * buffers]: whether it is not the one of
 * most ranks; where several are of as many, of those the lowest rank's counts. */
void digests_compare(const uint8_t *digests, uint32_t ranks, uint32_t buffers, bool *differs);

#endif
