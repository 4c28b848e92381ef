/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/onesided.h"

#include <assert.h>
#include <string.h>

#include "base/big_endian.h"
#include "wire/eager.h"

#define RANGE_BYTES     28u /* of WRITE and READ */
#define IMMEDIATE_BYTES 8u
#define ANSWER_BYTES    8u
#define FLAGS_ALL       (ONESIDED_HAS_PEER | ONESIDED_ASKS | ONESIDED_ANSWERS)

static_assert(ONESIDED_KIND > EAGER_KIND, "kinds differ");
static_assert(ONESIDED_EXCHANGE_BYTES + ONESIDED_BLOB_MAX <= ONESIDED_EXCHANGE_BYTES_MAX, "a blob fits");
static_assert(RANGE_BYTES + IMMEDIATE_BYTES == ONESIDED_HEADER_MAX, "the longest header");

/* ---- the exchange of blobs --------------------------------------------------------------------------- */

size_t onesided_exchange_encode(const struct onesided_exchange *exchange, uint8_t *out)
{
    assert(exchange->blob_bytes <= ONESIDED_BLOB_MAX && (exchange->flags & ~FLAGS_ALL) == 0);
    memset(out, 0, ONESIDED_EXCHANGE_BYTES);
    out[0] = ONESIDED_KIND;
    out[1] = exchange->flags;
    lh_put_be32(out + 4, exchange->operations);
    if (exchange->blob_bytes > 0)
        memcpy(out + ONESIDED_EXCHANGE_BYTES, exchange->blob, exchange->blob_bytes);
    return ONESIDED_EXCHANGE_BYTES + exchange->blob_bytes;
}

int onesided_exchange_decode(const uint8_t *data, size_t bytes, struct onesided_exchange *exchange)
{
    if (bytes < ONESIDED_EXCHANGE_BYTES || bytes > ONESIDED_EXCHANGE_BYTES + ONESIDED_BLOB_MAX)
        return -1;
    if (data[0] != ONESIDED_KIND || (data[1] & ~FLAGS_ALL) != 0 || data[2] != 0 || data[3] != 0)
        return -1;
    *exchange = (struct onesided_exchange){
        .flags = data[1],
        .operations = lh_get_be32(data + 4),
        .blob = data + ONESIDED_EXCHANGE_BYTES,
        .blob_bytes = (uint32_t)(bytes - ONESIDED_EXCHANGE_BYTES),
    };
    return 0;
}

/* ---- headers ----------------------------------------------------------------------------------------- */

static size_t put_range(const struct onesided_header *header, uint8_t *out)
{
    lh_put_be64(out + 4, header->key);
    lh_put_be64(out + 12, header->offset);
    lh_put_be64(out + 20, header->bytes);
    return RANGE_BYTES;
}

size_t onesided_header_encode(const struct onesided_header *header, uint8_t *out)
{
    memset(out, 0, 4);
    out[0] = (uint8_t)header->kind;
    switch (header->kind) {
    case ONESIDED_WRITE:
        out[1] = header->notify;
        put_range(header, out);
        if (!header->notify)
            return RANGE_BYTES;
        lh_put_be64(out + RANGE_BYTES, header->immediate);
        return RANGE_BYTES + IMMEDIATE_BYTES;
    case ONESIDED_READ:
        return put_range(header, out);
    case ONESIDED_ANSWER:
        assert(header->error <= INT32_MAX);
        lh_put_be32(out + 4, header->error);
        return ANSWER_BYTES;
    }
    assert(false); /* a header has one of the kinds above */
    return 0;
}

static int decode_range(const uint8_t *data, size_t bytes, struct onesided_header *header)
{
    if (bytes != (header->notify ? RANGE_BYTES + IMMEDIATE_BYTES : RANGE_BYTES))
        return -1;
    header->key = lh_get_be64(data + 4);
    header->offset = lh_get_be64(data + 12);
    header->bytes = lh_get_be64(data + 20);
    header->immediate = header->notify ? lh_get_be64(data + RANGE_BYTES) : 0;
    return 0;
}

static int decode_answer(const uint8_t *data, size_t bytes, struct onesided_header *header)
{
    if (bytes != ANSWER_BYTES)
        return -1;
    header->error = lh_get_be32(data + 4);
    return header->error <= INT32_MAX ? 0 : -1;
}

int onesided_header_decode(const uint8_t *data, size_t bytes, struct onesided_header *header)
{
    if (bytes < ANSWER_BYTES || data[1] > (data[0] == ONESIDED_WRITE) || data[2] != 0 || data[3] != 0)
        return -1;
    *header = (struct onesided_header){.kind = (enum onesided_kind)data[0], .notify = data[1] == 1};
    switch (header->kind) {
    case ONESIDED_WRITE:
    case ONESIDED_READ:
        return decode_range(data, bytes, header);
    case ONESIDED_ANSWER:
        return decode_answer(data, bytes, header);
    }
    return -1;
}
