/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/bottleneck.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/min_max.h"
#include "sdr/rate_control.h"

#define ENTRIES         4096
#define CLOCK_AHEAD     (7 * LH_NS_PER_S) /* of the receiver */
#define REPORT_MAX_NS   (250 * LH_NS_PER_US)
#define REPORT_SHORT_NS (20 * LH_NS_PER_US) /* as good as at once */
#define WINDOW_MAX      (UINT64_C(1) << 30)

/* ---- queues ------------------------------------------------------------------------------------------ */

static void batch_push(struct batch_queue *queue, const struct batch *batch)
{
    if (queue->head - queue->tail == queue->size) {
        uint32_t size = queue->size == 0 ? 64 : 2 * queue->size;
        struct batch *ring = malloc(size * sizeof *ring);
        assert(ring);
        for (uint32_t i = 0; i < queue->size; i++)
            ring[i] = queue->ring[(queue->tail + i) & (queue->size - 1)];
        free(queue->ring);
        *queue = (struct batch_queue){.ring = ring, .size = size, .head = queue->size};
    }
    queue->ring[queue->head++ & (queue->size - 1)] = *batch;
}

static struct batch *batch_front(const struct batch_queue *queue)
{
    return queue->head == queue->tail ? NULL : &queue->ring[queue->tail & (queue->size - 1)];
}

static void report_push(struct report_queue *queue, const struct flight_report *report, lh_time at_ns)
{
    if (queue->head - queue->tail == queue->size) {
        uint32_t size = queue->size == 0 ? 64 : 2 * queue->size;
        struct flight_report *ring = malloc(size * sizeof *ring);
        lh_time *times = malloc(size * sizeof *times);
        assert(ring && times);
        for (uint32_t i = 0; i < queue->size; i++) {
            ring[i] = queue->ring[(queue->tail + i) & (queue->size - 1)];
            times[i] = queue->at_ns[(queue->tail + i) & (queue->size - 1)];
        }
        free(queue->ring);
        free(queue->at_ns);
        *queue = (struct report_queue){.ring = ring, .at_ns = times, .size = size, .head = queue->size};
    }
    queue->ring[queue->head & (queue->size - 1)] = *report;
    queue->at_ns[queue->head++ & (queue->size - 1)] = at_ns;
}

static lh_time report_front_ns(const struct report_queue *queue)
{
    return queue->head == queue->tail ? LH_TIME_NEVER : queue->at_ns[queue->tail & (queue->size - 1)];
}

/* ---- hosts ------------------------------------------------------------------------------------------- */

static bool pauses(const struct bottleneck_flow *f)
{
    return f->config.pause_ns != 0;
}

/* Whether the host runs now. */
static bool runs(struct bottleneck *b, const struct bottleneck_flow *f, struct host_pause *pause)
{
    while (pauses(f) && pause->end_ns <= b->now) {
        double run_ns = -log1p(-lh_prng_double(&b->prng)) * (double)f->config.run_ns;
        pause->start_ns = lh_earlier(b->now, pause->end_ns) + (lh_time)run_ns;
        pause->end_ns = pause->start_ns + 1 + lh_prng_below(&b->prng, f->config.pause_ns);
    }
    return !pauses(f) || b->now < pause->start_ns;
}

static lh_time when_running(const struct host_pause *pause, lh_time at_ns)
{
    return at_ns >= pause->start_ns && at_ns < pause->end_ns ? pause->end_ns : at_ns;
}

/* ---- the bottleneck ---------------------------------------------------------------------------------- */

/* Packets that pass until the next loss. */
static uint64_t draw_until_loss(struct bottleneck *b)
{
    uint32_t burst = b->path.loss_burst > 1 ? b->path.loss_burst : 1;
    double p = b->path.loss / burst;
    return p <= 0 ? UINT64_MAX : (uint64_t)(log1p(-lh_prng_double(&b->prng)) / log1p(-p));
}

static uint32_t draw_lost(struct bottleneck *b, uint32_t packets)
{
    uint32_t lost = 0, left = packets, burst = b->path.loss_burst > 1 ? b->path.loss_burst : 1;
    while (b->until_loss < left) { /* each turn loses one or more */
        left -= (uint32_t)b->until_loss;
        uint32_t taken = burst < left ? burst : left;
        lost += taken;
        left -= taken;
        b->until_loss = draw_until_loss(b);
    }
    if (b->until_loss != UINT64_MAX)
        b->until_loss -= left;
    return lost;
}

static void change_rate(struct bottleneck *b)
{
    if (b->path.change_ns == 0 || b->now < b->path.change_ns || b->rate_bps == b->path.change_bps)
        return;
    double queued_ns = b->free_ns > (double)b->now ? b->free_ns - (double)b->now : 0;
    b->free_ns = (double)b->now + queued_ns * (double)b->rate_bps / (double)b->path.change_bps;
    b->rate_bps = b->path.change_bps;
}

static uint64_t backlog_bytes(const struct bottleneck *b)
{
    double wait_ns = b->free_ns - (double)b->now;
    return wait_ns > 0 ? (uint64_t)(wait_ns * (double)b->rate_bps / 8e9) : 0;
}

static double bucket_ns(const struct bottleneck *b)
{
    return (double)b->path.bucket_bytes * 8e9 / (double)b->rate_bps;
}

/* What the bucket holds passes without a wait: as if the queue had been empty for that long. */
static uint64_t tokens_bytes(const struct bottleneck *b)
{
    double since_ns = fmin((double)b->now - b->free_ns, bucket_ns(b));
    return since_ns > 0 ? (uint64_t)(since_ns * (double)b->rate_bps / 8e9) : 0;
}

static void pass(struct bottleneck *b, struct bottleneck_flow *f, uint64_t key, uint32_t packets,
                 uint32_t packet_bytes)
{
    change_rate(b);
    uint64_t backlog = backlog_bytes(b);
    uint64_t room = b->path.queue_bytes + tokens_bytes(b);
    uint64_t fits = room > backlog ? (room - backlog) / packet_bytes : 0;
    /* The batch does not come all at once: what is served meanwhile makes place. */
    uint32_t admitted = packets <= fits ? packets : (uint32_t)fits;
    f->queue_dropped_bytes += (uint64_t)(packets - admitted) * packet_bytes;
    if (admitted == 0)
        return;
    double wait_ns = b->free_ns > (double)b->now ? b->free_ns - (double)b->now : 0;
    double bytes = (double)admitted * packet_bytes;
    f->queue_ns_bytes += wait_ns * bytes;
    f->queued_bytes += (uint64_t)bytes;
    if (backlog + (uint64_t)bytes > b->peak_bytes)
        b->peak_bytes = backlog + (uint64_t)bytes;
    b->free_ns = fmax(b->free_ns, (double)b->now - bucket_ns(b)) + bytes * 8e9 / (double)b->rate_bps;
    uint32_t lost = draw_lost(b, admitted);
    f->random_lost_bytes += (uint64_t)lost * packet_bytes;
    if (lost == admitted)
        return;
    struct batch batch = {.newest_key = key + admitted - 1,
                          .packets = admitted - lost,
                          .bytes = (uint64_t)(admitted - lost) * packet_bytes,
                          .at_ns = (lh_time)fmax(b->free_ns, (double)b->now) + f->config.rtt_ns / 2};
    if (b->path.mark_bytes != 0 && backlog > b->path.mark_bytes)
        batch.marked = batch.packets;
    bool late = lh_prng_chance(&b->prng, b->path.late);
    batch.at_ns += late ? b->path.late_ns : 0;
    batch_push(late ? &f->late : &f->arrivals, &batch);
}

/* ---- the receiver ------------------------------------------------------------------------------------ */

static lh_time report_interval(const struct bottleneck_flow *f)
{
    return f->config.report_ns != 0 ? f->config.report_ns : lh_earlier(REPORT_MAX_NS, f->config.rtt_ns / 8);
}

static bool reports_at_once(const struct bottleneck_flow *f)
{
    return f->receiver.arrived_packets <= ARRIVAL_REPORT_FIRST && report_interval(f) > REPORT_SHORT_NS;
}

/* The first ones are reported sooner. */
static lh_time interval_now(const struct bottleneck_flow *f)
{
    if (reports_at_once(f))
        return 0;
    bool early = f->receiver.arrived_packets <= ARRIVAL_REPORT_EARLY;
    return early ? lh_earlier(report_interval(f), ARRIVAL_REPORT_SPAN_NS) : report_interval(f);
}

static void on_arrival(struct bottleneck *b, struct bottleneck_flow *f, struct batch_queue *queue)
{
    const struct batch *batch = batch_front(queue);
    queue->tail++;
    f->arrived_bytes += batch->bytes;
    f->receiver.key = batch->newest_key;
    f->receiver.arrived_packets += batch->packets;
    f->receiver.marked_packets += batch->marked;
    f->receiver.arrived_ns = b->now + CLOCK_AHEAD;
    if (f->receiver_state)
        f->config.controller->receiver_on_arrived(f->receiver_state, batch->bytes,
                                                  batch->bytes / batch->packets * batch->marked, b->now);
    if (f->report_due_ns == LH_TIME_NEVER || reports_at_once(f)) {
        lh_time at = f->reported_ns + interval_now(f);
        f->report_due_ns = at > b->now ? at : b->now;
    }
}

static uint64_t credit(const struct bottleneck *b, struct bottleneck_flow *f)
{
    f->credit_ns = LH_TIME_NEVER;
    if (!f->receiver_state)
        return UINT64_MAX;
    return f->config.controller->receiver_credit(f->receiver_state, b->now, &f->credit_ns);
}

static void write_report(struct bottleneck *b, struct bottleneck_flow *f)
{
    f->report_due_ns = LH_TIME_NEVER;
    f->reported_ns = b->now;
    f->receiver.held_ns = b->now + CLOCK_AHEAD - f->receiver.arrived_ns;
    f->receiver.credit_bytes = credit(b, f);
    if (!lh_prng_chance(&b->prng, b->path.report_loss))
        report_push(&f->reports, &f->receiver, b->now + f->config.rtt_ns - f->config.rtt_ns / 2);
}

/* ---- the sender -------------------------------------------------------------------------------------- */

static lh_time overdue_ns(const struct bottleneck_flow *f)
{
    return f->last_rtt_ns + f->last_rtt_ns / 4 + 2 * report_interval(f) + LH_NS_PER_MS;
}

static void start_message(struct bottleneck *b, struct bottleneck_flow *f)
{
    f->waiting_bytes += f->config.message_bytes;
    f->goal_bytes += f->config.message_bytes;
    f->message_ns = b->now;
    f->message_waits = false;
}

/* What may be made up for, as rate_control.c has it. */
static uint64_t arrears_bytes(const struct bottleneck_flow *f, uint64_t rate_bps)
{
    lh_time span_ns = lh_earlier(f->config.rtt_ns / 16, 2 * LH_NS_PER_MS);
    return pauses(f) && f->decision.burst_bytes == 0 ? (uint64_t)((double)rate_bps * (double)span_ns / 8e9)
                                                     : 0;
}

static void decide(struct bottleneck *b, struct bottleneck_flow *f)
{
    f->config.controller->decide(f->state, b->now, &f->decision);
    uint64_t rate_bps = f->decision.rate_bps;
    if (rate_bps == LH_RATE_NONE)
        rate_bps = 0;
    else
        assert(rate_bps > 0);
    lh_time burst_ns = f->config.burst_ns;
    uint64_t burst = rate_bps == 0 ? UINT64_MAX : (uint64_t)((double)rate_bps * (double)burst_ns / 8e9);
    if (f->decision.burst_bytes != 0 && burst > f->decision.burst_bytes)
        burst = f->decision.burst_bytes;
    f->burst_bytes = burst > f->config.mtu_bytes ? burst : f->config.mtu_bytes;
    f->pacer.burst_bytes = f->burst_bytes + arrears_bytes(f, rate_bps);
    if (f->pacer.rate_bps != rate_bps) {
        f->pacer.rate_bps = rate_bps;
        f->pacer.free_remainder = 0;
    }
    f->send_ns = b->now;
}

/* Beside the window, what leaves while a report is held back, as rate_control.c has it. */
static uint64_t held_bytes(const struct bottleneck_flow *f)
{
    lh_time round_ns = f->config.rtt_ns / 8, span_ns = report_interval(f);
    if (f->decision.window_is_exact || span_ns <= round_ns)
        return 0;
    double bytes = (double)f->pacer.rate_bps * (double)(span_ns - round_ns) / 8e9;
    return lh_earlier((uint64_t)bytes, f->flight.arrived_bytes);
}

static uint64_t sendable_bytes(const struct bottleneck_flow *f)
{
    uint64_t in_flight = flight_in_flight_bytes(&f->flight);
    uint64_t window = f->decision.window_bytes < WINDOW_MAX ? f->decision.window_bytes : WINDOW_MAX;
    window += held_bytes(f);
    uint64_t allowed = window > in_flight ? window - in_flight : 0;
    uint64_t total = f->decision.total_bytes, sent = f->flight.sent_bytes;
    allowed = lh_earlier(allowed, total > sent ? total - sent : 0);
    return allowed < f->waiting_bytes ? allowed : f->waiting_bytes;
}

/* The host did not keep up with the rate, as rate_control.c finds it. */
static void note_arrears(const struct bottleneck *b, struct bottleneck_flow *f)
{
    uint64_t in_flight = flight_in_flight_bytes(&f->flight);
    bool all = pacer_allowance(&f->pacer, b->now) >= f->pacer.burst_bytes;
    if (pauses(f) && all && in_flight > 0 && in_flight < f->decision.window_bytes / 4 * 3)
        flight_on_limited(&f->flight);
}

static void on_send(struct bottleneck *b, struct bottleneck_flow *f)
{
    uint32_t packet_bytes = f->config.mtu_bytes;
    uint64_t bytes = sendable_bytes(f);
    f->send_ns = LH_TIME_NEVER;
    if (f->waiting_bytes < packet_bytes) {
        flight_on_limited(&f->flight);
        return;
    }
    uint64_t want = bytes < f->burst_bytes ? bytes : f->burst_bytes;
    if (want < packet_bytes)
        return;
    want -= want % packet_bytes;
    lh_time ready = pacer_ready(&f->pacer, b->now, want);
    if (ready > b->now) {
        f->send_ns = ready;
        return;
    }
    uint32_t packets = (uint32_t)(want / packet_bytes);
    note_arrears(b, f);
    pacer_on_sent(&f->pacer, b->now, want);
    flight_on_sent(&f->flight, f->key, packets, want, b->now);
    if (f->config.controller->on_sent)
        f->config.controller->on_sent(f->state, want, flight_in_flight_bytes(&f->flight), b->now);
    pass(b, f, f->key, packets, packet_bytes);
    f->key += packets;
    f->waiting_bytes -= want;
    f->sent_bytes += want;
    decide(b, f);
}

static void on_feedback(struct bottleneck *b, struct bottleneck_flow *f,
                        const struct lh_congestion_feedback *feedback)
{
    if (feedback->rtt_ns != 0)
        f->last_rtt_ns = feedback->rtt_ns;
    f->waiting_bytes += feedback->lost_bytes - feedback->lost_bytes % f->config.mtu_bytes;
    f->config.controller->on_feedback(f->state, feedback);
    decide(b, f);
    if (f->config.message_bytes == 0 || f->message_waits)
        return;
    if (f->flight.arrived_bytes >= f->goal_bytes) {
        if (f->messages < BOTTLENECK_TIMES_MAX)
            f->times_ns[f->messages] = b->now - f->message_ns;
        f->messages++;
        f->waiting_bytes = 0;
        f->goal_bytes = f->flight.arrived_bytes;
        f->message_ns = b->now + f->config.gap_ns + 1;
        f->message_waits = true;
    } else if (f->waiting_bytes == 0 && flight_in_flight_bytes(&f->flight) == 0) {
        uint64_t missing = f->goal_bytes - f->flight.arrived_bytes; /* parts of packets, by rounding */
        f->waiting_bytes = (missing + f->config.mtu_bytes - 1) / f->config.mtu_bytes * f->config.mtu_bytes;
    }
}

static void on_report(struct bottleneck *b, struct bottleneck_flow *f)
{
    const struct flight_report report = f->reports.ring[f->reports.tail & (f->reports.size - 1)];
    f->reports.tail++;
    struct lh_congestion_feedback feedback;
    if (flight_on_report(&f->flight, &report, f->config.rtt_ns, b->now, &feedback))
        on_feedback(b, f, &feedback);
}

/* ---- events ------------------------------------------------------------------------------------------ */

static lh_time next_of_sender(const struct bottleneck_flow *f)
{
    lh_time next = f->send_ns;
    lh_keep_earlier(&next, report_front_ns(&f->reports));
    lh_keep_earlier(&next, f->decision.next_ns);
    lh_keep_earlier(&next, flight_next(&f->flight, overdue_ns(f)));
    if (f->message_waits)
        lh_keep_earlier(&next, f->message_ns);
    return when_running(&f->sender_pause, next);
}

static lh_time next_of_receiver(const struct bottleneck_flow *f)
{
    lh_time next = lh_earlier(f->report_due_ns, f->credit_ns);
    if (batch_front(&f->arrivals))
        lh_keep_earlier(&next, batch_front(&f->arrivals)->at_ns);
    if (batch_front(&f->late))
        lh_keep_earlier(&next, batch_front(&f->late)->at_ns);
    return when_running(&f->receiver_pause, next);
}

static void find_next(const struct bottleneck *b, struct bottleneck_flow *f)
{
    lh_time next = lh_earlier(next_of_sender(f), next_of_receiver(f));
    f->next_ns = next > b->now ? next : b->now;
}

static void step_receiver(struct bottleneck *b, struct bottleneck_flow *f)
{
    while (batch_front(&f->arrivals) && batch_front(&f->arrivals)->at_ns <= b->now)
        on_arrival(b, f, &f->arrivals);
    while (batch_front(&f->late) && batch_front(&f->late)->at_ns <= b->now)
        on_arrival(b, f, &f->late);
    if (lh_earlier(f->report_due_ns, f->credit_ns) <= b->now)
        write_report(b, f);
}

static void step_sender(struct bottleneck *b, struct bottleneck_flow *f)
{
    if (f->message_waits && f->message_ns <= b->now) {
        start_message(b, f);
        f->send_ns = b->now;
    }
    while (report_front_ns(&f->reports) <= b->now)
        on_report(b, f);
    struct lh_congestion_feedback feedback;
    if (flight_on_timer(&f->flight, overdue_ns(f), b->now, &feedback))
        on_feedback(b, f, &feedback);
    if (f->decision.next_ns <= b->now) {
        f->config.controller->on_timer(f->state, b->now);
        decide(b, f);
        assert(f->decision.next_ns > b->now);
    }
    while (f->send_ns <= b->now)
        on_send(b, f);
}

/* Every event of a flow that is due now. */
static void step(struct bottleneck *b, struct bottleneck_flow *f)
{
    if (runs(b, f, &f->receiver_pause))
        step_receiver(b, f);
    if (runs(b, f, &f->sender_pause))
        step_sender(b, f);
    find_next(b, f);
}

static bool run_event(struct bottleneck *b, lh_time until_ns)
{
    struct bottleneck_flow *first = NULL;
    for (uint32_t i = 0; i < b->flow_count; i++)
        if (!first || b->flows[i].next_ns < first->next_ns)
            first = &b->flows[i];
    if (!first || first->next_ns > until_ns)
        return false;
    b->now = first->next_ns;
    step(b, first);
    return true;
}

void bottleneck_run(struct bottleneck *b, lh_time until_ns)
{
    while (run_event(b, until_ns))
        ;
    b->now = until_ns;
}

bool bottleneck_run_messages(struct bottleneck *b, uint32_t messages, lh_time until_ns)
{
    while (b->flows[0].messages < messages && run_event(b, until_ns))
        ;
    return b->flows[0].messages >= messages;
}

/* ---- set-up ------------------------------------------------------------------------------------------ */

struct bottleneck *bottleneck_create(const struct bottleneck_path *path)
{
    struct bottleneck *b = calloc(1, sizeof *b);
    assert(b);
    b->path = *path;
    b->rate_bps = path->rate_bps;
    lh_prng_seed(&b->prng, path->seed);
    b->until_loss = draw_until_loss(b);
    return b;
}

void bottleneck_free(struct bottleneck *b)
{
    for (uint32_t i = 0; i < b->flow_count; i++) {
        struct bottleneck_flow *f = &b->flows[i];
        free(f->state);
        free(f->receiver_state);
        free(f->entries);
        free(f->arrivals.ring);
        free(f->late.ring);
        free(f->reports.ring);
        free(f->reports.at_ns);
    }
    free(b);
}

static void start_controller(struct bottleneck_flow *f, lh_time now)
{
    const struct lh_congestion_path path = {
        .mtu_bytes = f->config.mtu_bytes,
        .rate_bps = f->config.rate_bps,
        .rate_max_bps = LH_RATE_NONE,
        .window_max_bytes = WINDOW_MAX,
        .rtt_ns = f->config.rtt_unknown ? 0 : f->config.rtt_ns,
        .remembered_rate_bps = f->config.remembered_bps,
        .remembered_rtt_ns = f->config.remembered_bps != 0 ? f->config.rtt_ns : 0,
        .remembered_age_ns = LH_NS_PER_S,
    };
    uint8_t params[LH_CONGESTION_PARAMS] = {0};
    int failed = f->config.controller->parse(f->config.params ? f->config.params : "", params);
    assert(!failed);
    f->config.controller->start(f->state, &path, params, now);
    if (f->receiver_state)
        f->config.controller->receiver_start(f->receiver_state, &path, params, now);
}

struct bottleneck_flow *bottleneck_add(struct bottleneck *b, const struct bottleneck_flow_config *config)
{
    assert(b->flow_count < BOTTLENECK_FLOWS_MAX);
    struct bottleneck_flow *f = &b->flows[b->flow_count++];
    *f = (struct bottleneck_flow){
        .config = *config, .report_due_ns = LH_TIME_NEVER, .credit_ns = LH_TIME_NEVER};
    if (f->config.mtu_bytes == 0)
        f->config.mtu_bytes = 4096;
    if (f->config.burst_ns == 0)
        f->config.burst_ns = lh_earlier(50 * LH_NS_PER_US, config->rtt_ns / 40);
    f->config.message_bytes +=
        (f->config.mtu_bytes - f->config.message_bytes % f->config.mtu_bytes) % f->config.mtu_bytes;
    f->state = aligned_alloc(64, (config->controller->state_bytes + 63) / 64 * 64);
    if (config->controller->receiver_bytes != 0) {
        f->receiver_state = aligned_alloc(64, (config->controller->receiver_bytes + 63) / 64 * 64);
        assert(f->receiver_state);
    }
    f->entries = malloc(ENTRIES * sizeof *f->entries);
    assert(f->state && f->entries);
    flight_init(&f->flight, f->entries, ENTRIES);
    f->flight.reordering_ns = config->rtt_ns / 8;
    f->last_rtt_ns = config->rtt_ns;
    pacer_init(&f->pacer, 0, 1);
    start_controller(f, config->start_ns);
    decide(b, f);
    f->send_ns = config->start_ns;
    f->message_ns = config->start_ns;
    f->message_waits = config->message_bytes != 0;
    if (config->message_bytes == 0)
        f->waiting_bytes = UINT64_MAX / 4;
    f->next_ns = config->start_ns;
    return f;
}
