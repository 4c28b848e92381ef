/*
 * fuzz_control.c - a control message from anyone.
 *
 * Each valid message has one encoding only, so what decodes must encode to the very same bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/control_messages.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct control_message message;
    uint8_t again[CONTROL_PROBE_MAX];
    if (control_decode(data, size, &message) != 0)
        return 0;
    assert(control_encode(&message, again) == size);
    assert(memcmp(again, data, size) == 0);
    return 0;
}
