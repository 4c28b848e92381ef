/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/udp_queues.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/types.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "wire/roce_packet.h"

/* ---- inbox ----------------------------------------------------------------------------------------- */

#define SLAB_PACKETS 16u

/* The packets follow. */
struct udp_packet_slab {
    struct udp_packet_slab *next;
};

/* Of a packet in a slab. */
static size_t stride_of(const struct udp_packet_pool *pool)
{
    const size_t align = _Alignof(struct udp_packet);
    return (sizeof(struct udp_packet) + pool->packet_bytes + align - 1) / align * align;
}

void udp_pool_free(struct udp_packet_pool *pool)
{
    assert(atomic_load_explicit(&pool->in_use, memory_order_relaxed) == 0);
    while (pool->slabs != NULL) { /* at most UDP_POOL_PACKETS / SLAB_PACKETS */
        struct udp_packet_slab *slab = pool->slabs;
        pool->slabs = slab->next;
        free(slab);
    }
    *pool = (struct udp_packet_pool){.packet_bytes = pool->packet_bytes};
}

/* Whether the list was empty. Once it is in, the packet is another thread's. */
static bool push(_Atomic(struct udp_packet *) *list, struct udp_packet *packet)
{
    struct udp_packet *newest = atomic_load_explicit(list, memory_order_relaxed);
    do { /* until no other thread was faster */
        packet->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(list, &newest, packet, memory_order_release,
                                                    memory_order_relaxed));
    return newest == NULL;
}

static void add_slab(struct udp_packet_pool *pool)
{
    if (pool->made + SLAB_PACKETS > UDP_POOL_PACKETS)
        return;
    size_t stride = stride_of(pool);
    struct udp_packet_slab *slab = malloc(sizeof *slab + SLAB_PACKETS * stride);
    if (slab == NULL)
        return;
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->made += SLAB_PACKETS;
    for (uint32_t i = 0; i < SLAB_PACKETS; i++) {
        struct udp_packet *packet = (struct udp_packet *)((uint8_t *)(slab + 1) + i * stride);
        packet->next = pool->spare;
        pool->spare = packet;
    }
}

static struct udp_packet *take_spare(struct udp_packet_pool *pool)
{
    if (pool->spare == NULL)
        pool->spare = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    if (pool->spare == NULL)
        add_slab(pool);
    struct udp_packet *packet = pool->spare;
    if (packet == NULL)
        return NULL;
    pool->spare = packet->next;
    atomic_fetch_add_explicit(&pool->in_use, 1, memory_order_relaxed);
    return packet;
}

bool udp_pool_has_room(struct udp_packet_pool *pool, uint32_t patience)
{
    uint32_t in_use = atomic_load_explicit(&pool->in_use, memory_order_relaxed);
    if (in_use < UDP_POOL_PACKETS / 2) {
        pool->held_at = 0;
        return true;
    }
    bool taken = pool->held_at == 0 || in_use < pool->held_at;
    pool->held_asks = taken ? 0 : pool->held_asks + 1;
    bool full = pool->held_asks < patience;
    pool->held_at = full ? in_use : 0;
    return !full;
}

bool udp_inbox_has_room(struct udp_packet_pool *pool, struct udp_inbox *inbox, uint32_t packets)
{
    uint32_t free_packets = UDP_POOL_PACKETS - atomic_load_explicit(&pool->in_use, memory_order_relaxed);
    return udp_inbox_waiting(inbox) + packets <= (free_packets + UDP_INBOX_SHARE - 1) / UDP_INBOX_SHARE;
}

enum udp_put udp_inbox_put(struct udp_packet_pool *pool, struct udp_inbox *inbox,
                           const struct udp_part *part)
{
    assert(part->bytes <= pool->packet_bytes);
    struct udp_packet *packet = udp_inbox_has_room(pool, inbox, 1) ? take_spare(pool) : NULL;
    if (packet == NULL)
        return UDP_PUT_REFUSED;
    packet->from = *part->from;
    packet->bytes = part->bytes;
    packet->place = part->place;
    packet->marked = part->marked;
    packet->sealed = part->sealed;
    memcpy(packet->data, part->data, part->bytes);
    atomic_fetch_add_explicit(&inbox->waiting, 1, memory_order_relaxed);
    return push(&inbox->fresh, packet) ? UDP_PUT_FIRST : UDP_PUT_MORE;
}

/* The newest-first list, oldest first. */
static struct udp_packet *reversed(struct udp_packet *newest)
{
    struct udp_packet *oldest = NULL;
    while (newest != NULL) { /* at most UDP_POOL_PACKETS */
        struct udp_packet *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

struct udp_packet *udp_inbox_take(struct udp_inbox *inbox)
{
    if (inbox->oldest == NULL) {
        if (atomic_load_explicit(&inbox->fresh, memory_order_relaxed) == NULL)
            return NULL;
        inbox->oldest = reversed(atomic_exchange_explicit(&inbox->fresh, NULL, memory_order_acquire));
    }
    struct udp_packet *packet = inbox->oldest;
    inbox->oldest = packet->next;
    atomic_fetch_sub_explicit(&inbox->waiting, 1, memory_order_relaxed);
    return packet;
}

void udp_packet_return(struct udp_packet_pool *pool, struct udp_packet *packet)
{
    atomic_fetch_sub_explicit(&pool->in_use, 1, memory_order_relaxed);
    push(&pool->returned, packet);
}

void udp_inbox_clear(struct udp_packet_pool *pool, struct udp_inbox *inbox)
{
    struct udp_packet *packet;
    while ((packet = udp_inbox_take(inbox)) != NULL) /* at most UDP_POOL_PACKETS */
        udp_packet_return(pool, packet);
}

/* ---- arrivals -------------------------------------------------------------------------------------- */

void udp_arrivals_begin(struct udp_arrivals *arrivals, struct fabric_arrival *out, uint32_t room)
{
    arrivals->out = out;
    arrivals->count = 0;
    arrivals->room = room;
    while (arrivals->count < arrivals->room && arrivals->next < arrivals->end)
        arrivals->out[arrivals->count++] = arrivals->waiting[arrivals->next++];
    if (arrivals->next == arrivals->end)
        arrivals->next = arrivals->end = 0;
}

void udp_arrivals_add(struct udp_arrivals *arrivals, const struct fabric_arrival *arrival)
{
    if (arrivals->count < arrivals->room) {
        arrivals->out[arrivals->count++] = *arrival;
        return;
    }
    assert(arrivals->end < arrivals->waiting_room);
    arrivals->waiting[arrivals->end++] = *arrival;
}

uint32_t udp_arrivals_withdraw_slot(struct udp_arrivals *arrivals, struct immediate_split split,
                                    uint32_t slot)
{
    const uint32_t before = arrivals->end;
    uint32_t kept = arrivals->next;
    for (uint32_t i = arrivals->next; i < arrivals->end; i++)
        if (immediate_part(split, arrivals->waiting[i].immediate).message != slot)
            arrivals->waiting[kept++] = arrivals->waiting[i];
    arrivals->end = kept;
    if (arrivals->next == arrivals->end)
        arrivals->next = arrivals->end = 0;
    return before - kept;
}

/* ---- socket slots ---------------------------------------------------------------------------------- */

void udp_socket_slots_add(struct udp_socket_slots *socket_slots)
{
    assert(socket_slots->count < UDP_SOCKET_SLOTS_MAX);
    socket_slots->socket_slots[socket_slots->count++] = (struct udp_socket_slot){0};
}

uint32_t udp_socket_slots_free(const struct udp_socket_slots *socket_slots, lh_time now)
{
    for (uint32_t i = 0; i < socket_slots->count; i++)
        if (!socket_slots->socket_slots[i].taken &&
            now - socket_slots->socket_slots[i].since >= UDP_SOCKET_SLOT_IDLE_NS)
            return i;
    return UDP_SOCKET_SLOTS_MAX;
}

void udp_socket_slots_take(struct udp_socket_slots *socket_slots, uint32_t socket_slot)
{
    assert(socket_slot < socket_slots->count && !socket_slots->socket_slots[socket_slot].taken);
    struct udp_socket_slot *taken = &socket_slots->socket_slots[socket_slot];
    taken->taken = true;
    taken->leaving = false;
    taken->since = 0;
    udp_socket_slot_mark_active(taken);
}

void udp_socket_slots_leave(struct udp_socket_slots *socket_slots, uint32_t socket_slot, lh_time now)
{
    assert(socket_slot < socket_slots->count && socket_slots->socket_slots[socket_slot].taken);
    socket_slots->socket_slots[socket_slot].taken = false;
    socket_slots->socket_slots[socket_slot].leaving = false;
    socket_slots->socket_slots[socket_slot].since = now;
}

uint32_t udp_socket_slots_sweep(struct udp_socket_slots *socket_slots, lh_time now)
{
    uint32_t quietest = UDP_SOCKET_SLOTS_MAX;
    for (uint32_t i = 0; i < socket_slots->count; i++) {
        struct udp_socket_slot *socket_slot = &socket_slots->socket_slots[i];
        if (!socket_slot->taken || socket_slot->leaving)
            continue;
        if (atomic_exchange_explicit(&socket_slot->active, false, memory_order_relaxed)) {
            socket_slot->since = 0;
        } else if (socket_slot->since == 0) {
            socket_slot->since = now;
        } else if (now - socket_slot->since >= UDP_SOCKET_SLOT_QUIET_NS &&
                   (quietest == UDP_SOCKET_SLOTS_MAX ||
                    socket_slot->since < socket_slots->socket_slots[quietest].since)) {
            quietest = i;
        }
    }
    if (quietest != UDP_SOCKET_SLOTS_MAX)
        socket_slots->socket_slots[quietest].leaving = true;
    return quietest;
}

/* ---- qpn table ------------------------------------------------------------------------------------- */

#define CAPACITY_MIN 64u
#define SPARSE       8u         /* emptier than that it shrinks */
#define CAPACITY_MAX (1u << 22) /* a quarter of all QPNs; random picks still succeed at once */

/* 0 and 1 are the management queue pairs, all ones means multicast. */
static bool qpn_is_usable(uint32_t qpn)
{
    return qpn > 1 && qpn < ROCE_QPN_MASK;
}

/* Where the search for a QPN begins. */
static uint32_t home_of(const struct qpn_table *table, uint32_t qpn)
{
    return (qpn * 0x9E3779B1u) & (table->capacity - 1);
}

/* Where the entry of a QPN is or would be; there is always a free place. */
static struct udp_qp *place_of(const struct qpn_table *table, uint32_t qpn)
{
    uint32_t mask = table->capacity - 1;
    uint32_t i = home_of(table, qpn);
    while (table->entries[i].qpn != 0 && table->entries[i].qpn != qpn)
        i = (i + 1) & mask;
    return &table->entries[i];
}

/* A table of this capacity with all entries. */
static int rebuild(struct qpn_table *table, uint32_t capacity)
{
    struct qpn_table fresh = {calloc(capacity, sizeof *fresh.entries), capacity, table->count};
    if (fresh.entries == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a table of %u queue pairs", capacity);
    for (uint32_t i = 0; i < table->capacity; i++)
        if (table->entries[i].qpn != 0)
            *place_of(&fresh, table->entries[i].qpn) = table->entries[i];
    free(table->entries);
    *table = fresh;
    return 0;
}

void qpn_table_free(struct qpn_table *table)
{
    free(table->entries);
    *table = (struct qpn_table){0};
}

int qpn_table_add(struct qpn_table *table, struct udp_qp *qp)
{
    if (4 * (table->count + 1) > 3 * table->capacity) {
        uint32_t capacity = table->capacity == 0 ? CAPACITY_MIN : 2 * table->capacity;
        if (capacity > CAPACITY_MAX)
            return lh_fail(LH_ENOMEM, "more than %u queue pairs on one fabric", table->count);
        int error = rebuild(table, capacity);
        if (error != 0)
            return error;
    }
    uint32_t qpn;
    do { /* at most three sixteenths of all QPNs are taken */
        int error = fabric_random(&qpn, sizeof qpn);
        if (error != 0)
            return error;
        qpn &= ROCE_QPN_MASK;
    } while (!qpn_is_usable(qpn) || qpn_table_find(table, qpn) != NULL);
    qp->qpn = qpn;
    *place_of(table, qpn) = *qp;
    table->count++;
    return 0;
}

const struct udp_qp *qpn_table_find(const struct qpn_table *table, uint32_t qpn)
{
    if (table->capacity == 0 || qpn == 0)
        return NULL;
    const struct udp_qp *entry = place_of(table, qpn);
    return entry->qpn == 0 ? NULL : entry;
}

/* The place became free: entries behind it that a search would no longer reach move up. */
static void close_gap(struct qpn_table *table, uint32_t gap)
{
    uint32_t mask = table->capacity - 1;
    for (uint32_t i = (gap + 1) & mask; table->entries[i].qpn != 0; i = (i + 1) & mask) {
        uint32_t from_home = (i - home_of(table, table->entries[i].qpn)) & mask;
        if (from_home < ((i - gap) & mask))
            continue;
        table->entries[gap] = table->entries[i];
        table->entries[i] = (struct udp_qp){0};
        gap = i;
    }
}

void qpn_table_remove(struct qpn_table *table, uint32_t qpn)
{
    if (table->capacity == 0 || qpn == 0)
        return;
    struct udp_qp *entry = place_of(table, qpn);
    if (entry->qpn == 0)
        return;
    *entry = (struct udp_qp){0};
    close_gap(table, (uint32_t)(entry - table->entries));
    table->count--;
    if (table->capacity > CAPACITY_MIN && table->count < table->capacity / SPARSE)
        (void)rebuild(table, table->capacity / 2); /* without memory it stays as it is */
}

/* ---- prefix ---------------------------------------------------------------------------------------- */

const uint32_t udp_prefix_low_bits[16] = {
    0x00000000u, 0x9B73EAD4u, 0xED96D3E9u, 0x76E5393Du, 0x005CA193u, 0x9B2F4B47u, 0xEDCA727Au, 0x76B998AEu,
    0x00B94326u, 0x9BCAA9F2u, 0xED2F90CFu, 0x765C7A1Bu, 0x00E5E2B5u, 0x9B960861u, 0xED73315Cu, 0x7600DB88u,
};
const uint32_t udp_prefix_high_bits[16] = {
    0x00000000u, 0x0172864Cu, 0x02E50C98u, 0x03978AD4u, 0x05CA1930u, 0x04B89F7Cu, 0x072F15A8u, 0x065D93E4u,
    0x0B943260u, 0x0AE6B42Cu, 0x09713EF8u, 0x0803B8B4u, 0x0E5E2B50u, 0x0F2CAD1Cu, 0x0CBB27C8u, 0x0DC9A184u,
};

void udp_prefix_fill(struct udp_prefix *prefix, const struct icrc_flow *flow, uint32_t bytes, uint16_t port)
{
    prefix->bytes = bytes;
    prefix->port = port;
    prefix->state = icrc_begin(flow, bytes, 0, true);
}
