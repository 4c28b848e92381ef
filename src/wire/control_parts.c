/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/control_parts.h"

#include <assert.h>
#include <string.h>

#define LATE_MAX 256 /* messages: what is further behind is of a peer that lied about a number */

static bool is_late(const struct control_parts_message *message, uint32_t number)
{
    int32_t ahead = (int32_t)(number - message->number);
    return message->whole != 0 && ahead < 0 && ahead >= -LATE_MAX;
}

static void start(struct control_parts_message *message, const struct control_part *part)
{
    message->number = part->number;
    message->whole = part->whole;
    message->come = 0;
    memset(message->there, 0, sizeof message->there);
}

const struct control_parts_message *control_parts_add(struct control_parts *parts,
                                                      const struct control_part *part)
{
    struct control_parts_message *message = &parts->messages[part->number % CONTROL_PARTS_MESSAGES];
    uint32_t end = part->offset + part->bytes;
    assert(part->bytes > 0 && end <= part->whole);
    assert(part->whole <= sizeof message->data);
    if (is_late(message, part->number))
        return NULL;
    if (message->whole == 0 || part->number != message->number)
        start(message, part);
    if (part->whole != message->whole || lh_bitmap_next_set(message->there, end, part->offset) < end)
        return NULL; /* none of ours, or once more */
    lh_bitmap_set_range(message->there, part->offset, part->bytes);
    memcpy(message->data + part->offset, part->data, part->bytes);
    message->come += part->bytes;
    return message->come == message->whole ? message : NULL;
}
