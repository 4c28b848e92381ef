/*
 * draw.c - a plan from a seed. First it is drawn which faults exist at all, then how many and how bad (a
 * swarm: runs differ in what they contain, not only in when it happens).
 *
 * Every part has a generator of its own, and each draw is a statement of its own: the order in which a
 * compiler evaluates operands must not matter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "world/draw.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "schemes/scheme_table.h"
#include "world/draw_engines.h"
#include "world/draw_remote.h"
#include "world/group/draw.h"
#include "world/switches.h"

enum draw_part {
    PART_SHAPE = 1,
    PART_LINKS,
    PART_CLOCKS,
    PART_FAULTS,
    PART_SWITCHES,
    PART_CODES,
    PART_AUTO,
    PART_SCALE,
    PART_NEWCOMERS,
    PART_CONTROLLERS,
    PART_LIES,
    PART_ENGINES,
    PART_PEERS, /* the faults of engines */
    PART_LISTS,
    PART_MATCHES,
    PART_PAIRS = 16, /* and one more for each pair */
    PART_DEADLINES = 1000,
    PART_ONESIDED,
    PART_STRAGGLERS,
    PART_RANKS,
    PART_GROUP,
    PART_NARROW,
};

uint64_t draw_spread(struct lh_prng *prng, uint64_t low, uint64_t high)
{
    uint64_t range = high / low;
    uint64_t doublings = 63 - (uint64_t)__builtin_clzll(range);
    uint64_t base = low << lh_prng_below(prng, doublings + 1);
    uint64_t value = draw_between(prng, base, 2 * base);
    return value < high ? value : high;
}

/* ---- the world --------------------------------------------------------------------------------------- */

static void draw_shape(struct plan *plan, struct lh_prng *prng, bool *wild)
{
    static const uint8_t host_counts[] = {2, 2, 2, 2, 3, 3, 4, 5};
    plan->hosts = host_counts[lh_prng_below(prng, sizeof host_counts)];
    *wild = draw_chance(prng, 0.9);
    for (uint32_t f = 0; f < FEATURE_switches; f++) {
        bool harm = f <= FEATURE_jitter;
        bool on = draw_chance(prng, harm ? 0.35 : 0.3);
        if (on && (*wild || !harm))
            plan->features |= 1u << f;
    }
    plan->poll_share = (uint32_t)draw_between(prng, 1, 8);
    bool big = draw_chance(prng, 0.02);
    plan->pair_count = (uint32_t)draw_between(prng, 1, big ? PLAN_PAIRS_FEW : 2);
}

static void draw_link(struct lh_link_spec *link, struct lh_prng *prng, lh_time delay_ns)
{
    link->delay_ns = draw_between(prng, delay_ns / 2 + 1, 2 * delay_ns);
    link->rate_bps = draw_spread(prng, 20000000, 100000000000u);
    bool bad = draw_chance(prng, 0.25);
    link->loss = lh_prng_double(prng) * (bad ? 0.5 : 0.08);
    link->burst_packets = (double)draw_spread(prng, 2, 32);
    link->reorder = lh_prng_double(prng) * 0.2;
    link->duplicate = lh_prng_double(prng) * 0.2;
    link->corrupt = lh_prng_double(prng) * 0.1;
    link->jitter_ns = lh_prng_below(prng, 2 * delay_ns + 1);
    link->drop_tail = draw_chance(prng, 0.3);
    bool small = draw_chance(prng, 0.3);
    link->queue_bytes = draw_between(prng, 2048, 65536);
    if (!small)
        link->queue_bytes = 0;
    link->seed = lh_prng_next(prng) | 1;
}

static void draw_links(struct plan *plan, struct lh_prng *prng)
{
    lh_time delay_ns = draw_spread(prng, 10 * LH_NS_PER_US, 40 * LH_NS_PER_MS);
    for (uint32_t from = 0; from < plan->hosts; from++)
        for (uint32_t to = 0; to < plan->hosts; to++)
            draw_link(&plan->link[from][to], prng, delay_ns);
    plan->heal_ns = delay_ns * draw_spread(prng, 8, 128);
}

static void draw_clocks(struct plan *plan, struct lh_prng *prng)
{
    for (uint32_t host = 0; host < plan->hosts; host++) {
        plan->clock[host].ahead_ns = draw_spread(prng, 1, (uint64_t)1 << 50);
        plan->clock[host].skew_ppb = (int32_t)lh_prng_below(prng, 400001) - 200000;
    }
}

/* ---- who talks --------------------------------------------------------------------------------------- */

/* What a recorded seed may draw, for ever: schemes that repeat, and schemes that code; newcomers, since
 * PLAN_NEWCOMER_SEEDS; controllers. The tables may grow, and change their order: only seeds with
 * plan_draws_added() draw what is in no list here. */
static const char *const frozen[2][2] = {{"sr-nack", "sr-rto"}, {"ec:mds", "ec:xor"}};
static const char *const frozen_newcomers[] = {"hybrid"};
static const char *const frozen_controllers[] = {"fixed", "bbr", "swift", "timely", "dcqcn", "eqds"};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define ADDED_MAX   16u /* names of one kind that were added since */

static bool is_in(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

struct names {
    const char *list[ADDED_MAX];
    uint64_t count;
};

static const struct lh_scheme *draw_scheme(struct lh_prng *prng, bool codes)
{
    const char *name = frozen[codes][lh_prng_below(prng, 2)];
    return scheme_table_machines(name, strlen(name));
}

static const char *draw_name(const struct names *added, const char *const *names, size_t count,
                             struct lh_prng *prng)
{
    return added->count > 0 ? added->list[lh_prng_below(prng, added->count)]
                            : names[lh_prng_below(prng, count)];
}

/* Deadlines have seeds of their own. */
static struct names added_schemes(uint64_t seed)
{
    struct names added = {.count = 0};
    for (const struct lh_scheme *const *s = lh_schemes(); *s && added.count < ADDED_MAX; s++)
        if (plan_draws_added(seed) && !(*s)->deadline && !is_in(frozen[0], 2, (*s)->name) &&
            !is_in(frozen[1], 2, (*s)->name) &&
            !is_in(frozen_newcomers, COUNT(frozen_newcomers), (*s)->name))
            added.list[added.count++] = (*s)->name;
    return added;
}

const char *draw_controller(uint64_t seed, struct lh_prng *prng)
{
    struct names added = {.count = 0};
    for (const struct lh_congestion *const *c = lh_congestions(); *c && added.count < ADDED_MAX; c++)
        if (plan_draws_added(seed) && !is_in(frozen_controllers, COUNT(frozen_controllers), (*c)->name))
            added.list[added.count++] = (*c)->name;
    return draw_name(&added, frozen_controllers, COUNT(frozen_controllers), prng);
}

bool draw_fits(const struct lh_attr *attr, const struct lh_scheme *scheme, const char *parameters)
{
    uint8_t parsed[LH_SCHEME_PARAMS];
    uint32_t chunks = (uint32_t)(attr->slot_bytes / attr->chunk_bytes);
    if (scheme->parse(parameters, parsed) != 0)
        return false;
    return !scheme->coding || (attr->slots > 1 && scheme->coding->transfer_chunks_max(parsed, chunks) > 0);
}

/* What stands after a comma, of schemes that take it. */
static const char *const parameters[] = {"",        "alpha=0.25", "alpha=0.5", "alpha=1", "alpha=4",
                                         "alpha=9", "k=4,m=2",    "k=8,m=4",   "k=16,m=2"};

/* With what it takes after a comma. */
static void draw_reliability(struct lh_prng *prng, char *text, size_t size)
{
    uint8_t parsed[LH_SCHEME_PARAMS];
    const struct lh_scheme *scheme = draw_scheme(prng, false);
    const char *chosen = "";
    uint64_t start = lh_prng_below(prng, sizeof parameters / sizeof parameters[0]);
    for (uint64_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        const char *tried = parameters[(start + i) % (sizeof parameters / sizeof parameters[0])];
        if (scheme->parse(tried, parsed) == 0) {
            chosen = tried;
            break;
        }
    }
    snprintf(text, size, "%s%s%s", scheme->name, *chosen ? "," : "", chosen);
}

void draw_code(const struct lh_attr *attr, struct lh_prng *prng, char *text, size_t size)
{
    static const struct {
        uint8_t k;
        uint8_t m;
    } codes[] = {{32, 8}, {4, 2}, {8, 4}, {16, 2}, {3, 1}, {2, 2}, {1, 3}, {7, 5}, {4, 1}, {1, 1}};
    static const char *const ends[] = {"",          ",fallback=sr",     ",spread=1",           ",spread=3",
                                       ",beta=0.1", ",beta=2,spread=2", ",fallback=sr,beta=0", ""};
    const struct lh_scheme *scheme = draw_scheme(prng, true);
    uint64_t start = lh_prng_below(prng, sizeof codes / sizeof codes[0]);
    uint64_t end = lh_prng_below(prng, sizeof ends / sizeof ends[0]);
    text[0] = '\0';
    for (uint64_t i = 0; scheme && attr->slots > 1 && i < sizeof codes / sizeof codes[0]; i++) {
        uint64_t tried = (start + i) % (sizeof codes / sizeof codes[0]);
        uint8_t params[LH_SCHEME_PARAMS];
        char rest[40];
        snprintf(rest, sizeof rest, "k=%u,m=%u%s", codes[tried].k, codes[tried].m, ends[end]);
        uint32_t chunks = (uint32_t)(attr->slot_bytes / attr->chunk_bytes);
        if (scheme->parse(rest, params) != 0 || scheme->coding->transfer_chunks_max(params, chunks) == 0)
            continue;
        snprintf(text, size, "%s,%s", scheme->name, rest);
        return;
    }
}

void draw_newcomer(uint64_t seed, const struct lh_attr *attr, struct lh_prng *prng, char *text, size_t size)
{
    const uint64_t choices = COUNT(parameters);
    const struct names added = added_schemes(seed);
    const char *name = draw_name(&added, frozen_newcomers, COUNT(frozen_newcomers), prng);
    const struct lh_scheme *scheme = scheme_table_machines(name, strlen(name));
    text[0] = '\0';
    uint64_t start = lh_prng_below(prng, choices);
    for (uint64_t i = 0; i < choices && text[0] == '\0'; i++) {
        const char *tried = parameters[(start + i) % choices];
        if (draw_fits(attr, scheme, tried))
            snprintf(text, size, "%s%s%s", scheme->name, *tried ? "," : "", tried);
    }
}

static void draw_newcomers(struct plan *plan, struct lh_prng *prng)
{
    for (uint32_t i = 0; i < plan->pair_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            struct plan_pair *pair = &plan->pairs[i];
            bool newcomer = draw_chance(prng, 0.7);
            draw_newcomer(plan->seed, &pair->attr[side], prng, pair->newcomer[side],
                          sizeof pair->newcomer[side]);
            if (pair->newcomer[side][0])
                plan->features |= 1u << FEATURE_newcomer;
            if (!newcomer)
                pair->newcomer[side][0] = '\0';
        }
}

/* Of messages that come whole as a rule, and of those that never do; below what a silent peer is given. */
static void draw_deadlines(struct plan *plan, struct lh_prng *prng)
{
    static const char *const codes[] = {"", "", ",code=mds,k=4,m=2", ",code=mds,k=8,m=1",
                                        ",code=xor,k=4,m=2"};
    static const char name[] = "bounded";
    const struct lh_scheme *scheme = scheme_table_machines(name, sizeof name - 1);
    plan->features |= 1u << FEATURE_deadline;
    for (uint32_t i = 0; i < plan->pair_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            struct plan_pair *pair = &plan->pairs[i];
            bool has = draw_chance(prng, 0.8), automatic = draw_chance(prng, 0.2);
            uint64_t us = draw_spread(prng, 100, 400000);
            const char *code = codes[lh_prng_below(prng, sizeof codes / sizeof codes[0])];
            char rest[40];
            pair->zeroes[side] = draw_chance(prng, 0.5);
            snprintf(rest, sizeof rest, "deadline=%uus%s", (unsigned)us, code);
            if (automatic)
                snprintf(rest, sizeof rest, "deadline=auto%s", code);
            if (has && draw_fits(&pair->attr[side], scheme, rest))
                snprintf(pair->deadline[side], sizeof pair->deadline[side], "%s,%s", name, rest);
        }
}

/* In half of the runs, a host that stands still now and then, for about as long as a deadline. */
static void draw_straggler(struct plan *plan, struct lh_prng *prng)
{
    bool exists = draw_chance(prng, 0.5);
    uint64_t times = draw_spread(prng, 2, 12);
    uint8_t host = (uint8_t)lh_prng_below(prng, plan->hosts);
    for (; exists && times > 0; times--) {
        struct plan_event *event = draw_event(plan, EVENT_pause, prng);
        event->host = host;
        event->span_ns = draw_spread(prng, 100 * LH_NS_PER_US, 100 * LH_NS_PER_MS);
    }
}

/* In half of the lives, one of the list: also the one that simulated networks have anyway. */
static void draw_controllers(struct plan *plan, struct lh_prng *prng)
{
    plan->features |= 1u << FEATURE_congestion;
    for (uint32_t i = 0; i < plan->pair_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            struct plan_pair *pair = &plan->pairs[i];
            bool chosen = draw_chance(prng, 0.5);
            const char *name = draw_controller(plan->seed, prng);
            snprintf(pair->congestion[side], sizeof pair->congestion[side], "%s", chosen ? name : "");
        }
}

/* Of its own generator, and last: it moves nothing of what the seed meant before. */
static void draw_codes(struct plan *plan, struct lh_prng *prng)
{
    if (draw_chance(prng, 0.5))
        plan->features |= 1u << FEATURE_code;
    for (uint32_t i = 0; i < plan->pair_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            struct plan_pair *pair = &plan->pairs[i];
            char *text = pair->coded[side];
            bool codes = draw_chance(prng, 0.7);
            draw_code(&pair->attr[side], prng, text, sizeof pair->coded[side]);
            if (!codes)
                text[0] = '\0';
        }
}

/* Of its own generator, too. Not of all sides: each scheme has a peer that chooses, and one that does not.
 * */
static void draw_automatic(struct plan *plan, struct lh_prng *prng)
{
    static const char *const texts[] = {"auto",
                                        "auto",
                                        "auto,by=p50",
                                        "auto,by=p99",
                                        "auto,by=p999",
                                        "auto,overhead=0.1",
                                        "auto,overhead=25%,by=p99",
                                        "auto,overhead=0"};
    if (draw_chance(prng, 0.3))
        plan->features |= 1u << FEATURE_auto;
    bool whim = draw_chance(prng, 0.5);
    if (whim && plan_has(plan, FEATURE_auto))
        plan->features |= 1u << FEATURE_whim;
    for (uint32_t i = 0; i < plan->pair_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            bool chooses = draw_chance(prng, 0.7);
            const char *text = texts[lh_prng_below(prng, sizeof texts / sizeof texts[0])];
            snprintf(plan->pairs[i].automatic[side], sizeof plan->pairs[i].automatic[side], "%s",
                     chooses ? text : "");
        }
}

/* What users have and small worlds do not, of its own generator. What `large` makes of the sizes is drawn
 * when the life begins (large.h): without it, the life is what it was. */
static void draw_scale(struct plan *plan, struct lh_prng *prng)
{
    bool large = draw_chance(prng, 0.025);
    bool wrap = draw_chance(prng, 0.1);
    bool stale = draw_chance(prng, 0.1);
    plan->features |= (uint32_t)large << FEATURE_large;
    plan->features |= (uint32_t)wrap << FEATURE_wrap;
    plan->features |= (uint32_t)stale << FEATURE_stale;
}

/* Of a seed with plan_draws_added() half of the pairs have an MTU that fills a path, as udp's may. */
static uint32_t draw_mtu(uint64_t seed, struct lh_prng *prng)
{
    uint32_t mtu = 256u << lh_prng_below(prng, 5);
    bool fills = plan_draws_added(seed) && draw_chance(prng, 0.5);
    return fills ? 64 * (uint32_t)draw_between(prng, 4, 64) : mtu;
}

static void draw_sizes(uint64_t seed, struct lh_attr *attr, struct lh_prng *prng)
{
    lh_attr_init(attr);
    attr->mtu_bytes = draw_mtu(seed, prng);
    attr->chunk_bytes = attr->mtu_bytes << lh_prng_below(prng, 4);
    bool wide = draw_chance(prng, 0.05); /* chunks of more than one word of the packet bitmap */
    if (wide) {
        attr->mtu_bytes = 256;
        attr->chunk_bytes = 256 * 128;
    }
    uint64_t chunks = draw_spread(prng, 1, 32);
    attr->slot_bytes = attr->chunk_bytes * chunks;
    if (attr->slot_bytes > 131072)
        attr->slot_bytes = attr->chunk_bytes * (131072 / attr->chunk_bytes);
    attr->slots = 1u << lh_prng_below(prng, 5);
    attr->channels = (uint32_t)draw_between(prng, 1, 4);
    attr->generations = (uint32_t)draw_between(prng, 1, 8);
    attr->window_bytes = attr->chunk_bytes * draw_spread(prng, 1, 128);
    attr->rate_bps = draw_spread(prng, 20000000, 10000000000u);
    attr->receive_buffer_bytes = draw_spread(prng, 8192, 8u << 20);
}

static void draw_pair(struct plan *plan, struct plan_pair *pair, struct lh_prng *prng)
{
    pair->raw = draw_chance(prng, 0.4);
    pair->host[0] = (uint8_t)lh_prng_below(prng, plan->hosts);
    uint64_t other = lh_prng_below(prng, plan->hosts - 1);
    pair->host[1] = (uint8_t)(other < pair->host[0] ? other : other + 1);
    draw_sizes(plan->seed, &pair->attr[0], prng);
    pair->attr[1] = pair->attr[0];
    for (uint32_t side = 0; side < 2; side++) {
        draw_reliability(prng, pair->reliability[side], sizeof pair->reliability[side]);
        pair->attr[side].window_bytes = pair->attr[0].chunk_bytes * draw_spread(prng, 1, 128);
    }
    bool other_split = draw_chance(prng, 0.3);
    pair->message_bits = other_split ? 8 : 10;
    pair->fragment_bits = other_split ? 2 : 4;
    pair->workers = (uint8_t)draw_between(prng, 1, PLAN_WORKERS);
    if (pair->workers > pair->attr[0].channels)
        pair->workers = (uint8_t)pair->attr[0].channels;
    pair->peer_timeout_ns = draw_spread(prng, LH_NS_PER_S / 2, 16 * LH_NS_PER_S);
    if (!plan_has(plan, FEATURE_pace))
        pair->attr[0].rate_bps = pair->attr[1].rate_bps = 0;
}

/* ---- events ------------------------------------------------------------------------------------------ */

struct plan_event *draw_event(struct plan *plan, enum plan_event_kind kind, struct lh_prng *prng)
{
    assert(plan->event_count < PLAN_EVENTS_MAX);
    struct plan_event *event = &plan->events[plan->event_count++];
    *event = (struct plan_event){.kind = kind};
    event->at_ns = lh_prng_below(prng, plan->heal_ns);
    event->seed = lh_prng_next(prng);
    return event;
}

static uint64_t draw_bytes(const struct lh_attr *attr, struct lh_prng *prng, uint64_t maximum)
{
    uint64_t edges[] = {attr->mtu_bytes, attr->chunk_bytes, attr->slot_bytes};
    uint64_t edge = edges[lh_prng_below(prng, 3)];
    uint64_t times = draw_between(prng, 1, 3);
    uint64_t bytes = edge * times + lh_prng_below(prng, 3) - 1;
    uint64_t free_bytes = draw_spread(prng, 1, maximum);
    switch (lh_prng_below(prng, 8)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
    case 3: /* around an edge */
        return bytes < maximum ? bytes : maximum;
    default:
        return free_bytes;
    }
}

static void draw_messages(struct plan *plan, uint32_t number, struct lh_prng *prng)
{
    const struct lh_attr *attr = &plan->pairs[number].attr[0];
    uint64_t messages = draw_spread(prng, 1, 24);
    uint64_t maximum = draw_spread(prng, 4096, 131072);
    bool one_way = draw_chance(prng, 0.4);
    bool cancels = draw_chance(prng, 0.25);
    bool shorts = draw_chance(prng, 0.25);
    for (uint64_t i = 0; i < messages; i++) {
        uint16_t index = (uint16_t)plan->event_count;
        struct plan_event *event = draw_event(plan, EVENT_message, prng);
        event->pair = (uint8_t)number;
        event->side = (uint8_t)lh_prng_below(prng, 2);
        if (one_way)
            event->side = 0;
        event->bytes = draw_bytes(attr, prng, maximum);
        bool exact = draw_chance(prng, 0.5);
        uint64_t extra = draw_bytes(attr, prng, maximum);
        event->room = event->bytes + (exact ? 0 : extra);
        bool is_short = draw_chance(prng, 0.2) && shorts && event->bytes > 0;
        if (is_short)
            event->room = lh_prng_below(prng, event->bytes);
        lh_time recv_at_ns = lh_prng_below(prng, plan->heal_ns);
        event->span_ns = recv_at_ns; /* of the receive: a moment of its own */
        bool canceled = draw_chance(prng, 0.2) && cancels;
        if (!canceled)
            continue;
        struct plan_event *cancel = draw_event(plan, EVENT_cancel, prng);
        cancel->target = index;
        cancel->side = (uint8_t)lh_prng_below(prng, 2);
    }
    bool closes = draw_chance(prng, 0.1);
    if (closes) {
        struct plan_event *event = draw_event(plan, EVENT_close, prng);
        event->pair = (uint8_t)number;
        event->side = (uint8_t)lh_prng_below(prng, 2);
    }
}

static void draw_exchanges(struct plan *plan, uint32_t number, struct lh_prng *prng)
{
    const struct lh_attr *attr = &plan->pairs[number].attr[0];
    uint64_t exchanges = draw_spread(prng, 1, 32);
    uint64_t maximum = attr->slot_bytes;
    bool one_way = draw_chance(prng, 0.5);
    lh_time patience_ns = draw_spread(prng, 1000, plan->heal_ns);
    for (uint64_t i = 0; i < exchanges; i++) {
        struct plan_event *event = draw_event(plan, EVENT_exchange, prng);
        event->pair = (uint8_t)number;
        event->side = (uint8_t)lh_prng_below(prng, 2);
        if (one_way)
            event->side = 0;
        event->bytes = draw_bytes(attr, prng, maximum);
        if (event->bytes > maximum)
            event->bytes = maximum;
        uint64_t sent = lh_prng_below(prng, event->bytes + 1);
        bool whole = draw_chance(prng, 0.6);
        event->room = whole ? event->bytes : sent;
        event->delay_ns = lh_prng_below(prng, 2 * patience_ns);
    }
}

static void draw_direction(const struct plan *plan, struct plan_event *event, struct lh_prng *prng)
{
    event->host = (uint8_t)lh_prng_below(prng, plan->hosts);
    uint64_t other = lh_prng_below(prng, plan->hosts - 1);
    event->peer = (uint8_t)(other < event->host ? other : other + 1);
}

/* Most faults are as long as a few round trips; some last seconds. */
lh_time sample_span(const struct plan *plan, struct lh_prng *prng)
{
    lh_time rtt_ns = 2 * plan->link[0][1].delay_ns;
    bool lengthy = draw_chance(prng, 0.1);
    lh_time span_ns = draw_between(prng, 1, 8 * rtt_ns);
    lh_time seconds_ns = draw_between(prng, 1, 3 * LH_NS_PER_S);
    return lengthy ? seconds_ns : span_ns;
}

static void draw_fault(struct plan *plan, enum plan_event_kind kind, struct lh_prng *prng)
{
    struct plan_event *event = draw_event(plan, kind, prng);
    draw_direction(plan, event, prng);
    event->span_ns = sample_span(plan, prng);
    event->chance = lh_prng_double(prng) * lh_prng_double(prng);
    event->pair = (uint8_t)lh_prng_below(prng, plan->pair_count);
    event->side = (uint8_t)lh_prng_below(prng, 2);
    event->delay_ns = sample_span(plan, prng);
    uint64_t jump_ns = draw_spread(prng, 1000, 32 * LH_NS_PER_S);
    if (kind == EVENT_jump)
        event->delay_ns = jump_ns;
    bool all = draw_chance(prng, 0.3);
    if (kind == EVENT_memory && all)
        event->chance = 1;
}

static void draw_faults(struct plan *plan, struct lh_prng *prng)
{
    for (uint32_t kind = EVENT_cut; kind <= EVENT_forge; kind++) {
        bool exists = draw_chance(prng, kind == EVENT_forge || kind == EVENT_crash ? 0.1 : 0.14);
        uint64_t times = draw_between(prng, 1, kind == EVENT_crash ? 2 : 4);
        for (uint64_t i = 0; exists && i < times; i++)
            draw_fault(plan, (enum plan_event_kind)kind, prng);
    }
}

/* Where somebody listens to reports. */
static uint32_t find_controlled(const struct plan *plan, uint8_t senders[2 * PLAN_PAIRS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 2 * plan->pair_count; i++)
        if (plan->pairs[i / 2].congestion[i % 2][0] != '\0')
            senders[count++] = (uint8_t)i;
    return count;
}

static void draw_lies(struct plan *plan, struct lh_prng *prng)
{
    uint8_t senders[2 * PLAN_PAIRS_MAX];
    uint32_t count = find_controlled(plan, senders);
    bool exist = draw_chance(prng, 0.85);
    uint64_t lies = draw_between(prng, 1, 4);
    for (; exist && count > 0 && lies > 0; lies--) {
        struct plan_event *event = draw_event(plan, EVENT_lie, prng);
        uint8_t sender = senders[lh_prng_below(prng, count)];
        event->pair = sender / 2;
        event->side = sender % 2;
        event->host = plan->pairs[event->pair].host[1 - event->side];
        event->peer = plan->pairs[event->pair].host[event->side];
        event->span_ns = sample_span(plan, prng);
        event->chance = lh_prng_double(prng);
    }
}

/* A path whose MTU falls, to some bytes of UDP payload. Early, and for so long that packets become smaller
 * meanwhile, where the life is that long. */
static void draw_narrow(struct plan *plan, struct lh_prng *prng)
{
    bool is_long = plan->heal_ns > LH_NS_PER_S / 2;
    bool exists = draw_chance(prng, is_long ? 0.5 : 0.1);
    uint64_t times = draw_between(prng, 1, 3);
    for (uint64_t i = 0; exists && i < times; i++) {
        struct plan_event *event = draw_event(plan, EVENT_narrow, prng);
        draw_direction(plan, event, prng);
        event->at_ns = lh_prng_below(prng, plan->heal_ns / 4 + 1);
        event->bytes = draw_spread(prng, 300, 4096);
        bool lengthy = draw_chance(prng, 0.8);
        event->span_ns = lengthy ? plan->heal_ns : sample_span(plan, prng);
        event->chance = 1;
    }
}

static void draw_pairs(struct plan *plan, const struct lh_prng *root, struct lh_prng *engines, bool wild)
{
    const uint64_t seed = plan->seed;
    struct lh_prng faults = lh_prng_fork(root, PART_FAULTS);
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        struct lh_prng prng = lh_prng_fork(root, PART_PAIRS + i);
        draw_pair(plan, &plan->pairs[i], &prng);
        if (plan_has(plan, FEATURE_engine))
            draw_peer(plan, i, engines);
        uint32_t first = plan->event_count;
        if (plan->pairs[i].raw)
            draw_exchanges(plan, i, &prng);
        else
            draw_messages(plan, i, &prng);
        if (plan_has(plan, FEATURE_engine))
            draw_small(plan, first, engines);
    }
    if (wild)
        draw_faults(plan, &faults);
    struct lh_prng switches = lh_prng_fork(root, PART_SWITCHES);
    if (draw_chance(&switches, 0.1))
        plan->features |= 1u << FEATURE_switches;
    switches_draw(plan, &switches);
    struct lh_prng codes = lh_prng_fork(root, PART_CODES);
    draw_codes(plan, &codes);
    struct lh_prng automatic = lh_prng_fork(root, PART_AUTO);
    draw_automatic(plan, &automatic);
    struct lh_prng scale = lh_prng_fork(root, PART_SCALE);
    draw_scale(plan, &scale);
    struct lh_prng newcomers = lh_prng_fork(root, PART_NEWCOMERS);
    if (seed >= PLAN_ADDED_SEEDS)
        draw_newcomers(plan, &newcomers);
    struct lh_prng controllers = lh_prng_fork(root, PART_CONTROLLERS);
    if (seed >= PLAN_ADDED_SEEDS)
        draw_controllers(plan, &controllers);
    struct lh_prng lies = lh_prng_fork(root, PART_LIES);
    if (seed >= PLAN_ADDED_SEEDS && wild)
        draw_lies(plan, &lies);
    struct lh_prng peers = lh_prng_fork(root, PART_PEERS);
    if (plan_has(plan, FEATURE_engine) && wild)
        draw_peer_faults(plan, &peers);
    struct lh_prng deadlines = lh_prng_fork(root, PART_DEADLINES);
    if (seed >= PLAN_DEADLINE_SEEDS)
        draw_deadlines(plan, &deadlines);
    struct lh_prng lists = lh_prng_fork(root, PART_LISTS);
    if (plan_has(plan, FEATURE_engine) && draw_chance(&lists, 0.5))
        plan->features |= 1u << FEATURE_lists;
    struct lh_prng matches = lh_prng_fork(root, PART_MATCHES);
    if (plan_has(plan, FEATURE_engine))
        draw_matches(plan, &matches);
    struct lh_prng onesided = lh_prng_fork(root, PART_ONESIDED);
    if (seed >= PLAN_ONESIDED_SEEDS)
        draw_remote(plan, &onesided);
    struct lh_prng stragglers = lh_prng_fork(root, PART_STRAGGLERS);
    if (seed >= PLAN_DEADLINE_SEEDS && wild)
        draw_straggler(plan, &stragglers);
    struct lh_prng narrow = lh_prng_fork(root, PART_NARROW);
    if (seed >= PLAN_ADDED_SEEDS && wild)
        draw_narrow(plan, &narrow);
}

void plan_draw(uint64_t seed, struct plan *plan)
{
    struct lh_prng root;
    bool wild;
    memset(plan, 0, sizeof *plan);
    plan->seed = seed;
    lh_prng_seed(&root, seed);
    struct lh_prng shape = lh_prng_fork(&root, PART_SHAPE);
    struct lh_prng links = lh_prng_fork(&root, PART_LINKS);
    struct lh_prng clocks = lh_prng_fork(&root, PART_CLOCKS);
    draw_shape(plan, &shape, &wild);
    struct lh_prng engines = lh_prng_fork(&root, PART_ENGINES);
    struct lh_prng ranks = lh_prng_fork(&root, PART_RANKS);
    struct lh_prng group = lh_prng_fork(&root, PART_GROUP);
    if (seed >= PLAN_GROUP_SEEDS)
        draw_ranks(plan, &ranks);
    else if (seed >= PLAN_ENGINE_SEEDS)
        draw_engines(plan, &engines);
    draw_links(plan, &links);
    draw_clocks(plan, &clocks);
    if (seed >= PLAN_GROUP_SEEDS)
        draw_group(plan, &group, wild);
    if (seed >= PLAN_BOUNDED_GROUP_SEEDS)
        draw_bounded(plan, &group);
    if (seed < PLAN_GROUP_SEEDS)
        draw_pairs(plan, &root, &engines, wild);
}
