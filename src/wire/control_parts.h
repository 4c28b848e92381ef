/*
 * control_parts.h - messages of the layer above that arrive in parts, where packets are short. Pure.
 *
 * Parts leave one right after the other, and come in any order: a path with jitter mixes them, and those of
 * the next messages with them. A part that is lost loses its message, as the network may lose any.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_CONTROL_PARTS_H
#define LH_WIRE_CONTROL_PARTS_H

#include "base/bitmap.h"
#include "wire/control.h"

#define CONTROL_PARTS_MESSAGES 4u /* that arrive at once; a power of two, for numbers wrap */

struct control_parts_message {
    uint32_t number;
    uint32_t whole;                                     /* its bytes; 0: none has come */
    uint32_t come;                                      /* of these */
    uint64_t there[LH_BITMAP_WORDS(CONTROL_PARTS_MAX)]; /* bit i: byte i has come */
    uint8_t data[CONTROL_PARTS_MAX];
};

/* All zero: none has come. */
struct control_parts {
    struct control_parts_message messages[CONTROL_PARTS_MESSAGES]; /* a message's by its number */
};

/* A part that was decoded. The message, when this made it whole: data[0 … whole), until the next call; else
 * NULL. */
const struct control_parts_message *control_parts_add(struct control_parts *parts,
                                                      const struct control_part *part);

#endif
