/*
 * control_parts.h - a message of the layer above that arrives in parts, where packets are short. Pure.
 *
 * Parts leave one after the other, and are taken in that order: one that is missing or late loses its
 * message, as the network may lose any.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_CONTROL_PARTS_H
#define LH_WIRE_CONTROL_PARTS_H

#include <stdbool.h>

#include "wire/control.h"

/* All zero: none has come. */
struct parts {
    uint32_t number; /* of the message */
    uint32_t whole;  /* its bytes */
    uint32_t come;   /* of these */
    uint8_t data[CONTROL_PAYLOAD_MAX];
};

/* A part that was decoded. True: the message is whole, data[0 … whole). */
bool parts_add(struct parts *parts, const struct control_part *part);

#endif
