/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/scatter.h"

#include <assert.h>
#include <string.h>

#define HEADER ROCE_WRITE_IMM_HEADER_BYTES

uint32_t udp_scatter_places_max(uint32_t mtu_bytes)
{
    uint32_t fit = UDP_MESSAGE_MAX / (mtu_bytes + UDP_RECORD_BYTES);
    return fit < UDP_PLACES_MAX ? fit : UDP_PLACES_MAX;
}

size_t udp_scatter_lay_out(struct udp_scatter *scatter)
{
    struct iovec *iov = scatter->iov;
    uint32_t places = scatter->place_count;
    assert(places <= UDP_PLACES_MAX);
    for (uint32_t i = 0; i < places; i++) {
        /* The first record has no iCRC before it. */
        uint32_t skip = i == 0 ? ROCE_ICRC_BYTES : 0;
        *iov++ = (struct iovec){scatter->records[i] + skip, UDP_RECORD_BYTES - skip};
        *iov++ = (struct iovec){scatter->places[i], scatter->mtu_bytes};
    }
    if (places > 0)
        *iov++ = (struct iovec){scatter->records[places], ROCE_ICRC_BYTES};
    *iov++ = (struct iovec){scatter->staging, UDP_MESSAGE_MAX};
    return (size_t)(iov - scatter->iov);
}

uint8_t *udp_scatter_piece(struct udp_scatter *scatter, uint32_t offset, uint32_t want, uint32_t *got)
{
    const uint32_t stride = scatter->mtu_bytes + UDP_RECORD_BYTES;
    uint32_t end; /* of the piece, counted from the start of its packet */
    uint8_t *piece;
    if (!udp_scatter_is_placed(scatter, offset)) {
        uint32_t staged = offset - scatter->place_count * stride;
        assert(staged <= UDP_MESSAGE_MAX);
        *got = want;
        return scatter->staging + staged;
    }
    uint32_t index = offset / stride;
    uint32_t within = offset % stride;
    if (within < HEADER) {
        piece = scatter->records[index] + ROCE_ICRC_BYTES + within;
        end = HEADER;
    } else if (within < HEADER + scatter->mtu_bytes) {
        piece = scatter->places[index] + (within - HEADER);
        end = HEADER + scatter->mtu_bytes;
    } else {
        piece = scatter->records[index + 1] + (within - HEADER - scatter->mtu_bytes);
        end = stride;
    }
    *got = want < end - within ? want : end - within;
    return piece;
}

void udp_scatter_gather(struct udp_scatter *scatter, uint32_t offset, uint32_t bytes, uint8_t *out)
{
    while (bytes > 0) { /* each round takes a byte or more */
        uint32_t got;
        const uint8_t *piece = udp_scatter_piece(scatter, offset, bytes, &got);
        memcpy(out, piece, got);
        out += got;
        offset += got;
        bytes -= got;
    }
}
