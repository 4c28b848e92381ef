/*
 * fuzz_pause_frame.c - a frame of priority flow control from anyone: decoding, and its way back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is decoded encodes to the same frame, but for what a reader does not look at. */
static void check_frame(const uint8_t *data, size_t size)
{
    struct lh_pfc_frame frame;
    struct lh_pfc_frame again;
    uint8_t out[LH_PFC_FRAME_BYTES];
    if (lh_pfc_frame_decode(data, size, &frame) != 0)
        return;
    assert(size == sizeof out);
    lh_pfc_frame_encode(&frame, out);
    assert(memcmp(out, data, 16) == 0 && out[17] == data[17]);
    for (unsigned p = 0; p < LH_PFC_PRIORITIES; p++) {
        bool enabled = (frame.enabled >> p & 1) != 0;
        assert(enabled || frame.quanta[p] == 0);
        assert(!enabled || memcmp(out + 18 + 2 * p, data + 18 + 2 * p, 2) == 0);
    }
    assert(lh_pfc_frame_decode(out, sizeof out, &again) == 0);
    assert(memcmp(&again, &frame, sizeof frame) == 0);
}

/* Any fields make a frame that is read as it was meant. */
static void check_fields(const uint8_t *data)
{
    struct lh_pfc_frame frame;
    struct lh_pfc_frame read;
    uint8_t out[LH_PFC_FRAME_BYTES];
    memcpy(frame.source, data, 6);
    frame.enabled = data[6];
    for (unsigned p = 0; p < LH_PFC_PRIORITIES; p++)
        frame.quanta[p] = (uint16_t)(data[7 + 2 * p] << 8 | data[8 + 2 * p]);
    lh_pfc_frame_encode(&frame, out);
    assert(lh_pfc_frame_decode(out, sizeof out, &read) == 0 && read.enabled == frame.enabled);
    for (unsigned p = 0; p < LH_PFC_PRIORITIES; p++)
        assert(read.quanta[p] == ((frame.enabled >> p & 1) != 0 ? frame.quanta[p] : 0));
    check_frame(out, sizeof out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_frame(data, size);
    if (size >= 23)
        check_fields(data);
    return 0;
}
