/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/blob.h"

#include <assert.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "message/connection.h"

#define BLOB_MAGIC   0x4C484331u /* "LHC1" */
#define BLOB_VERSION 1u

static_assert(BLOB_HEADER_BYTES + QP_INFO_BYTES_MAX <= LH_BLOB_MAX, "any blob fits");

int lh_blob(struct lh_connection *connection, void *blob, size_t *bytes)
{
    size_t info_bytes;
    sdr_qp_info_size_get(connection->qp, &info_bytes);
    size_t needed = BLOB_HEADER_BYTES + info_bytes;
    if (*bytes < needed)
        return lh_fail(LH_ERANGE, "blob of %zu bytes does not fit %zu: LH_BLOB_MAX always is enough",
                       needed, *bytes);
    uint8_t *out = blob;
    lh_put_be32(out, BLOB_MAGIC);
    lh_put_be16(out + 4, BLOB_VERSION);
    lh_put_be16(out + 6, (uint16_t)(BLOB_TAGS | BLOB_EAGER | BLOB_MATCH |
                                    (connection->attr.match_tags ? BLOB_MATCHES : 0)));
    sdr_qp_info_get(connection->qp, out + BLOB_HEADER_BYTES);
    *bytes = needed;
    return 0;
}

int blob_decode(const uint8_t *blob, size_t bytes, struct qp_info *info, uint16_t *flags)
{
    if (bytes <= BLOB_HEADER_BYTES || bytes > LH_BLOB_MAX || lh_get_be32(blob) != BLOB_MAGIC)
        return lh_fail(LH_EHANDSHAKE, "malformed connection blob of %zu bytes", bytes);
    if (lh_get_be16(blob + 4) != BLOB_VERSION)
        return lh_fail(LH_EVERSION, "peer's blob has version %u, this side %u: use the same Longhaul",
                       lh_get_be16(blob + 4), BLOB_VERSION);
    *flags = lh_get_be16(blob + 6);
    return qp_info_decode(blob + BLOB_HEADER_BYTES, bytes - BLOB_HEADER_BYTES, info);
}
