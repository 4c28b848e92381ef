/*
 * fuzz_xdp_frame.c - an Ethernet frame from anyone: what is parsed lies inside the frame, and is the datagram
 * that a frame built from it has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/xdp/xdp_frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAYLOAD_MAX 4096u

static void check_again(const struct xdp_datagram *read)
{
    static const uint8_t here[XDP_MAC_BYTES] = {2}, there[XDP_MAC_BYTES] = {4};
    static uint8_t frame[XDP_FRAME_HEADER_MAX + PAYLOAD_MAX];
    struct xdp_flow flow;
    struct xdp_datagram again;
    if (read->bytes > PAYLOAD_MAX)
        return;
    xdp_flow_make(&flow, here, there, &read->from, &read->to, false);
    memcpy(frame + flow.header_bytes, read->payload, read->bytes);
    uint32_t bytes = xdp_frame_finish(&flow, frame, read->bytes, read->ip_id);
    bool parsed = xdp_frame_parse(frame, bytes, &again);
    assert(parsed && again.bytes == read->bytes && again.ip_id == read->ip_id && !again.marked);
    assert(udp_address_same_host(&again.from, &read->from) && udp_address_same_host(&again.to, &read->to));
    assert(udp_address_port(&again.from) == udp_address_port(&read->from));
    assert(udp_address_port(&again.to) == udp_address_port(&read->to));
    assert(memcmp(again.payload, read->payload, read->bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xdp_datagram datagram;
    if (size > UINT16_MAX || !xdp_frame_parse(data, (uint32_t)size, &datagram))
        return 0;
    assert(datagram.payload >= data && datagram.payload + datagram.bytes <= data + size);
    check_again(&datagram);
    return 0;
}
