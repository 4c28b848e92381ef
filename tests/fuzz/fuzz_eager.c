/*
 * fuzz_eager.c - whatever decodes has entries within its bytes, and each of them is encoded to one that
 * decodes to the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/eager.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eager_packet packet, again;
    struct eager_entry entry, same;
    struct eager_writer writer;
    uint8_t out[EAGER_BYTES_MAX], *payload;
    if (eager_decode(data, size, &packet) != 0 || !(packet.flags & EAGER_HAS_ENTRIES))
        return 0;
    while (eager_next_entry(&packet, &entry)) { /* each is written alone */
        assert(entry.data >= data && entry.data + entry.data_bytes <= data + size);
        eager_write_begin(&writer, out, EAGER_BYTES_MAX, packet.carrier, NULL);
        bool fits = eager_write_entry(&writer, &entry, &payload);
        assert(fits);
        memcpy(payload, entry.data, entry.data_bytes);
        int error = eager_decode(out, writer.bytes, &again);
        bool found = eager_next_entry(&again, &same);
        assert(error == 0 && found && same.message == entry.message && same.bytes == entry.bytes);
        assert(same.tag == entry.tag && same.unit == entry.unit && same.is_long == entry.is_long);
        (void)(fits && found && error);
    }
    return 0;
}
