/* What comes to a probe, as a UDP packet or as a message over TCP: decoded without harm, and what passes can
 * be said again word for word.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "probe/probe_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hear_packet(const uint8_t *data, size_t size)
{
    struct probe_packet heard, again;
    uint8_t wire[PROBE_HEADER_BYTES];
    if (!probe_packet_decode(data, size, &heard))
        return;
    probe_packet_encode(&heard, wire);
    assert(memcmp(wire, data, sizeof wire) == 0);
    assert(probe_packet_decode(wire, heard.bytes, &again) && again.number == heard.number);
}

static void hear_message(const uint8_t *data, size_t size)
{
    struct probe_message heard;
    uint8_t wire[PROBE_MESSAGE_BYTES_MAX];
    size_t whole;
    if (size >= PROBE_MESSAGE_HEADER_BYTES && probe_message_header(data, &whole) == 0)
        assert(whole <= PROBE_MESSAGE_BYTES_MAX);
    if (probe_message_decode(data, size, &heard) != 0)
        return;
    assert(strlen(heard.text) <= PROBE_TEXT_MAX);
    assert(probe_message_encode(&heard, wire) == size && memcmp(wire, data, size) == 0);
    if (heard.type != PROBE_REPORT)
        return;
    struct model_loss_runs runs = probe_message_runs(&heard);
    struct model_loss_fit fit = model_loss_runs_fit(&runs);
    assert(fit.loss >= 0 && fit.loss <= 1 && fit.burst_packets >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hear_packet(data, size);
    hear_message(data, size);
    return 0;
}
