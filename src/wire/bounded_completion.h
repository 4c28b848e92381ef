/*
 * bounded_completion.h - the two messages of bounded completion: END to the receiver, ACK to the sender.
 * Big-endian.
 *
 * END, 8 bytes: kind 1 | zero 3 | injected 4
 * ACK, 8 bytes: kind 1 | zero 3 | through 4
 *
 * Both count places in the order of injection: the chunks of the message, then its parity. END says that
 * nothing follows; it is repeated, for it may be lost. ACK says how far the packets of the transfer have
 * passed: what lies before that has arrived or is lost. Neither asks for anything to be sent again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_BOUNDED_COMPLETION_H
#define LH_WIRE_BOUNDED_COMPLETION_H

#include <stddef.h>
#include <stdint.h>

#define BOUNDED_MESSAGE_BYTES 8u

enum bounded_kind {
    BOUNDED_END = 1,
    BOUNDED_ACK = 2,
};

struct bounded_message {
    enum bounded_kind kind;
    uint32_t place; /* END: one past the last that was injected; ACK: one past the last that arrived */
};

/* Returns the bytes written. */
size_t bounded_message_encode(const struct bounded_message *message, uint8_t out[BOUNDED_MESSAGE_BYTES]);
/* 0, or -1 when a field is impossible or the length is not the message's own. */
int bounded_message_decode(const uint8_t *data, size_t bytes, struct bounded_message *message);

#endif
