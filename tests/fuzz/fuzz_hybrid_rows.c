/*
 * ROWS from any bytes: what decodes encodes to the same bytes again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/scheme_messages.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[HYBRID_ROWS_BYTES + HYBRID_ROWS_MAX];
    struct hybrid_rows rows;
    if (hybrid_rows_decode(data, size, &rows) == 0)
        assert(hybrid_rows_encode(&rows, bytes) == size && memcmp(bytes, data, size) == 0);
    return 0;
}
