/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/bounded_completion.h"

#include <assert.h>
#include <stdbool.h>

#include "base/big_endian.h"

static bool kind_known(uint32_t kind)
{
    return kind == BOUNDED_END || kind == BOUNDED_ACK;
}

size_t bounded_message_encode(const struct bounded_message *message, uint8_t out[BOUNDED_MESSAGE_BYTES])
{
    assert(kind_known(message->kind));
    lh_put_be32(out, (uint32_t)message->kind << 24);
    lh_put_be32(out + 4, message->place);
    return BOUNDED_MESSAGE_BYTES;
}

int bounded_message_decode(const uint8_t *data, size_t bytes, struct bounded_message *message)
{
    if (bytes != BOUNDED_MESSAGE_BYTES || !kind_known(data[0]) || (lh_get_be32(data) & 0xffffff) != 0)
        return -1;
    *message = (struct bounded_message){.kind = (enum bounded_kind)data[0], .place = lh_get_be32(data + 4)};
    return 0;
}
