/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/buffer/buffer.h"

#include <assert.h>
#include <string.h>

#include "base/copy.h"
#include "base/least.h"

/* The part that has this byte; *offset becomes that within the part. */
static const struct message_part *part_at(const struct message_parts *parts, uint64_t *offset)
{
    uint32_t i = 0;
    for (; *offset >= parts->list[i].bytes; i++) {
        *offset -= parts->list[i].bytes;
        assert(i + 1 < parts->count);
    }
    return &parts->list[i];
}

bool buffer_place(const struct message_buffer *buffer, uint64_t offset, uint64_t bytes,
                  struct message_part *place)
{
    *place = (struct message_part){.bytes = bytes};
    if (bytes == 0)
        return true;
    if (!buffer->parts) {
        place->address = buffer->address + offset;
        place->lkey = buffer->lkey;
        return true;
    }
    const struct message_part *part = part_at(buffer->parts, &offset);
    place->address = part->address + offset;
    place->lkey = part->lkey;
    return bytes <= part->bytes - offset;
}

/* The range of one part after the other: at most LH_PARTS_MAX turns. Bytes go out, or come from in. */
static void copy(const struct message_parts *parts, uint64_t offset, uint8_t *out, const uint8_t *in,
                 uint64_t bytes)
{
    const struct message_part *part = part_at(parts, &offset);
    for (uint64_t done = 0; done < bytes; part++, offset = 0) {
        uint64_t n = lh_least(part->bytes - offset, bytes - done);
        assert(part < parts->list + parts->count);
        if (out)
            lh_copy(out + done, part->address + offset, n);
        else
            lh_copy(part->address + offset, in + done, n);
        done += n;
    }
}

void buffer_read(const struct message_buffer *buffer, uint64_t offset, void *out, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (buffer->parts)
        copy(buffer->parts, offset, out, NULL, bytes);
    else
        lh_copy(out, buffer->address + offset, bytes);
}

void buffer_write(const struct message_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (buffer->parts)
        copy(buffer->parts, offset, NULL, data, bytes);
    else
        lh_copy(buffer->address + offset, data, bytes);
}

void buffer_zero(const struct message_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (!buffer->parts) {
        memset(buffer->address + offset, 0, bytes);
        return;
    }
    const struct message_part *part = part_at(buffer->parts, &offset);
    for (uint64_t done = 0; done < bytes; part++, offset = 0) { /* at most LH_PARTS_MAX turns */
        uint64_t n = lh_least(part->bytes - offset, bytes - done);
        assert(part < buffer->parts->list + buffer->parts->count);
        memset(part->address + offset, 0, n);
        done += n;
    }
}
