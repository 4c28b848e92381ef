/*
 * fuzz_onesided.c - whatever decodes is encoded to the same bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/eager_packets.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct onesided_exchange exchange;
    struct onesided_header header;
    uint8_t out[ONESIDED_EXCHANGE_BYTES_MAX];
    if (onesided_exchange_decode(data, size, &exchange) == 0) {
        size_t bytes = onesided_exchange_encode(&exchange, out);
        assert(bytes == size && memcmp(out, data, size) == 0);
    }
    if (onesided_header_decode(data, size, &header) == 0) {
        size_t bytes = onesided_header_encode(&header, out);
        assert(bytes == size && memcmp(out, data, size) == 0);
    }
    return 0;
}
