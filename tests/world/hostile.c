/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/hostile.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/control_messages.h"
#include "wire/roce_packet.h"
#include "world/switches.h"

#define FLOOD_COPIES  48u
#define KEEP_EVERY    5u /* of the packets that pass */
#define DEST_QPN      5u /* where fields lie in a packet */
#define WRITE_VA      12u
#define WRITE_RKEY    20u
#define IMMEDIATE     28u
#define WRITE_PAYLOAD 32u
#define CONTROL       ROCE_SEND_HEADER_BYTES
#define CONTROL_TOKEN (CONTROL + 4u)
#define CTS_ENTRY     (CONTROL + CONTROL_HEADER_BYTES)
#define CTS_LENGTH    (CTS_ENTRY + 8u)

void hostile_overhear(struct world *world, const struct sim_datagram *datagram)
{
    struct kept *kept = &world->kept;
    if (kept->packets == NULL || kept->count++ % KEEP_EVERY != 0)
        return;
    /* Every other place keeps what came first, so that there is something of an earlier incarnation. */
    uint32_t number = kept->count / KEEP_EVERY;
    uint32_t place = number < KEPT_PACKETS ? number : number % (KEPT_PACKETS / 2) * 2;
    struct kept_packet *packet = &kept->packets[place];
    packet->head = *datagram;
    packet->head.data = packet->data;
    memcpy(packet->data, datagram->data, datagram->bytes);
}

/* How long light needs from its sender to its receiver. */
static lh_time light_ns(const struct world *world, const struct sim_datagram *datagram)
{
    return world->plan->link[datagram->from][datagram->to].delay_ns + switches_min_ns(world->plan);
}

/* A full pool, or refused memory, is a lost packet. */
static void inject(struct world *world, const struct sim_datagram *datagram)
{
    world_say(world, "hostile packet of %u bytes from %u:%u to %u:%u", datagram->bytes, datagram->from,
              datagram->source_port, datagram->to, datagram->destination_port);
    (void)sim_world_inject(world->sim, datagram);
}

/* A port that somebody on the host has, as far as there is one. */
static uint16_t some_port(struct world *world, uint32_t host, struct lh_prng *prng)
{
    uint32_t ends = 2 * world->plan->pair_count;
    uint32_t first = ends > 0 ? (uint32_t)lh_prng_below(prng, ends) : 0;
    for (uint32_t i = 0; i < ends; i++) {
        const struct end *end = world_end(world, (first + i) % ends);
        if (end->open && end->host == host)
            return (uint16_t)(end->port_first + lh_prng_below(prng, end->ports));
    }
    return (uint16_t)(SIM_PORT_FIRST + lh_prng_below(prng, 16));
}

void hostile_invent(struct world *world, const struct plan_event *event, struct lh_prng *prng)
{
    uint8_t data[SIM_DATAGRAM_MAX];
    struct sim_datagram datagram = {
        .at_ns = world->now, .data = data, .from = event->host, .to = event->peer};
    datagram.bytes = (uint32_t)lh_prng_below(prng, 1200);
    datagram.source_port = some_port(world, event->host, prng);
    datagram.destination_port = some_port(world, event->peer, prng);
    for (uint32_t i = 0; i + 8 <= sizeof data && i < datagram.bytes; i += 8) {
        uint64_t word = lh_prng_next(prng);
        memcpy(data + i, &word, sizeof word);
    }
    bool plausible = lh_prng_chance(prng, 0.5);
    if (plausible && datagram.bytes >= 64) {
        bool write = lh_prng_chance(prng, 0.5);
        struct roce_packet roce = {.opcode = write ? ROCE_UC_WRITE_ONLY_IMM : ROCE_UC_SEND_ONLY,
                                   .dest_qpn = lh_get_be32(data) & ROCE_QPN_MASK,
                                   .va = lh_prng_below(prng, 1u << 20),
                                   .rkey = lh_get_be32(data + 4),
                                   .immediate = lh_get_be32(data + 8)};
        uint32_t header = (uint32_t)roce_header_bytes((uint8_t)roce.opcode);
        roce.payload_bytes = (datagram.bytes - header - ROCE_ICRC_BYTES) / 4 * 4;
        roce_encode_header(&roce, data);
        datagram.bytes = header + roce.payload_bytes + ROCE_ICRC_BYTES;
        sim_datagram_seal(&datagram);
    }
    inject(world, &datagram);
}

void hostile_replay(struct world *world, struct lh_prng *prng)
{
    struct kept *kept = &world->kept;
    uint32_t count = kept->count / KEEP_EVERY;
    if (kept->packets == NULL || count < 2)
        return;
    uint64_t place = 1 + lh_prng_below(prng, (count < KEPT_PACKETS ? count : KEPT_PACKETS) - 1);
    struct sim_datagram datagram = kept->packets[place].head;
    /* An eavesdropper is not faster than light either. */
    if (datagram.bytes == 0 || datagram.at_ns + light_ns(world, &datagram) > world->now)
        return;
    datagram.at_ns = world->now;
    inject(world, &datagram);
}

static void change_bytes(uint8_t *data, uint32_t first, uint32_t end, uint64_t changes,
                         struct lh_prng *prng)
{
    for (; changes > 0; changes--) {
        uint64_t at = first + lh_prng_below(prng, end - first);
        data[at] = (uint8_t)lh_prng_next(prng);
    }
}

/* The same packet, `places` further on, address and number alike: behind the end of a buffer, perhaps.
 * Connections split an immediate into 10, 18 and 4 bits. */
static void shift_write(struct sim_datagram *copy, uint32_t places)
{
    uint64_t payload = copy->bytes - WRITE_PAYLOAD - ROCE_ICRC_BYTES;
    uint64_t va = lh_get_be64(copy->data + WRITE_VA);
    lh_put_be64(copy->data + WRITE_VA, va + places * payload);
    lh_put_be32(copy->data + IMMEDIATE, lh_get_be32(copy->data + IMMEDIATE) + (places << 4));
}

/* A genuine control message with altered fields: lengths of clear-to-sends above all. */
static void forge(struct sim_datagram *copy, struct lh_prng *prng)
{
    static const uint32_t lengths[] = {0, 1, 255, 65536, 0x7FFFFFFF, 0xFFFFFFFF};
    uint32_t end = copy->bytes - ROCE_ICRC_BYTES;
    uint64_t kind = lh_prng_below(prng, 4);
    uint64_t changes = 1 + lh_prng_below(prng, 4);
    uint32_t length = lengths[lh_prng_below(prng, 6)];
    bool cts =
        copy->control && end >= CTS_ENTRY + CONTROL_CTS_BYTES && copy->data[CONTROL + 1] == CONTROL_CTS;
    if (cts && kind < 2)
        lh_put_be32(copy->data + CTS_LENGTH, length);
    else if (cts && kind == 2)
        change_bytes(copy->data, CTS_ENTRY, end, changes, prng);
    else if (copy->control && end > CTS_ENTRY && kind < 3)
        change_bytes(copy->data, CTS_ENTRY, end, changes, prng);
    else if (!copy->control && kind == 3 && end > WRITE_PAYLOAD)
        shift_write(copy, (uint32_t)changes);
    else
        change_bytes(copy->data, 0, end, changes, prng);
    sim_datagram_seal(copy);
}

/* With a right checksum, and a key or token that is not; or with a checksum that is not: three bits at
 * most, which a CRC of 32 bits never misses at these lengths. */
static void spoil(struct sim_datagram *copy, struct lh_prng *prng)
{
    uint32_t end = copy->bytes - ROCE_ICRC_BYTES;
    uint32_t key = copy->control ? CONTROL_TOKEN : WRITE_RKEY;
    uint64_t changes = lh_prng_below(prng, 6);
    bool sealed = lh_prng_chance(prng, 0.6);
    if (!sealed || end < key + 4) {
        uint64_t bit = lh_prng_below(prng, (uint64_t)copy->bytes * 8);
        copy->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        return;
    }
    uint32_t kept = lh_get_be32(copy->data + key);
    if (changes > 0)
        change_bytes(copy->data, DEST_QPN, end, changes, prng);
    lh_put_be32(copy->data + key, kept + 1 + (uint32_t)lh_prng_below(prng, UINT32_MAX - 1));
    sim_datagram_seal(copy);
}

void hostile_mutate(struct world *world, const struct plan_event *event, struct lh_prng *prng,
                    const struct sim_datagram *datagram)
{
    uint8_t data[SIM_DATAGRAM_MAX];
    struct sim_datagram copy = *datagram;
    copy.data = data;
    lh_time min_ns = light_ns(world, datagram);
    lh_time late_ns = lh_prng_below(prng, min_ns + 1);
    copy.at_ns = world->now + min_ns + late_ns; /* some changes do not matter, and light is the fastest */
    memcpy(data, datagram->data, datagram->bytes);
    if (datagram->bytes < ROCE_BTH_BYTES + 2 * ROCE_ICRC_BYTES)
        return;
    if (event->kind == EVENT_forge)
        forge(&copy, prng);
    else
        spoil(&copy, prng);
    inject(world, &copy);
}

void hostile_flood(struct world *world, struct lh_prng *prng, const struct sim_datagram *datagram)
{
    struct sim_datagram copy = *datagram;
    uint64_t copies = 1 + lh_prng_below(prng, FLOOD_COPIES);
    lh_time min_ns = light_ns(world, datagram);
    for (; copies > 0; copies--) {
        copy.at_ns = world->now + min_ns + lh_prng_below(prng, min_ns + 1);
        inject(world, &copy);
    }
}

/* ---- reports ----------------------------------------------------------------------------------------- */

/* Of a total, or a time: jumps, falls, wraps, or is true. */
static uint64_t lie_about(uint64_t truth, uint64_t step, struct lh_prng *prng)
{
    uint64_t some = lh_prng_below(prng, step);
    uint64_t any = lh_prng_next(prng);
    switch (lh_prng_below(prng, 8)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return UINT64_MAX - some;
    case 3:
        return truth + some;
    case 4:
        return truth - some;
    case 5:
        return any;
    case 6:
        return truth == UINT64_MAX ? any : any % (truth + 1);
    default:
        return truth;
    }
}

static struct control_feedback made_up(const struct control_feedback *heard, struct lh_prng *prng)
{
    struct control_feedback lie = *heard;
    bool of_another = lh_prng_chance(prng, 0.3); /* perhaps of a packet that was never sent */
    uint32_t places = (uint32_t)lh_prng_below(prng, 64) - 32;
    if (of_another) {
        lie.immediate += places << 4;
        lie.generation = (uint8_t)(lie.generation + lh_prng_below(prng, 2));
    }
    lie.arrived_packets = lie_about(heard->arrived_packets, 64, prng);
    lie.marked_packets = lie_about(heard->marked_packets, 64, prng);
    lie.dropped_packets = lie_about(heard->dropped_packets, 64, prng);
    lie.arrived_ns = lie_about(heard->arrived_ns, LH_NS_PER_MS, prng);
    lie.held_ns = lie_about(heard->held_ns, LH_NS_PER_MS, prng);
    lie.credit_bytes = lie_about(heard->credit_bytes, (uint64_t)1 << 30, prng);
    return lie;
}

bool hostile_lie(struct world *world, const struct plan_event *event, struct running *running,
                 const struct sim_datagram *datagram)
{
    uint8_t data[SIM_DATAGRAM_MAX];
    struct roce_packet roce;
    struct control_message message;
    if (!datagram->control || roce_decode(datagram->data, datagram->bytes, &roce) != ROCE_OK ||
        control_decode(roce.payload, roce.payload_bytes, &message) != 0)
        return true;
    bool report = message.header.type == CONTROL_FEEDBACK;
    if (report)
        running->heard = message.body.feedback;
    message.header.type = CONTROL_FEEDBACK;
    message.body.feedback = made_up(&running->heard, &running->prng);
    roce.payload_bytes = (uint32_t)control_encode(&message, data + CONTROL);
    roce_encode_header(&roce, data);
    struct sim_datagram lie = *datagram;
    lie.data = data;
    lie.bytes = CONTROL + roce.payload_bytes + ROCE_ICRC_BYTES;
    lie.at_ns = world->now + light_ns(world, datagram);
    sim_datagram_seal(&lie);
    inject(world, &lie);
    world->lied = true;
    bool replaces = event->seed & 1;
    return !(report && replaces);
}
