/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/message_table.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <longhaul/stats.h>

#include "base/bitmap.h"
#include "fabric/fabric.h"
#include "wire/roce_packet.h"

/* ---- message extent -------------------------------------------------------------------------------- */

#define FIXED ((uint64_t)1 << 63)
#define SHORT ((uint64_t)1 << 62) /* the short packet has come: it ends where the message does */
#define FLAGS (FIXED | SHORT)

static uint32_t end_of(uint64_t word)
{
    return (uint32_t)word;
}

/* One past the highest full packet. */
static uint32_t top_of(uint64_t word)
{
    return (uint32_t)((word & ~FLAGS) >> 32);
}

static uint64_t make(uint64_t flags, uint32_t top, uint64_t end)
{
    assert(top < 1u << 30 && end <= UINT32_MAX);
    return flags | (uint64_t)top << 32 | end;
}

static bool change(struct message_extent *extent, uint64_t *from, uint64_t to)
{
    return atomic_compare_exchange_weak_explicit(&extent->word, from, to, memory_order_relaxed,
                                                 memory_order_relaxed);
}

void message_extent_open(struct message_extent *extent, uint64_t room_bytes)
{
    atomic_store_explicit(&extent->word, make(0, 0, room_bytes), memory_order_relaxed);
}

uint64_t message_extent_full(struct message_extent *extent, uint32_t mtu, uint32_t first, uint64_t mask)
{
    assert(mask != 0);
    uint64_t word = atomic_load_explicit(&extent->word, memory_order_relaxed);
    for (;;) { /* until no other thread is in between: each of those makes the message longer, or ends it */
        uint32_t top = first + 64 - (uint32_t)__builtin_clzll(mask);
        if (top <= top_of(word))
            return mask;
        if ((uint64_t)top * mtu > end_of(word)) {
            uint32_t whole = end_of(word) / mtu;
            mask = whole > first ? mask & (((uint64_t)1 << (whole - first)) - 1) : 0;
            if (mask == 0)
                return 0;
            continue;
        }
        if (change(extent, &word, make(word & FLAGS, top, end_of(word))))
            return mask;
    }
}

bool message_extent_short(struct message_extent *extent, uint32_t mtu, uint32_t packet, uint32_t bytes)
{
    assert(bytes > 0 && bytes < mtu);
    uint64_t end = (uint64_t)packet * mtu + bytes;
    uint64_t word = atomic_load_explicit(&extent->word, memory_order_relaxed);
    do {
        bool possible = (word & FIXED) != 0 ? end == end_of(word) : end <= end_of(word);
        if (!possible || packet < top_of(word))
            return false;
    } while (!change(extent, &word, make(FLAGS, top_of(word), end)));
    return true;
}

bool message_extent_fix(struct message_extent *extent, uint32_t mtu, uint64_t bytes)
{
    uint64_t word = atomic_load_explicit(&extent->word, memory_order_relaxed);
    do {
        uint64_t arrived = (word & SHORT) != 0 ? end_of(word) : (uint64_t)top_of(word) * mtu;
        if (bytes > end_of(word) || bytes < arrived)
            return false;
    } while (!change(extent, &word, make(FIXED | (word & SHORT), top_of(word), bytes)));
    return true;
}

uint64_t message_extent_end(const struct message_extent *extent)
{
    return end_of(atomic_load_explicit(&extent->word, memory_order_relaxed));
}

/* ---- message table --------------------------------------------------------------------------------- */

#define WORD_LOG     6u /* packets of a bitmap word, as a power of two */
#define WORD_PACKETS (1u << WORD_LOG)

static size_t round_up(size_t bytes)
{
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

static uint32_t packets_of(const struct message_shape *shape, uint64_t bytes)
{
    return (uint32_t)((bytes + shape->mtu_bytes - 1) / shape->mtu_bytes);
}

static uint32_t chunks_of(const struct message_shape *shape, uint32_t packets)
{
    return (packets + shape->chunk_packets - 1) / shape->chunk_packets;
}

uint32_t message_table_room(const struct message_table *table, uint64_t bytes)
{
    assert(bytes <= table->shape.slot_bytes);
    uint32_t chunks = chunks_of(&table->shape, packets_of(&table->shape, bytes));
    uint32_t room = 1;
    while (room < chunks) /* at most 32 times */
        room *= 2;
    return room < table->chunks_max ? room : table->chunks_max;
}

/* The packet bitmap holds whole chunks, so that the bits past a message's end can be set like any other. */
static size_t packets_bytes(const struct message_table *table, uint32_t chunk_room)
{
    return round_up(LH_BITMAP_WORDS((size_t)chunk_room * table->shape.chunk_packets) * sizeof(uint64_t));
}

size_t message_table_bytes(const struct message_table *table, uint32_t chunk_room)
{
    bool counts = table->shape.chunk_packets > WORD_PACKETS;
    return packets_bytes(table, chunk_room) + round_up(chunk_room) +
           (counts ? round_up(chunk_room * sizeof(uint32_t)) : 0);
}

void message_table_init(struct message_table *table, const struct message_shape *shape,
                        struct message_slot *slots)
{
    assert(shape->slots > 0 && shape->mtu_bytes > 0 && shape->generations > 0);
    assert(shape->chunk_packets > 0 && (shape->chunk_packets & (shape->chunk_packets - 1)) == 0);
    assert(shape->split.offset_bits >= WORD_LOG);
    table->shape = *shape;
    table->packets_max = packets_of(shape, shape->slot_bytes);
    table->chunks_max = chunks_of(shape, table->packets_max);
    table->chunk_log = (uint32_t)__builtin_ctz(shape->chunk_packets);
    table->chunk_firsts =
        shape->chunk_packets < WORD_PACKETS ? UINT64_MAX / (((uint64_t)1 << shape->chunk_packets) - 1) : 1;
    table->slots = slots;
}

void *message_slot_set_memory(struct message_table *table, uint32_t index, void *memory,
                              uint32_t chunk_room)
{
    assert(index < table->shape.slots && (memory || chunk_room == 0));
    struct message_slot *slot = &table->slots[index];
    assert(!slot->open);
    void *before = (void *)slot->packets;
    uint8_t *next = memory;
    slot->packets = memory;
    slot->chunk_room = chunk_room;
    slot->packet_count = 0;
    slot->chunk_count = 0;
    slot->chunks = memory ? (_Atomic uint8_t *)(next += packets_bytes(table, chunk_room)) : NULL;
    slot->chunk_left = memory ? (_Atomic uint32_t *)(void *)(next + round_up(chunk_room)) : NULL;
    return before;
}

/* Marks chunks whole. Release: whoever sees the byte sees the payload. */
static void chunk_done(struct message_slot *slot, uint32_t chunk)
{
    atomic_store_explicit(&slot->chunks[chunk], 1, memory_order_release);
}

/* For chunks of 64 packets and less: a bit at the first packet of each chunk of a word that is whole. */
static uint64_t whole_chunks(const struct message_table *table, uint64_t packets)
{
    for (uint32_t span = 1; span < table->shape.chunk_packets; span *= 2) /* at most 6 times */
        packets &= packets >> span;
    return packets & table->chunk_firsts;
}

/* A word of the packet bitmap went from `old` to `now`: marks the chunks that this made whole. */
static uint32_t fold_small_chunks(const struct message_table *table, struct message_slot *slot,
                                  uint32_t word, uint64_t old, uint64_t now)
{
    uint64_t done = whole_chunks(table, now) & ~whole_chunks(table, old);
    for (uint64_t left = done; left; left &= left - 1) /* at most 64 times */
        chunk_done(slot, (word * WORD_PACKETS + (uint32_t)__builtin_ctzll(left)) >> table->chunk_log);
    return (uint32_t)__builtin_popcountll(done);
}

static uint32_t fold_large_chunk(struct message_slot *slot, uint32_t chunk_packets, uint32_t word,
                                 uint32_t fresh)
{
    uint32_t chunk = word / (chunk_packets / WORD_PACKETS);
    uint32_t left = atomic_fetch_sub_explicit(&slot->chunk_left[chunk], fresh, memory_order_acq_rel);
    assert(left >= fresh);
    if (left != fresh)
        return 0;
    chunk_done(slot, chunk);
    return 1;
}

/* Sets bits of one word and folds; returns those that were not set before. */
static uint64_t set_bits(const struct message_table *table, struct message_slot *slot, uint32_t word,
                         uint64_t mask)
{
    uint64_t old = atomic_fetch_or_explicit(&slot->packets[word], mask, memory_order_acq_rel);
    uint64_t fresh = mask & ~old;
    if (!fresh)
        return 0;
    uint32_t chunk_packets = table->shape.chunk_packets;
    uint32_t done = chunk_packets <= WORD_PACKETS ? fold_small_chunks(table, slot, word, old, old | mask)
                                                  : fold_large_chunk(slot, chunk_packets, word,
                                                                     (uint32_t)__builtin_popcountll(fresh));
    if (done)
        atomic_fetch_add_explicit(&slot->chunks_arrived, done, memory_order_release);
    return fresh;
}

static void set_bit_range(const struct message_table *table, struct message_slot *slot, uint32_t first,
                          uint32_t end)
{
    while (first < end) { /* a word each time */
        uint32_t word = first / WORD_PACKETS;
        uint32_t shift = first % WORD_PACKETS;
        uint32_t count = end - first < WORD_PACKETS - shift ? end - first : WORD_PACKETS - shift;
        uint64_t ones = count == WORD_PACKETS ? UINT64_MAX : ((uint64_t)1 << count) - 1;
        set_bits(table, slot, word, ones << shift);
        first += count;
    }
}

void message_slot_open(struct message_table *table, uint32_t index, uint64_t bytes)
{
    assert(index < table->shape.slots && bytes <= table->shape.slot_bytes);
    struct message_slot *slot = &table->slots[index];
    assert(!slot->open);
    slot->packet_count = packets_of(&table->shape, bytes);
    slot->message_packets = slot->packet_count;
    slot->chunk_count = chunks_of(&table->shape, slot->packet_count);
    assert(slot->packets && slot->chunk_count <= slot->chunk_room);
    atomic_store_explicit(&slot->phantom_chunks, 0, memory_order_relaxed);
    uint32_t rounded = slot->chunk_count * table->shape.chunk_packets;
    memset((void *)slot->packets, 0, LH_BITMAP_WORDS((size_t)rounded) * sizeof(uint64_t));
    memset((void *)slot->chunks, 0, slot->chunk_count);
    for (uint32_t i = 0; table->shape.chunk_packets > WORD_PACKETS && i < slot->chunk_count; i++)
        atomic_store_explicit(&slot->chunk_left[i], table->shape.chunk_packets, memory_order_relaxed);
    atomic_store_explicit(&slot->chunks_arrived, 0, memory_order_relaxed);
    message_extent_open(&slot->extent, bytes);
    atomic_store_explicit(&slot->immediate, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->fragments, 0, memory_order_relaxed);
    set_bit_range(table, slot, slot->packet_count, rounded);
    slot->open = true;
}

void message_slot_close(struct message_table *table, uint32_t index)
{
    assert(index < table->shape.slots);
    struct message_slot *slot = &table->slots[index];
    assert(slot->open);
    slot->open = false;
    slot->generation = (uint8_t)((slot->generation + 1u) % table->shape.generations);
}

bool message_slot_truncate(struct message_table *table, uint32_t index, uint64_t bytes)
{
    assert(index < table->shape.slots);
    struct message_slot *slot = &table->slots[index];
    uint32_t packets = packets_of(&table->shape, bytes);
    assert(slot->open && packets <= slot->packet_count);
    if (packets > slot->message_packets ||
        !message_extent_fix(&slot->extent, table->shape.mtu_bytes, bytes))
        return false;
    slot->message_packets = packets;
    /* First what is to be taken off, then the bits: a reader in between sees too few chunks, never too
     * many. */
    atomic_store_explicit(&slot->phantom_chunks, slot->chunk_count - chunks_of(&table->shape, packets),
                          memory_order_release);
    set_bit_range(table, slot, packets, slot->packet_count);
    return true;
}

uint32_t message_slot_chunks_arrived(const struct message_slot *slot)
{
    uint32_t arrived = atomic_load_explicit(&slot->chunks_arrived, memory_order_acquire);
    uint32_t phantom = atomic_load_explicit(&slot->phantom_chunks, memory_order_acquire);
    return arrived > phantom ? arrived - phantom : 0;
}

static bool fragments_whole(const struct message_table *table, const struct message_slot *slot)
{
    uint32_t all = immediate_fragments(table->shape.split);
    uint32_t mask = all == 32 ? UINT32_MAX : (1u << all) - 1;
    return atomic_load_explicit(&slot->fragments, memory_order_acquire) == mask;
}

bool message_slot_immediate(const struct message_table *table, const struct message_slot *slot,
                            uint32_t *immediate)
{
    if (!fragments_whole(table, slot))
        return false;
    *immediate = atomic_load_explicit(&slot->immediate, memory_order_relaxed);
    return true;
}

static void add_fragment(const struct message_table *table, struct message_slot *slot, uint32_t immediate)
{
    struct immediate_fields fields = immediate_part(table->shape.split, immediate);
    uint32_t index = fields.packet % immediate_fragments(table->shape.split);
    if (atomic_load_explicit(&slot->fragments, memory_order_relaxed) & (1u << index))
        return;
    atomic_fetch_or_explicit(&slot->immediate,
                             fields.fragment << (index * table->shape.split.fragment_bits),
                             memory_order_relaxed);
    atomic_fetch_or_explicit(&slot->fragments, 1u << index, memory_order_release);
}

static struct message_slot *slot_of(const struct message_table *table, uint32_t message, uint8_t generation)
{
    if (message >= table->shape.slots || !table->slots)
        return NULL;
    struct message_slot *slot = &table->slots[message];
    return slot->open && slot->generation == generation ? slot : NULL;
}

struct tally {
    uint64_t packets, bytes, duplicates, stale, refused;
};

static void tally_flush(const struct tally *tally, struct lh_stats *stats)
{
    fabric_count(stats, rx_packets, tally->packets);
    fabric_count(stats, rx_bytes, tally->bytes);
    if (tally->duplicates)
        fabric_count(stats, rx_duplicate_packets, tally->duplicates);
    if (tally->stale)
        fabric_count(stats, rx_stale_packets, tally->stale);
    if (tally->refused)
        fabric_count(stats, bad_length, tally->refused);
}

/* Packets of a batch that fall into one word of one message. They come in bursts, often of a few messages
 * in turn; so the bits of a run are gathered, and set with one atomic operation. */
struct run {
    uint64_t key;              /* of word, message and generation: see key_of() */
    struct message_slot *slot; /* NULL: its use is over */
    uint64_t inside;           /* the packets of the word that the buffer has */
    uint64_t mask;             /* those that arrived */
    uint32_t packets;          /* how many, with duplicates */
    bool has_immediate;        /* no more fragments are wanted */
};

#define RUNS_OPEN 4u /* messages in turn that a batch may mix at full speed */
#define NO_KEY    UINT64_MAX

static uint64_t key_of(const struct fabric_arrival *arrival, uint32_t fragment_bits)
{
    return (uint64_t)arrival->generation << 32 | arrival->immediate >> fragment_bits >> WORD_LOG;
}

static struct run start_run(const struct message_table *table, const struct fabric_arrival *first,
                            uint64_t key)
{
    struct immediate_fields fields = immediate_part(table->shape.split, first->immediate);
    struct run run = {.key = key, .slot = slot_of(table, fields.message, first->generation)};
    if (!run.slot)
        return run;
    uint32_t word_start = fields.packet / WORD_PACKETS * WORD_PACKETS;
    uint32_t room = run.slot->packet_count > word_start ? run.slot->packet_count - word_start : 0;
    run.inside = room >= WORD_PACKETS ? UINT64_MAX : ((uint64_t)1 << room) - 1;
    run.has_immediate = fragments_whole(table, run.slot);
    return run;
}

static void end_run(const struct message_table *table, const struct run *run, struct tally *tally)
{
    if (!run->mask)
        return;
    struct message_slot *slot = run->slot;
    uint32_t mtu = table->shape.mtu_bytes;
    uint32_t word = (uint32_t)run->key & ((1u << (table->shape.split.offset_bits - WORD_LOG)) - 1);
    uint64_t fresh = run->mask & ~atomic_load_explicit(&slot->packets[word], memory_order_relaxed);
    tally->duplicates += run->packets - (uint32_t)__builtin_popcountll(fresh);
    if (!fresh)
        return;
    uint64_t taken = message_extent_full(&slot->extent, mtu, word * WORD_PACKETS, fresh);
    if (taken)
        set_bits(table, slot, word, taken);
    uint32_t refused = (uint32_t)__builtin_popcountll(fresh ^ taken);
    tally->refused += refused;
    tally->packets -= refused;
    tally->bytes -= (uint64_t)refused * mtu;
}

static void note_fragment(const struct message_table *table, struct run *run, uint32_t immediate)
{
    if (run->has_immediate)
        return;
    add_fragment(table, run->slot, immediate);
    run->has_immediate = fragments_whole(table, run->slot);
}

static void add_to_run(const struct message_table *table, struct run *run,
                       const struct fabric_arrival *arrival, struct tally *tally)
{
    /* An empty packet only carries its fragment: short messages send some of them (see send_queue.h). */
    uint32_t place = arrival->immediate >> table->shape.split.fragment_bits & (WORD_PACKETS - 1);
    uint64_t bit = (uint64_t)(arrival->bytes > 0) << place & run->inside;
    if (!run->slot || (bit == 0 && arrival->bytes > 0)) {
        tally->stale++;
        return;
    }
    tally->packets++;
    tally->bytes += arrival->bytes;
    note_fragment(table, run, arrival->immediate);
    run->mask |= bit;
    run->packets += bit != 0;
}

/* The last packet of a message, if it is right: everything before it in the batch is in the bitmap. */
static void take_short(const struct message_table *table, const struct fabric_arrival *arrival,
                       struct tally *tally)
{
    struct immediate_fields fields = immediate_part(table->shape.split, arrival->immediate);
    struct message_slot *slot = slot_of(table, fields.message, arrival->generation);
    if (!slot || fields.packet >= slot->packet_count) {
        tally->stale++;
        return;
    }
    uint32_t word = fields.packet / WORD_PACKETS;
    uint64_t bit = (uint64_t)1 << (fields.packet % WORD_PACKETS);
    bool duplicate = (atomic_load_explicit(&slot->packets[word], memory_order_relaxed) & bit) != 0;
    if (!duplicate &&
        !message_extent_short(&slot->extent, table->shape.mtu_bytes, fields.packet, arrival->bytes)) {
        tally->refused++;
        return;
    }
    tally->packets++;
    tally->bytes += arrival->bytes;
    tally->duplicates += duplicate;
    add_fragment(table, slot, arrival->immediate);
    if (!duplicate)
        set_bits(table, slot, word, bit);
}

static void end_runs(const struct message_table *table, struct run runs[RUNS_OPEN], struct tally *tally)
{
    for (uint32_t r = 0; r < RUNS_OPEN; r++) {
        end_run(table, &runs[r], tally);
        runs[r] = (struct run){.key = NO_KEY};
    }
}

void message_table_on_arrivals(struct message_table *table, const struct fabric_arrival *arrivals,
                               uint32_t count, struct lh_stats *stats)
{
    struct tally tally = {0};
    struct run runs[RUNS_OPEN] = {{.key = NO_KEY}, {.key = NO_KEY}, {.key = NO_KEY}, {.key = NO_KEY}};
    uint32_t mtu = table->shape.mtu_bytes;
    struct run *run = runs;
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (arrivals[i].bytes - 1u < mtu - 1u) { /* neither empty nor full */
            end_runs(table, runs, &tally);
            take_short(table, &arrivals[i], &tally);
            continue;
        }
        uint64_t key = key_of(&arrivals[i], table->shape.split.fragment_bits);
        for (uint32_t r = 0; run->key != key && r < RUNS_OPEN; r++)
            run = &runs[r];
        if (run->key != key) {
            run = &runs[oldest++ % RUNS_OPEN];
            end_run(table, run, &tally);
            *run = start_run(table, &arrivals[i], key);
        }
        add_to_run(table, run, &arrivals[i], &tally);
    }
    end_runs(table, runs, &tally);
    tally_flush(&tally, stats);
}
