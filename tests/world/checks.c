/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/checks.h"

#include <string.h>

#include "base/link_spec.h"
#include "wire/roce_packet.h"
#include "world/exchange.h"
#include "world/inside.h"
#include "world/reports.h"
#include "world/switches.h"
#include "world/talk.h"

#define PACED_BURST_BYTES (256.0 * 1024) /* a QP's, after a pause */
#define BITS_PER_BYTE     8u
#define WIRE_BYTES_MAX    4500u
#define PPB               1000000000
/* For how long a peer can have kept an echo (a field of 32 bits). */
#define ECHO_KEPT_MAX_NS ((lh_time)UINT32_MAX)
/* Clocks are read at two moments and rounded down. */
#define ROUNDING_NS 8u
#define MIN_SHARE   8u /* of a round trip: clocks drift, and what is in flight is kept in few entries */

/* ---- bytes ------------------------------------------------------------------------------------------- */

size_t check_first_difference(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && a[i] == b[i])
        i++;
    return i;
}

bool check_filled(const uint8_t *data, size_t bytes, uint8_t with)
{
    return bytes == 0 || (data[0] == with && memcmp(data, data + 1, bytes - 1) == 0);
}

/* ---- paths ------------------------------------------------------------------------------------------- */

/* How fast and how slow a direction can be, whatever link it has. */
struct span {
    lh_time min_ns;
    lh_time max_ns;
};

static void widen(struct span *span, const struct lh_link_spec *link)
{
    lh_time max_ns = link->delay_ns + 2 * link->jitter_ns + link->delay_ns / 4;
    if (link->rate_bps != 0)
        max_ns +=
            (lh_link_queue_bytes(link) + 2 * WIRE_BYTES_MAX) * BITS_PER_BYTE * LH_NS_PER_S / link->rate_bps;
    if (link->delay_ns < span->min_ns)
        span->min_ns = link->delay_ns;
    if (max_ns > span->max_ns)
        span->max_ns = max_ns;
}

static struct span span_of(const struct plan *plan, uint32_t from, uint32_t to)
{
    struct span span = {LH_TIME_NEVER, 0};
    struct lh_link_spec link = plan_link(plan, from, to);
    widen(&span, &link);
    link = plan_clean_link(plan, from, to);
    widen(&span, &link);
    for (uint32_t i = 0; i < plan->event_count; i++) {
        const struct plan_event *event = &plan->events[i];
        if (event->kind != EVENT_change || event->off || event->host != from || event->peer != to)
            continue;
        link = plan_changed_link(plan, event);
        widen(&span, &link);
    }
    return span;
}

static bool touches(const struct plan_pair *pair, const struct plan_event *event)
{
    return event->host == pair->host[0] || event->host == pair->host[1];
}

/* How much longer than its links allow something can take, all in all. */
static lh_time delays_of(const struct plan *plan, const struct plan_pair *pair)
{
    lh_time delay_ns = 0;
    for (uint32_t i = 0; i < plan->event_count; i++) {
        const struct plan_event *event = &plan->events[i];
        if (event->off)
            continue;
        if (event->kind == EVENT_hold)
            delay_ns += event->delay_ns;
        else if (event->kind == EVENT_replay || event->kind == EVENT_forge)
            delay_ns += plan->heal_ns;
        else if (event->kind == EVENT_pause || event->kind == EVENT_stall || event->kind == EVENT_memory)
            delay_ns += event->span_ns;
        else if (event->kind == EVENT_jump && touches(pair, event))
            delay_ns += event->delay_ns;
    }
    return delay_ns;
}

/* Where connections share engines, a forger is a peer: it knows the keys and tokens of its own connections,
 * and those of others must not feel it. */
static bool is_forged(const struct plan *plan, const struct plan_pair *own)
{
    for (uint32_t i = 0; i < plan->event_count; i++) {
        const struct plan_event *event = &plan->events[i];
        bool between = (event->host == own->host[0] && event->peer == own->host[1]) ||
                       (event->host == own->host[1] && event->peer == own->host[0]);
        if (event->kind == EVENT_forge && !event->off && (between || !plan_has(plan, FEATURE_engine)))
            return true;
    }
    return false;
}

static void prepare_pair(struct world *world, struct pair *pair)
{
    const struct plan *plan = world->plan;
    const struct plan_pair *own = pair->plan;
    struct span there = span_of(plan, own->host[0], own->host[1]);
    struct span back = span_of(plan, own->host[1], own->host[0]);
    pair->trusted = !is_forged(plan, own);
    pair->may_end = plan_has(plan, FEATURE_impatient);
    pair->rtt_min_ns = there.min_ns + back.min_ns + 2 * switches_min_ns(plan);
    pair->rtt_max_ns = there.max_ns + back.max_ns;
    pair->delays_ns = delays_of(plan, own) + 2 * switches_max_ns(plan, world->bytes_asked);
    for (uint32_t i = 0; i < plan->event_count; i++) {
        const struct plan_event *event = &plan->events[i];
        if (event->off)
            continue;
        bool crash = (event->kind == EVENT_crash || event->kind == EVENT_gone) && touches(own, event);
        bool close = (event->kind == EVENT_close || event->kind == EVENT_renew) &&
                     &world->pairs[event->pair] == pair;
        pair->may_end |= crash || close;
        /* The peer's clock is what an echo is measured with. */
        if ((event->kind == EVENT_jump && touches(own, event)) || !pair->trusted)
            pair->rtt_min_ns = 0;
    }
}

/* Nothing that happens to packets, hosts or clocks: what users do is all there is. */
static bool is_calm(const struct plan *plan)
{
    static const enum plan_feature harm[] = {FEATURE_loss,      FEATURE_burst,   FEATURE_reorder,
                                             FEATURE_duplicate, FEATURE_corrupt, FEATURE_jitter,
                                             FEATURE_rate,      FEATURE_switches};
    for (size_t i = 0; i < sizeof harm / sizeof harm[0]; i++)
        if (plan_has(plan, harm[i]))
            return false;
    for (uint32_t kind = EVENT_cut; kind < EVENT_COUNT; kind++)
        if (!plan_is_use((enum plan_event_kind)kind) && plan_any(plan, (enum plan_event_kind)kind))
            return false;
    return true;
}

void check_prepare(struct world *world)
{
    world->calm = is_calm(world->plan);
    for (uint32_t i = 0; i < world->plan->pair_count; i++)
        prepare_pair(world, &world->pairs[i]);
}

lh_time check_rtt_well(const struct world *world, const struct pair *pair)
{
    const struct plan_pair *own = pair->plan;
    return plan_clean_link(world->plan, own->host[0], own->host[1]).delay_ns +
           plan_clean_link(world->plan, own->host[1], own->host[0]).delay_ns +
           2 * switches_max_ns(world->plan, 0) + LH_NS_PER_US * 50;
}

/* What a clock that gains `skew` shows less, at worst, of what it measures against another. */
static lh_time skew_error(const struct world *world, const struct end *end, const struct pair *pair)
{
    if (!plan_has(world->plan, FEATURE_skew))
        return 0;
    int64_t own = world->plan->clock[end->host].skew_ppb;
    const struct end *peer = end == &pair->ends[0] ? &pair->ends[1] : &pair->ends[0];
    int64_t other = world->plan->clock[peer->host].skew_ppb;
    uint64_t apart = (uint64_t)(own > other ? own - other : other - own);
    return (lh_time)(ECHO_KEPT_MAX_NS * apart / PPB) + pair->rtt_min_ns / 1000;
}

static void check_round_trip(struct world *world, struct end *end)
{
    const struct pair *pair = &world->pairs[end->pair];
    struct lh_sdr_path path;
    if (lh_sdr_path(end->qp, &path) != 0 || path.rtt_ns == 0)
        return;
    end->measured = true;
    lh_time slack_ns = skew_error(world, end, pair) + ROUNDING_NS;
    if (pair->rtt_min_ns > slack_ns && world_sings_once(world, CANARY_fast))
        path.rtt_minimum_ns = pair->rtt_min_ns - slack_ns - 1;
    lh_time max_ns = 4 * (pair->rtt_max_ns + pair->delays_ns + slack_ns) + LH_NS_PER_MS;
    if (world_sings_once(world, CANARY_slow))
        path.rtt_ns = max_ns + 1;
    if (path.rtt_minimum_ns + slack_ns < pair->rtt_min_ns || path.rtt_ns < path.rtt_minimum_ns)
        world_fail(world, "rtt", "end %u measured a round trip of %llu ns (now %llu), and light takes %llu",
                   world_end_number(world, end), (unsigned long long)path.rtt_minimum_ns,
                   (unsigned long long)path.rtt_ns, (unsigned long long)pair->rtt_min_ns);
    if (pair->trusted && path.rtt_ns > max_ns)
        world_fail(
            world, "rtt", "end %u measured a round trip of %llu ns, and nothing took longer than %llu",
            world_end_number(world, end), (unsigned long long)path.rtt_ns, (unsigned long long)max_ns);
}

/* ---- queues ------------------------------------------------------------------------------------------ */

static void check_bounds_of(struct world *world, const struct end *end, struct sdr_qp *qp,
                            const struct lh_connection *connection)
{
    struct inside_bound bounds[INSIDE_BOUNDS_MAX];
    for (uint32_t layer = 0; layer < (connection ? 2 : 1); layer++) {
        uint32_t count =
            layer == 0 ? inside_qp_bounds(qp, bounds) : inside_connection_bounds(connection, bounds);
        for (uint32_t i = 0; i < count; i++) {
            if (world_sings_once(world, CANARY_bound))
                bounds[i].used = bounds[i].maximum + 1;
            if (bounds[i].used > bounds[i].maximum)
                world_fail(world, "bound", "end %u: %llu %s, at most %llu", world_end_number(world, end),
                           (unsigned long long)bounds[i].used, bounds[i].name,
                           (unsigned long long)bounds[i].maximum);
        }
    }
}

static void check_ports(struct world *world, const struct end *end, uint32_t first, uint32_t ports)
{
    for (uint32_t i = 0; i < ports; i++) {
        uint64_t bytes = 0;
        uint64_t maximum = 0;
        sim_world_waiting(world->sim, end->host, (uint16_t)(first + i), &bytes, &maximum);
        if (bytes > maximum && bytes > SIM_DATAGRAM_MAX)
            world_fail(world, "bound", "end %u: %llu bytes wait at a port, at most %llu",
                       world_end_number(world, end), (unsigned long long)bytes,
                       (unsigned long long)maximum);
    }
}

static void check_bounds(struct world *world, const struct end *end)
{
    check_bounds_of(world, end, end->qp, end->connection);
    check_ports(world, end, end->port_first, end->ports);
    if (!end->inner)
        return;
    check_bounds_of(world, end, end->inner_qp, end->inner);
    check_ports(world, end, end->inner_port_first, end->inner_ports);
}

void check_end(struct world *world, struct end *end)
{
    check_round_trip(world, end);
    if (world->turns % 4 == 0)
        check_bounds(world, end);
}

/* ---- economy ----------------------------------------------------------------------------------------- */

/* Whether answers come long before a timer runs out: workers need most of a microsecond for a packet, and
 * acknowledgements are up to a quarter of a round trip apart, so that with an alpha below 1 some are late. */
static bool is_idle(const struct world *world, const struct pair *pair)
{
    uint64_t packets = world->bytes_asked / pair->plan->attr[0].mtu_bytes + 1;
    for (uint32_t side = 0; side < 2; side++)
        if (strstr(plan_reliability(world->plan, pair->plan, side), "alpha=0.") != NULL)
            return false;
    return packets * LH_NS_PER_US <= pair->rtt_min_ns / 8;
}

/* Only lost chunks are retransmitted, unless the round trip was not measured yet. */
static void check_economy(struct world *world, const struct end *end, const struct lh_stats *stats)
{
    uint64_t again = stats->tx_retransmitted_packets;
    struct sim_counts counts = sim_world_counts(world->sim);
    if (!world->calm || end->guessed || !is_idle(world, &world->pairs[end->pair]) || counts.lost > 0 ||
        counts.overflowed > 0)
        return;
    if (world_sings_once(world, CANARY_again))
        again++;
    if (again > 0)
        world_fail(world, "economy", "end %u sent %llu packets again, and nothing was lost",
                   world_end_number(world, end), (unsigned long long)again);
}

/* A paced end has sent no more than its rate allows since it was opened, and a burst. */
static void check_pace(struct world *world, const struct end *end)
{
    const struct pair *pair = &world->pairs[end->pair];
    const struct lh_attr *attr = &pair->plan->attr[end == &pair->ends[0] ? 0 : 1];
    if (attr->rate_bps == 0 || plan_any(world->plan, EVENT_jump))
        return;
    uint64_t sent = end->sent_bytes;
    lh_time span_ns = world->now - end->opened_ns;
    span_ns += span_ns / 1000 + LH_NS_PER_US; /* a clock may be fast, and rounds */
    double maximum = (double)span_ns * (double)attr->rate_bps / 8e9 + PACED_BURST_BYTES + attr->mtu_bytes;
    if (world_sings_once(world, CANARY_hasty))
        sent = (uint64_t)maximum + 1;
    if ((double)sent > maximum)
        world_fail(world, "pace", "end %u has sent %llu bytes in %llu ns at %llu bit/s",
                   world_end_number(world, end), (unsigned long long)sent, (unsigned long long)span_ns,
                   (unsigned long long)attr->rate_bps);
}

/* What a link's queue at the sender takes may leave later than it counts for the controller. */
static bool has_queues(const struct plan *plan)
{
    return plan_has(plan, FEATURE_rate) || plan_has(plan, FEATURE_switches) || plan_any(plan, EVENT_change);
}

/* Nothing arrives, and is known to have arrived, within less than a round trip, whatever the peer says: so in
 * any span shorter than that no more than the window leaves, and a packet, when nothing is in flight. */
static void check_window(struct world *world, struct end *end, uint64_t bytes)
{
    const struct pair *pair = &world->pairs[end->pair];
    uint64_t window = inside_qp_window(end->qp);
    lh_time span_ns = pair->rtt_min_ns - pair->rtt_min_ns / MIN_SHARE;
    if (window == 0 || span_ns <= ROUNDING_NS)
        return;
    if (world->now >= end->turn_ns + span_ns) {
        end->turn_ns = world->now;
        end->turn_bytes = 0;
    }
    end->turn_bytes += bytes;
    uint64_t maximum = (has_queues(world->plan) ? 2 : 1) * window + pair->plan->attr[0].mtu_bytes;
    if (world_sings_once(world, CANARY_wide))
        end->turn_bytes = maximum + 1;
    if (end->turn_bytes > maximum)
        world_fail(world, "window", "end %u has sent %llu bytes within %llu ns, with a window of %llu",
                   world_end_number(world, end), (unsigned long long)end->turn_bytes,
                   (unsigned long long)span_ns, (unsigned long long)window);
}

/* ---- counters ---------------------------------------------------------------------------------------- */

/* Whether any fault makes bad packets out of good ones, or brings those of another incarnation. */
static bool all_are_honest(const struct plan *plan)
{
    static const enum plan_event_kind harm[] = {EVENT_noise, EVENT_mutate, EVENT_forge,
                                                EVENT_lie,   EVENT_crash,  EVENT_renew};
    for (size_t i = 0; i < sizeof harm / sizeof harm[0]; i++)
        if (plan_any(plan, harm[i]))
            return false;
    return !plan_has(plan, FEATURE_corrupt) && !switches_corrupt(plan);
}

/* Without what its one-sided operations count. */
static void own_stats(const struct end *end, struct lh_stats *stats)
{
    struct lh_stats inner = {0};
    lh_connection_stats(end->connection, stats);
    if (end->inner)
        lh_connection_stats(end->inner, &inner);
#define SUBTRACT(field, meaning) stats->field -= inner.field;
    LH_STATS(SUBTRACT)
#undef SUBTRACT
}

void check_counters(struct world *world, struct end *end)
{
    struct lh_stats stats;
    const struct plan_pair *own = world->pairs[end->pair].plan;
    if (end->connection)
        own_stats(end, &stats);
    else
        lh_sdr_stats(end->qp, &stats);
    if (end->connection)
        talk_check_counters(world, &world->pairs[end->pair], world_end_number(world, end) % 2, &stats);
    uint64_t bad = lh_stats_bad_packets(&stats);
    /* What comes so late that its slot has gone round all generations fits none of them but by its key. */
    if (inside_qp_slot_uses(end->qp) > own->attr[0].generations)
        bad -= stats.bad_key;
    if (stats.rx_stale_packets > 0)
        world_fail(world, "stale", "end %u: the fabric let %llu packets in whose slot was over",
                   world_end_number(world, end), (unsigned long long)stats.rx_stale_packets);
    if (end->connection)
        check_economy(world, end, &stats);
    check_pace(world, end);
    if (all_are_honest(world->plan) && world_sings_once(world, CANARY_honest))
        bad++;
    if (bad > 0 && all_are_honest(world->plan))
        world_fail(
            world, "honest",
            "end %u counted honest packets as bad: %llu (key %llu, range %llu, length %llu, channel %llu, "
            "control %llu, token %llu)",
            world_end_number(world, end), (unsigned long long)bad, (unsigned long long)stats.bad_key,
            (unsigned long long)stats.bad_range, (unsigned long long)stats.bad_length,
            (unsigned long long)stats.bad_channel, (unsigned long long)stats.bad_control,
            (unsigned long long)stats.bad_token);
}

/* ---- packets ----------------------------------------------------------------------------------------- */

/* No packet leaves that would write past the slot that it names. */
static void check_write(struct world *world, const struct pair *pair, const struct roce_packet *roce)
{
    uint8_t message_bits = pair->plan->raw ? pair->plan->message_bits : 10;
    uint8_t fragment_bits = pair->plan->raw ? pair->plan->fragment_bits : 4;
    struct immediate_split split = {message_bits, (uint8_t)(32 - message_bits - fragment_bits),
                                    fragment_bits};
    struct immediate_fields fields = immediate_part(split, roce->immediate);
    uint64_t end = (uint64_t)fields.packet * pair->plan->attr[0].mtu_bytes + roce->payload_bytes;
    if (roce->payload_bytes > 0 && world_sings_once(world, CANARY_beyond))
        end = pair->plan->attr[0].slot_bytes + 1;
    if (roce->payload_bytes > 0 &&
        (end > pair->plan->attr[0].slot_bytes || fields.message >= pair->plan->attr[0].slots))
        world_fail(world, "beyond", "a packet of %u bytes goes to slot %u, bytes up to %llu of %llu",
                   roce->payload_bytes, fields.message, (unsigned long long)end,
                   (unsigned long long)pair->plan->attr[0].slot_bytes);
}

void check_sent(struct world *world, const struct sim_datagram *datagram)
{
    struct roce_packet roce;
    if (datagram->source_port < SIM_PORT_FIRST)
        return;
    uint16_t number = world->end_of_port[datagram->from * SIM_PORTS_MAX + (uint32_t)datagram->source_port -
                                         SIM_PORT_FIRST];
    if (number == WORLD_NOTHING)
        return;
    struct end *end = world_end(world, number & ~WORLD_SUB);
    if (roce_decode(datagram->data, datagram->bytes, &roce) != ROCE_OK) {
        world_fail(world, "beyond", "end %u sends what is no packet", number);
        return;
    }
    if (datagram->control) {
        if (!(number & WORLD_SUB))
            report_check_sent(world, end, roce.payload, roce.payload_bytes);
        return;
    }
    check_write(world, &world->pairs[end->pair], &roce);
    if (number & WORLD_SUB)
        return;
    check_window(world, end, roce.payload_bytes);
    end->sent_bytes += roce.payload_bytes;
    end->guessed |= !end->measured;
}
