/*
 * fuzz_eager.c - whatever decodes has entries within its bytes, and each of them is encoded to one that
 * decodes to the same. Held ahead of their receives, they change nothing but what they are entries of: a
 * message is whole when its units came, and all cells come back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <string.h>

#include "eager/eager_rx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct early early;
static struct early_memory memory;
static uint8_t units[EAGER_CELLS]; /* that were kept, of small messages */

static void put(uint32_t posted, const struct eager_entry *entry)
{
    if (early_put(&early, posted, entry) == EARLY_KEPT && !entry->is_long)
        units[entry->message % EAGER_CELLS] |= (uint8_t)(1u << entry->unit);
}

/* Its receive is posted. */
static void take(uint32_t number)
{
    uint8_t out[EAGER_MAX];
    const struct early_message *message = early_find(&early, number);
    uint8_t *came = &units[number % EAGER_CELLS];
    if (!message)
        return;
    if (message->state == EARLY_LONG)
        assert(*came == 0);
    else {
        assert(message->units == *came);
        assert((message->state == EARLY_WHOLE) == (*came == eager_unit_mask(message->bytes)));
        early_copy(&early, message, out);
    }
    *came = 0;
    early_forget(&early, number);
}

/* Behind as many one-cell messages as the carrier's number says. */
static void hold(struct eager_packet packet)
{
    static const uint8_t cell[EAGER_CELL_BYTES] = {0xFF, 0xFF};
    struct eager_entry entry = {.bytes = sizeof cell, .data = cell, .data_bytes = sizeof cell};
    uint32_t posted = packet.at_message - packet.carrier % EAGER_CELLS;
    early_give_memory(&early, &memory);
    for (entry.message = posted; entry.message != packet.at_message; entry.message++)
        put(posted, &entry);
    while (eager_next_entry(&packet, &entry))
        put(posted, &entry);
    for (uint32_t i = 0; i < EAGER_CELLS; i++)
        take(posted + i);
    assert(early.held == 0 && early.free_cells == EAGER_CELLS);
    struct early_memory *back = early_take_memory(&early);
    assert(back == &memory);
    (void)back;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eager_packet packet, again;
    struct eager_entry entry, same;
    struct eager_writer writer;
    uint8_t out[EAGER_BYTES_MAX], *payload;
    if (eager_decode(data, size, &packet) != 0 || !(packet.flags & EAGER_HAS_ENTRIES))
        return 0;
    hold(packet);
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
