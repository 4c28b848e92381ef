/*
 * silent_machine.h - the parts of a test's own scheme whose machines never say a word to each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_SILENT_MACHINE_H
#define LH_TESTS_SUPPORT_SILENT_MACHINE_H

#include <longhaul/scheme.h>

static inline void silent_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                                            const struct lh_sender_view *view)
{
    (void)state, (void)data, (void)bytes, (void)view;
}

static inline void silent_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                                              const struct lh_receiver_view *view)
{
    (void)state, (void)data, (void)bytes, (void)view;
}

/* A receiver that keeps nothing. */
static inline size_t silent_receiver_bytes(uint32_t chunks_max)
{
    (void)chunks_max;
    return 0;
}

static inline void silent_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    (void)state, (void)transfer, (void)now;
}

#endif
