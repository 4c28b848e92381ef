/*
 * encoder.h - the threads of an encoder, for other work that can be cut into shares.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_ENCODER_H
#define LH_CODING_ENCODER_H

#include <longhaul/code.h>

/* Runs shares 0 … shares - 1, each once, on the threads and the caller; returns when all are done. One call
 * at a time. */
void encoder_share_out(struct lh_encoder *encoder, uint64_t shares,
                       void (*run)(void *argument, uint64_t share), void *argument);

#endif
