/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/swarm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/units.h>

#include "base/prng.h"
#include "support/connection_pair.h"

#define CANARY       0xC5
#define HEAL_TIME_NS (120 * LH_NS_PER_S) /* virtual; peer_timeout_ns is longer, so nobody gives up */
#define STEPS_MAX    2000u
#define GUARD_BYTES  64u

/* One message: what is sent, what it lands in, and how both ended. */
struct passage {
    uint8_t *data;
    uint8_t *buffer; /* room and GUARD_BYTES behind it */
    size_t bytes;
    size_t room;
    struct lh_request *send;
    struct lh_request *recv;
    struct lh_result sent;
    struct lh_result received;
    bool send_done;
    bool recv_done;
    bool send_canceled; /* by us, while it was pending */
    bool recv_canceled;
};

struct swarm {
    const struct swarm_options *options;
    struct swarm_report *report;
    enum swarm_sabotage sabotage;
    struct connection_pair pair;
    struct passage passages[2][SWARM_MESSAGES_MAX]; /* of each sender */
    uint32_t sent[2];
    uint32_t posted[2]; /* receives for each sender's messages */
    struct lh_prng user;
    struct lh_prng control;
};

static void fail(struct swarm *swarm, const char *what, uint32_t from, uint32_t number)
{
    if (swarm->report->failure[0] == '\0')
        snprintf(swarm->report->failure, sizeof swarm->report->failure, "%s: message %u of side %u", what,
                 number, from);
}

/* ---- options ----------------------------------------------------------------------------------------- */

static uint64_t draw_range(struct lh_prng *prng, uint64_t low, uint64_t high)
{
    return low + lh_prng_below(prng, high - low + 1);
}

/* Often 0, else up to most. */
static double draw_share(struct lh_prng *prng, double most)
{
    return lh_prng_chance(prng, 0.4) ? 0 : lh_prng_double(prng) * most;
}

static void draw_link(struct lh_prng *prng, struct lh_link_spec *link)
{
    *link = (struct lh_link_spec){0};
    link->delay_ns = draw_range(prng, 20, 20000) * LH_NS_PER_US;
    link->rate_bps = lh_prng_chance(prng, 0.5) ? 0 : draw_range(prng, 100, 100000) * 1000000;
    link->loss = draw_share(prng, 0.15);
    link->burst_packets = lh_prng_chance(prng, 0.3) ? (double)draw_range(prng, 2, 30) : 0;
    link->reorder = draw_share(prng, 0.1);
    link->duplicate = draw_share(prng, 0.1);
    link->corrupt = draw_share(prng, 0.05);
    link->jitter_ns = lh_prng_chance(prng, 0.5) ? 0 : lh_prng_below(prng, link->delay_ns);
    link->drop_tail = lh_prng_chance(prng, 0.2);
    link->seed = lh_prng_next(prng) | 1;
}

static void draw_attr(struct lh_prng *prng, struct swarm_options *options)
{
    static const char *const schemes[] = {"sr-nack", "sr-rto", "sr-rto,alpha=0.5"};
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.mtu_bytes = 256u << lh_prng_below(prng, 5);
    attr.chunk_bytes = attr.mtu_bytes << lh_prng_below(prng, 4);
    attr.slot_bytes = attr.chunk_bytes * draw_range(prng, 1, 16);
    attr.slots = 1u << lh_prng_below(prng, 6);
    attr.channels = (uint32_t)draw_range(prng, 1, 3);
    attr.generations = (uint32_t)draw_range(prng, 2, 4);
    attr.window_bytes = attr.chunk_bytes * draw_range(prng, 1, 64);
    attr.rate_bps = lh_prng_chance(prng, 0.7) ? 0 : draw_range(prng, 50, 10000) * 1000000;
    attr.receive_buffer_bytes = draw_range(prng, 256, 4096) * 1024;
    attr.peer_timeout_ns = 2 * HEAL_TIME_NS;
    for (int side = 0; side < 2; side++) {
        options->attr[side] = attr;
        options->attr[side].reliability = schemes[lh_prng_below(prng, 3)];
    }
    options->bytes_max = attr.slot_bytes * draw_range(prng, 1, 6) / draw_range(prng, 1, 4) + 1;
    if (options->bytes_max > 200000)
        options->bytes_max = 200000;
}

void swarm_draw(uint64_t seed, struct swarm_options *options)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    *options = (struct swarm_options){.seed = seed};
    draw_link(&prng, &options->link);
    draw_attr(&prng, options);
    for (int side = 0; side < 2; side++)
        options->messages[side] = (uint32_t)draw_range(&prng, 1, SWARM_MESSAGES_MAX) / (side ? 1 : 2);
    options->control_loss = draw_share(&prng, 0.3);
    options->cancels = draw_share(&prng, 0.3);
    options->too_short = draw_share(&prng, 0.2);
    options->blackouts = draw_share(&prng, 0.02);
    options->step_ns = lh_prng_below(&prng, 2 * options->link.delay_ns) + 1;
}

char *swarm_describe(const struct swarm_options *o, char *out)
{
    char link[LH_LINK_TEXT_MAX];
    const struct lh_attr *a = &o->attr[0];
    lh_link_format(&o->link, link, sizeof link);
    snprintf(
        out, SWARM_TEXT_MAX,
        "seed %llu link %s mtu %u chunk %u slot %llu slots %u channels %u generations %u window %llu pace "
        "%llu %s/%s messages %u/%u up to %zu control loss %.2f cancels %.2f short %.2f blackouts %.3f step "
        "%llu",
        (unsigned long long)o->seed, link, a->mtu_bytes, a->chunk_bytes, (unsigned long long)a->slot_bytes,
        a->slots, a->channels, a->generations, (unsigned long long)a->window_bytes,
        (unsigned long long)a->rate_bps, a->reliability, o->attr[1].reliability, o->messages[0],
        o->messages[1], o->bytes_max, o->control_loss, o->cancels, o->too_short, o->blackouts,
        (unsigned long long)o->step_ns);
    return out;
}

/* ---- what the users do ------------------------------------------------------------------------------- */

static void fill(uint8_t *data, size_t bytes, uint64_t seed)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(lh_prng_next(&prng) >> 32);
}

static uint64_t content_seed(const struct swarm *swarm, uint32_t from, uint32_t number)
{
    return swarm->options->seed * 1000003 + from * 65537 + number;
}

static size_t draw_bytes(struct swarm *swarm)
{
    struct lh_prng *prng = &swarm->user;
    const struct lh_attr *attr = &swarm->options->attr[0];
    size_t most = swarm->options->bytes_max;
    size_t edge = lh_prng_chance(prng, 0.5) ? attr->slot_bytes : attr->mtu_bytes;
    switch (lh_prng_below(prng, 5)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2: /* around an edge */
        edge = edge * draw_range(prng, 1, 3) + lh_prng_below(prng, 3) - 1;
        return edge < most ? edge : most;
    default:
        return lh_prng_below(prng, most + 1);
    }
}

static void make_passages(struct swarm *swarm)
{
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = 0; i < swarm->options->messages[from]; i++) {
            struct passage *p = &swarm->passages[from][i];
            p->bytes = draw_bytes(swarm);
            p->room = p->bytes + (lh_prng_chance(&swarm->user, 0.5) ? 0 : draw_bytes(swarm));
            if (p->bytes > 0 && lh_prng_chance(&swarm->user, swarm->options->too_short))
                p->room = lh_prng_below(&swarm->user, p->bytes);
            p->data = malloc(p->bytes + 1);
            p->buffer = malloc(p->room + GUARD_BYTES);
            fill(p->data, p->bytes, content_seed(swarm, from, i));
            memset(p->buffer, CANARY, p->room + GUARD_BYTES);
        }
}

static void free_passages(struct swarm *swarm)
{
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = 0; i < swarm->options->messages[from]; i++) {
            lh_request_free(swarm->passages[from][i].send);
            lh_request_free(swarm->passages[from][i].recv);
            free(swarm->passages[from][i].data);
            free(swarm->passages[from][i].buffer);
        }
}

static void send_next(struct swarm *swarm, uint32_t from)
{
    uint32_t number = swarm->sent[from];
    struct passage *p = &swarm->passages[from][number];
    if (number == swarm->options->messages[from])
        return;
    if (lh_send(swarm->pair.ends[from], p->data, p->bytes, NULL, &p->send) != 0)
        fail(swarm, lh_last_error(), from, number);
    swarm->sent[from]++;
}

static void recv_next(struct swarm *swarm, uint32_t from)
{
    uint32_t number = swarm->posted[from];
    struct passage *p = &swarm->passages[from][number];
    if (number == swarm->options->messages[from])
        return;
    if (lh_recv(swarm->pair.ends[1 - from], p->buffer, p->room, NULL, &p->recv) != 0)
        fail(swarm, lh_last_error(), from, number);
    swarm->posted[from]++;
}

static void cancel_some(struct swarm *swarm, uint32_t from)
{
    if (swarm->options->messages[from] == 0)
        return;
    struct passage *p = &swarm->passages[from][lh_prng_below(&swarm->user, swarm->options->messages[from])];
    bool sender = lh_prng_chance(&swarm->user, 0.5);
    struct lh_request *request = sender ? p->send : p->recv;
    if (!request || lh_test(request, NULL))
        return;
    *(sender ? &p->send_canceled : &p->recv_canceled) = true;
    lh_cancel(request);
}

static void do_something(struct swarm *swarm)
{
    uint32_t from = (uint32_t)lh_prng_below(&swarm->user, 2);
    if (lh_prng_chance(&swarm->user, 0.5))
        send_next(swarm, from);
    else
        recv_next(swarm, from);
    if (lh_prng_chance(&swarm->user, swarm->options->cancels))
        cancel_some(swarm, from);
    if (lh_prng_chance(&swarm->user, swarm->options->blackouts))
        sim_world_partition(swarm->pair.world, true);
    else if (lh_prng_chance(&swarm->user, 0.2))
        sim_world_partition(swarm->pair.world, false);
}

/* ---- what must hold ---------------------------------------------------------------------------------- */

static bool is_canary(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != CANARY)
            return false;
    return true;
}

static void check_delivered(struct swarm *swarm, struct passage *p, uint32_t from, uint32_t number)
{
    if (swarm->sabotage == SWARM_WRONG_BYTE && p->bytes > 0)
        p->buffer[p->bytes / 2] ^= 1;
    uint8_t *expected = malloc(p->bytes + 1);
    fill(expected, p->bytes, content_seed(swarm, from, number));
    if (p->received.bytes != p->bytes || p->bytes > p->room)
        fail(swarm, "wrong length", from, number);
    else if (memcmp(p->buffer, expected, p->bytes) != 0)
        fail(swarm, "wrong bytes", from, number);
    else if (!is_canary(p->buffer + p->bytes, p->room - p->bytes))
        fail(swarm, "bytes behind the message changed", from, number);
    free(expected);
}

/* Looks at what has ended. A buffer that came back belongs to the user, who writes into it at once. */
static void harvest(struct swarm *swarm)
{
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = 0; i < swarm->options->messages[from]; i++) {
            struct passage *p = &swarm->passages[from][i];
            if (p->recv && !p->recv_done && lh_test(p->recv, &p->received)) {
                p->recv_done = true;
                if (p->received.error == 0)
                    check_delivered(swarm, p, from, i);
                memset(p->buffer, CANARY, p->room);
                if (swarm->sabotage == SWARM_LATE_WRITE && p->room > 0)
                    p->buffer[p->room / 2] ^= 1;
            }
            if (p->send && !p->send_done && lh_test(p->send, &p->sent)) {
                p->send_done = true;
                memset(p->data, ~CANARY, p->bytes);
            }
        }
}

static void check_passage(struct swarm *swarm, const struct passage *p, uint32_t from, uint32_t number)
{
    bool canceled = p->send_canceled || p->recv_canceled;
    bool fits = p->bytes <= p->room;
    if (!is_canary(p->buffer, p->room + GUARD_BYTES))
        fail(swarm, "a buffer changed after it was handed back", from, number);
    else if (!p->send_done || !p->recv_done)
        fail(swarm, p->send_done ? "receive never ended" : "send never ended", from, number);
    else if (p->sent.error == 0 && p->received.error != 0)
        fail(swarm, "acknowledged, but not delivered", from, number);
    else if (p->received.error == 0 && p->sent.error != 0 && !p->send_canceled)
        fail(swarm, "delivered, but the sender saw an error", from, number);
    else if (!fits && p->received.error != -LH_ETRUNCATED && !canceled)
        fail(swarm, "too long, but not refused", from, number);
    else if (!fits && p->sent.error != -LH_ETRUNCATED && !canceled)
        fail(swarm, "refused, but the sender does not know", from, number);
    else if (fits && !canceled && (p->sent.error != 0 || p->received.error != 0))
        fail(swarm, "failed without a reason", from, number);
    else if (p->sent.error == -LH_ECANCELED || p->received.error == -LH_ECANCELED)
        swarm->report->canceled += canceled;
    swarm->report->delivered += p->received.error == 0;
    swarm->report->truncated += p->received.error == -LH_ETRUNCATED;
}

/* ---- the run ----------------------------------------------------------------------------------------- */

static bool lose_control(void *context, struct sim_datagram *datagram)
{
    struct swarm *swarm = context;
    return !datagram->control || !lh_prng_chance(&swarm->control, swarm->options->control_loss);
}

static bool all_ended(const struct swarm *swarm)
{
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = 0; i < swarm->options->messages[from]; i++)
            if (!swarm->passages[from][i].send_done || !swarm->passages[from][i].recv_done)
                return false;
    return true;
}

static bool all_asked(const struct swarm *swarm)
{
    for (uint32_t from = 0; from < 2; from++)
        if (swarm->sent[from] < swarm->options->messages[from] ||
            swarm->posted[from] < swarm->options->messages[from])
            return false;
    return true;
}

static void run_under_faults(struct swarm *swarm)
{
    for (uint32_t step = 0; step < STEPS_MAX && !all_asked(swarm); step++) {
        do_something(swarm);
        connection_pair_run(&swarm->pair, lh_prng_below(&swarm->user, 2 * swarm->options->step_ns) + 1);
        harvest(swarm);
    }
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = 0; i < SWARM_MESSAGES_MAX; i++) {
            send_next(swarm, from);
            recv_next(swarm, from);
        }
}

static void heal_and_wait(struct swarm *swarm)
{
    struct lh_link_spec clean = {.delay_ns = swarm->options->link.delay_ns, .rate_bps = 10000000000u};
    lh_time until = connection_pair_now(&swarm->pair) + HEAL_TIME_NS;
    sim_world_tap(swarm->pair.world, NULL, NULL);
    sim_world_set_link(swarm->pair.world, &clean);
    sim_world_partition(swarm->pair.world, swarm->sabotage == SWARM_NEVER_HEALED);
    while (!all_ended(swarm) && connection_pair_now(&swarm->pair) < until) {
        connection_pair_run(&swarm->pair, swarm->options->link.delay_ns);
        harvest(swarm);
    }
    /* Whatever is still on the way comes late. */
    connection_pair_run(&swarm->pair, 20 * swarm->options->link.delay_ns);
}

void swarm_run(const struct swarm_options *options, enum swarm_sabotage sabotage,
               struct swarm_report *report)
{
    struct swarm *swarm = calloc(1, sizeof *swarm);
    *report = (struct swarm_report){0};
    swarm->options = options;
    swarm->report = report;
    swarm->sabotage = sabotage;
    struct lh_prng root;
    lh_prng_seed(&root, options->seed);
    swarm->user = lh_prng_fork(&root, 1);
    swarm->control = lh_prng_fork(&root, 2);
    char link[LH_LINK_TEXT_MAX];
    lh_link_format(&options->link, link, sizeof link);
    connection_pair_open(&swarm->pair, "swarm", options->seed, link, &options->attr[0], &options->attr[1]);
    sim_world_tap(swarm->pair.world, lose_control, swarm);
    make_passages(swarm);
    run_under_faults(swarm);
    heal_and_wait(swarm);
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t i = 0; i < options->messages[from]; i++)
            check_passage(swarm, &swarm->passages[from][i], from, i);
    report->trace = sim_world_trace(swarm->pair.world);
    report->took_ns = connection_pair_now(&swarm->pair);
    connection_pair_close(&swarm->pair);
    free_passages(swarm);
    free(swarm);
}
