/* SPDX-License-Identifier: BSD-3-Clause */
#include "eager/eager_rx.h"

#include <assert.h>
#include <string.h>

#include <longhaul/types.h>

#include "base/min_max.h"
#include "control/message_control.h"
#include "wire/eager_packets.h"

/* ---- early ----------------------------------------------------------------------------------------- */

static_assert((EAGER_CELLS & (EAGER_CELLS - 1)) == 0, "a ring");
static_assert(EAGER_UNIT_BYTES % EAGER_CELL_BYTES == 0, "a unit begins with a cell");

#define CELLS_A_UNIT (EAGER_UNIT_BYTES / EAGER_CELL_BYTES)

void early_give_memory(struct early *early, struct early_memory *memory)
{
    assert(early->held == 0 && !early->memory);
    memset(memory->messages, 0, sizeof memory->messages);
    for (uint32_t i = 0; i < EAGER_CELLS; i++)
        memory->next[i] = (uint16_t)(i + 1);
    *early = (struct early){.memory = memory, .free_cells = EAGER_CELLS};
}

struct early_memory *early_take_memory(struct early *early)
{
    struct early_memory *memory = early->held == 0 ? early->memory : NULL;
    if (memory)
        *early = (struct early){0};
    return memory;
}

/* Where it is, or would be; NULL: all places are taken by others. */
static struct early_message *place_of(const struct early *early, uint32_t number)
{
    for (uint32_t i = 0; i < EAGER_CELLS; i++) {
        struct early_message *place = &early->memory->messages[(number + i) & (EAGER_CELLS - 1)];
        if (place->state == EARLY_NOTHING || place->number == number)
            return place;
    }
    return NULL;
}

/* What comes behind the place, and would not be found past it, moves up. */
static void free_place(struct early *early, const struct early_message *place)
{
    struct early_message *messages = early->memory->messages;
    uint32_t hole = (uint32_t)(place - messages);
    for (uint32_t i = 1; i < EAGER_CELLS; i++) {
        uint32_t from = (uint32_t)(place - messages + i) & (EAGER_CELLS - 1);
        if (messages[from].state == EARLY_NOTHING)
            break;
        uint32_t reach = (from - messages[from].number) & (EAGER_CELLS - 1);
        if (reach < ((from - hole) & (EAGER_CELLS - 1)))
            continue;
        messages[hole] = messages[from];
        hole = from;
    }
    messages[hole] = (struct early_message){0};
}

const struct early_message *early_find(const struct early *early, uint32_t number)
{
    if (!early->memory)
        return NULL;
    const struct early_message *message = place_of(early, number);
    return message && message->state != EARLY_NOTHING ? message : NULL;
}

enum early_state early_state(const struct early *early, uint32_t number)
{
    const struct early_message *message = early_find(early, number);
    return message ? message->state : EARLY_NOTHING;
}

static uint16_t cell_after(const struct early *early, uint16_t cell)
{
    assert(cell < EAGER_CELLS);
    return early->memory->next[cell];
}

static uint8_t *cell_at(const struct early *early, uint16_t cell)
{
    assert(cell < EAGER_CELLS);
    return early->memory->cells[cell];
}

/* A chain of cells; there are enough. */
static uint16_t take_cells(struct early *early, uint32_t count)
{
    assert(count > 0 && count <= early->free_cells);
    uint16_t first = early->free_cell;
    for (uint32_t i = 0; i < count; i++)
        early->free_cell = cell_after(early, early->free_cell);
    early->free_cells -= count;
    return first;
}

static void give_cells(struct early *early, uint16_t first, uint32_t count)
{
    uint16_t last = first;
    for (uint32_t i = 1; i < count; i++)
        last = cell_after(early, last);
    assert(last < EAGER_CELLS);
    early->memory->next[last] = early->free_cell;
    early->free_cell = first;
    early->free_cells += count;
}

static uint32_t cells_of(const struct early_message *message)
{
    return message->state == EARLY_LONG ? 0 : eager_cells(message->bytes);
}

/* NULL: it contradicts what came before, or there is no place. */
static struct early_message *find_or_add(struct early *early, const struct eager_entry *entry)
{
    struct early_message *message = place_of(early, entry->message);
    uint32_t cells = entry->is_long ? 0 : eager_cells(entry->bytes);
    if (!message)
        return NULL;
    if (message->state != EARLY_NOTHING) {
        bool same = message->bytes == entry->bytes && message->tag == entry->tag &&
                    (message->state == EARLY_LONG) == entry->is_long;
        return same ? message : NULL;
    }
    if (cells > early->free_cells)
        return NULL;
    *message = (struct early_message){
        .state = entry->is_long ? EARLY_LONG : EARLY_PARTIAL,
        .number = entry->message,
        .bytes = entry->bytes,
        .tag = entry->tag,
        .cell = cells > 0 ? take_cells(early, cells) : 0,
    };
    early->held++;
    return message;
}

static void write_unit(struct early *early, const struct early_message *message,
                       const struct eager_entry *entry)
{
    uint16_t cell = message->cell;
    for (uint32_t i = 0; i < entry->unit * CELLS_A_UNIT; i++)
        cell = cell_after(early, cell);
    for (uint32_t at = 0; at < entry->data_bytes; at += EAGER_CELL_BYTES) {
        uint32_t left = entry->data_bytes - at;
        memcpy(cell_at(early, cell), entry->data + at, left < EAGER_CELL_BYTES ? left : EAGER_CELL_BYTES);
        cell = cell_after(early, cell);
    }
}

enum early_put early_put(struct early *early, uint32_t posted, const struct eager_entry *entry)
{
    return entry->message - posted < EAGER_CELLS ? early_put_any(early, entry) : EARLY_REFUSED;
}

enum early_put early_put_any(struct early *early, const struct eager_entry *entry)
{
    assert(early->memory);
    struct early_message *message = find_or_add(early, entry);
    uint8_t unit = (uint8_t)(1u << entry->unit);
    if (!message)
        return EARLY_REFUSED;
    if (message->units & unit)
        return EARLY_DUPLICATE;
    message->units |= unit; /* of a long one: it was announced */
    if (entry->is_long)
        return EARLY_KEPT;
    write_unit(early, message, entry);
    if (message->units == eager_unit_mask(message->bytes))
        message->state = EARLY_WHOLE;
    return EARLY_KEPT;
}

void early_copy(const struct early *early, const struct early_message *message, uint8_t *out)
{
    uint16_t cell = message->cell;
    for (uint32_t at = 0; at < message->bytes; at += EAGER_CELL_BYTES) {
        uint32_t left = (uint32_t)message->bytes - at;
        if (message->units >> (at / EAGER_UNIT_BYTES) & 1)
            memcpy(out + at, cell_at(early, cell), left < EAGER_CELL_BYTES ? left : EAGER_CELL_BYTES);
        cell = cell_after(early, cell);
    }
}

void early_forget(struct early *early, uint32_t number)
{
    const struct early_message *message = early_find(early, number);
    if (!message)
        return;
    uint32_t cells = cells_of(message);
    if (cells > 0)
        give_cells(early, message->cell, cells);
    free_place(early, message);
    early->held--;
}

/* ---- inbound --------------------------------------------------------------------------------------- */

#define ACK_FRACTION 4u
#define ACK_MAX_NS   (20 * LH_NS_PER_US)

static void want_ack(struct inbound *inbound, lh_time at)
{
    inbound->ack_at = inbound->ack_wanted ? lh_min(inbound->ack_at, at) : at;
    inbound->ack_wanted = true;
}

void inbound_want_ack(struct inbound *inbound, lh_time rtt_minimum_ns, lh_time now)
{
    want_ack(inbound, now + lh_min(rtt_minimum_ns / ACK_FRACTION, ACK_MAX_NS));
}

void inbound_on_carrier(struct inbound *inbound, const struct eager_packet *packet, lh_time rtt_minimum_ns,
                        lh_time now)
{
    if (!(packet->flags & (EAGER_HAS_ENTRIES | EAGER_PROBE)))
        return;
    if (!inbound->any || number_before(inbound->newest, packet->carrier))
        inbound->newest = packet->carrier;
    inbound->any = true;
    inbound->received++;
    if (packet->flags & EAGER_PROBE)
        want_ack(inbound, now);
    else
        inbound_want_ack(inbound, rtt_minimum_ns, now);
}

void inbound_on_message(struct inbound *inbound, uint32_t number)
{
    if (!inbound->seen || number_before(inbound->seen_next, number + 1))
        inbound->seen_next = number + 1;
    inbound->seen = true;
}

void inbound_on_acknowledged(struct inbound *inbound)
{
    inbound->ack_wanted = false;
}
