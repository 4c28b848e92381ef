/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/control_parts.h"

#include <assert.h>
#include <string.h>

bool parts_add(struct parts *parts, const struct control_part *part)
{
    assert(part->bytes > 0 && part->offset + part->bytes <= part->whole);
    assert(part->whole <= sizeof parts->data);
    if (part->offset == 0) {
        parts->number = part->number;
        parts->whole = part->whole;
        parts->come = 0;
    }
    if (part->number != parts->number || part->whole != parts->whole || part->offset != parts->come)
        return false;
    memcpy(parts->data + parts->come, part->data, part->bytes);
    parts->come += part->bytes;
    return parts->come == parts->whole;
}
