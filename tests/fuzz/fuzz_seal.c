/*
 * fuzz_seal.c - a UDP payload from anyone at an encrypted endpoint: nothing opens but what was sealed, by
 * either backend, and the window never takes a count twice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/seal.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE_MAX_FUZZED 9000u

static void open_by(enum seal_backend backend, const uint8_t *data, uint32_t size)
{
    static uint8_t plain[SIZE_MAX_FUZZED];
    static const uint8_t bytes[32] = {0x4C, 0x48};
    struct seal_key key = {0};
    if (!seal_has_backend(backend) || seal_key_set(&key, backend, bytes, 32, true) != 0)
        return;
    assert(!seal_open(&key, data, size, plain));
    seal_key_wipe(&key);
}

/* The input as a text: it comes back, and no more once a byte has changed. */
static void check_again(const uint8_t *data, uint32_t size, const struct seal_header *header)
{
    static uint8_t packet[SIZE_MAX_FUZZED + SEAL_BYTES], plain[SIZE_MAX_FUZZED];
    static const uint8_t bytes[32] = {0x4C, 0x49};
    struct seal_key seals = {0}, opens = {0};
    struct seal_header read;
    if (seal_key_set(&seals, SEAL_FASTEST, bytes, 32, false) != 0 ||
        seal_key_set(&opens, SEAL_LIBCRYPTO, bytes, 32, true) != 0)
        return;
    const struct seal_text text = {data, size / 3, data + size / 3, size - size / 3};
    uint32_t length = seal_packet(&seals, header, &text, packet);
    assert(length == size + SEAL_BYTES && seal_read(packet, length, 32, &read));
    assert(read.spi == header->spi && read.kind == header->kind && read.count == header->count);
    assert(seal_open(&opens, packet, length, plain) && memcmp(plain, data, size) == 0);
    packet[header->count % length] ^= (uint8_t)(1u << (header->spi % 8));
    assert(!seal_open(&opens, packet, length, plain));
    seal_key_wipe(&seals);
    seal_key_wipe(&opens);
}

static void check_window(const uint8_t *data, size_t size)
{
    static struct seal_window window;
    memset(&window, 0, sizeof window);
    for (size_t i = 0; i + 3 <= size; i += 3) {
        uint64_t count = (uint64_t)data[i] << 16 | (uint64_t)data[i + 1] << 8 | data[i + 2];
        if (!seal_window_takes(&window, count))
            continue;
        seal_window_add(&window, count);
        assert(!seal_window_takes(&window, count));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seal_header header;
    if (size > SIZE_MAX_FUZZED)
        return 0;
    check_window(data, size);
    if (!seal_read(data, (uint32_t)size, 32, &header))
        return 0;
    open_by(SEAL_LIBCRYPTO, data, (uint32_t)size);
    open_by(SEAL_IPSEC_MB, data, (uint32_t)size);
    check_again(data, (uint32_t)size, &header);
    return 0;
}
