/* Whatever a client says first: decoded without harm, and what passes can be said again word for word.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "launch/handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct handshake_header header;
    struct handshake_proposal said;
    uint8_t same[HANDSHAKE_HEADER_BYTES];
    if (size < HANDSHAKE_HEADER_BYTES || handshake_header_decode(data, &header) != 0)
        return 0;
    handshake_header_encode(&header, same);
    assert(memcmp(same, data, sizeof same) == 0);
    assert(header.type != HANDSHAKE_BUSY || header.version >= HANDSHAKE_VERSION_BUSY);
    assert(header.type != HANDSHAKE_MORE || header.version >= HANDSHAKE_VERSION_STREAMS);
    assert(header.type != HANDSHAKE_COOKIE || header.version >= HANDSHAKE_VERSION_COOKIE);
    assert(header.stream == 0 || header.version >= HANDSHAKE_VERSION_STREAMS);
    uint32_t bytes = header.body_bytes;
    assert(bytes <= HANDSHAKE_BODY_MAX);
    if (bytes > size - HANDSHAKE_HEADER_BYTES ||
        handshake_proposal_decode(data + HANDSHAKE_HEADER_BYTES, bytes, &said))
        return 0;
    assert(handshake_link_check(&said.link) == 0);
    uint8_t again[HANDSHAKE_BODY_MAX];
    struct handshake_proposal twice;
    assert(handshake_proposal_decode(again, handshake_proposal_encode(&said, again), &twice) == 0);
    assert(twice.slot_bytes == said.slot_bytes && twice.mtu_bytes == said.mtu_bytes);
    struct handshake_proposal agreed = handshake_agree(&said, &twice);
    assert(agreed.slot_bytes % agreed.chunk_bytes == 0 && agreed.chunk_bytes % agreed.mtu_bytes == 0);
    return 0;
}
