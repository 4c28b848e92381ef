/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/reports.h"

#include <string.h>

#include "wire/control_messages.h"
#include "wire/scheme_messages.h"
#include "wire/wire_numbers.h"
#include "world/inside.h"

struct report {
    struct world *world;
    struct end *end;
    uint32_t sequence;
    bool fresh; /* it was written in this turn, and nothing arrives within one */
    const struct inside_segment *truth;
};

static uint32_t count_chunks(const uint8_t *chunks, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++)
        count += chunks[i] != 0;
    return count;
}

/* Number of chunks that it cannot know of yet, of those that have arrived. The last of a message that
 * turns out to be short may become whole in the middle of a turn. */
static uint32_t check_count(const struct report *r, uint32_t named, uint32_t arrived)
{
    if (named > arrived || (r->fresh && named + r->truth->cut < arrived))
        world_fail(r->world, "reports", "end %u acknowledges %u chunks of segment %u, and %u are there",
                   world_end_number(r->world, r->end), named, r->sequence, arrived);
    return arrived - named;
}

/* Chunks from `first` on as the bits of a word. */
static uint64_t word_of(const struct inside_segment *truth, uint64_t first)
{
    uint64_t bits = 0;
    for (uint64_t i = 0; i < 64 && first + i < truth->count; i++)
        bits |= (uint64_t)(truth->chunks[first + i] != 0) << i;
    return bits;
}

/* Named is what has arrived, from the first word of the acknowledgement to the last. */
static void check_bits(const struct report *r, const struct sr_ack *ack, uint32_t unknown)
{
    const struct inside_segment *truth = r->truth;
    uint32_t missing = 0;
    for (uint32_t w = 0; w < ack->words; w++) {
        uint64_t there = word_of(truth, ack->base + 64u * w);
        missing += (uint32_t)__builtin_popcountll(there & ~ack->bitmap[w]);
        if (ack->bitmap[w] & ~there)
            world_fail(r->world, "reports",
                       "end %u names chunks of segment %u, from %u on, that have not arrived",
                       world_end_number(r->world, r->end), r->sequence, ack->base + 64 * w);
    }
    /* Only a full message leaves something for the next one. */
    uint32_t end = ack->base + 64u * ack->words;
    if (ack->words < SR_ACK_WORDS_MAX && ack->base / 64 == ack->cumulative / 64 && end < truth->count)
        missing += count_chunks(truth->chunks, end, truth->count);
    if (missing > unknown)
        world_fail(r->world, "reports", "end %u leaves out %u chunks of segment %u that have arrived",
                   world_end_number(r->world, r->end), missing, r->sequence);
}

/* What does not fit one acknowledgement comes with the next. */
static void check_parts(const struct report *r, const struct sr_ack *ack)
{
    struct end *end = r->end;
    uint32_t below = ack->base + 64u * ack->words;
    if (end->told_below > 0 && end->told_segment == r->sequence && ack->base < end->told_below)
        world_fail(r->world, "reports", "end %u never acknowledges chunks of segment %u from %u on",
                   world_end_number(r->world, end), r->sequence, end->told_below);
    end->told_segment = r->sequence;
    end->told_below = 0;
    if (r->fresh && ack->words == SR_ACK_WORDS_MAX && below < r->truth->count &&
        count_chunks(r->truth->chunks, below, r->truth->count) > 0)
        end->told_below = below;
}

static void drop_highest(struct sr_ack *ack)
{
    for (uint32_t w = ack->words; w > 0; w--)
        if (ack->bitmap[w - 1]) {
            ack->bitmap[w - 1] &= ~((uint64_t)1 << (63 - __builtin_clzll(ack->bitmap[w - 1])));
            return;
        }
}

static void check_selective_repeat(const struct report *r, const uint8_t *data, size_t bytes)
{
    struct sr_ack ack;
    if (sr_ack_decode(data, bytes, &ack) != 0) {
        world_fail(r->world, "reports", "end %u sends an invalid acknowledgement",
                   world_end_number(r->world, r->end));
        return;
    }
    if (ack.words > 0 && ack.bitmap[ack.words - 1] && world_sings_once(r->world, CANARY_report))
        drop_highest(&ack);
    uint32_t arrived = count_chunks(r->truth->chunks, 0, r->truth->count);
    uint32_t unknown = check_count(r, ack.arrived, arrived);
    if (ack.cumulative > r->truth->count || memchr(r->truth->chunks, 0, ack.cumulative))
        world_fail(r->world, "reports", "end %u acknowledges all %u chunks of segment %u have arrived",
                   world_end_number(r->world, r->end), ack.cumulative, r->sequence);
    check_bits(r, &ack, unknown);
    check_parts(r, &ack);
}

static void check_erasure_code(const struct report *r, const uint8_t *data, size_t bytes)
{
    const struct inside_segment *truth = r->truth;
    struct ec_ack ack;
    if (ec_ack_decode(data, bytes, &ack) == 0)
        check_count(r, ack.arrived,
                    count_chunks(truth->chunks, 0, truth->count) +
                        count_chunks(truth->extra, 0, truth->extra_count));
}

void report_check_sent(struct world *world, struct end *end, const uint8_t *data, size_t bytes)
{
    struct control_message control;
    struct transfer_message message;
    struct inside_segment truth;
    if (!end->connection || control_decode(data, bytes, &control) != 0 ||
        control.header.type != CONTROL_UPPER ||
        transfer_decode(control.body.upper.data, control.body.upper.bytes, &message) != 0 ||
        message.kind != TRANSFER_TO_SENDER)
        return;
    const struct report report = {
        .world = world,
        .end = end,
        .sequence = message.body.to_sender.segment,
        .fresh = (int32_t)(inside_qp_message_leaving(end->qp) - end->messages_before) >= 0,
        .truth = &truth};
    if (!inside_connection_segment(end->connection, report.sequence, &truth))
        return;
    if (truth.scheme == WIRE_SR_NACK || truth.scheme == WIRE_SR_RTO)
        check_selective_repeat(&report, message.body.to_sender.scheme, message.body.to_sender.scheme_bytes);
    else
        check_erasure_code(&report, message.body.to_sender.scheme, message.body.to_sender.scheme_bytes);
}
