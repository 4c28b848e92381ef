/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/large.h"

#include <string.h>

#include "wire/scheme_messages.h"
#include "world/draw.h"

#define ACK_CHUNKS     (64u * SR_ACK_WORDS_MAX)
#define WORD_CHUNKS    64u
#define WIDE_CHUNKS    1500u                 /* at most, of a slot of several words */
#define RAW_CHUNKS     400u                  /* a user of SDR receives looks at each of them every time */
#define WIDE_BYTES     ((uint64_t)512 << 10) /* of all messages that are made longer */
#define HUGE_BYTES     ((uint64_t)3 << 20)
#define HUGE_SLOTS_MAX 4u
#define ROOMY_BYTES    ((uint64_t)8 << 20)
#define MANY_SEGMENTS  66u /* a DONE's bitmap and more */
#define MAX_SEGMENTS   240u
#define STRETCH_MAX    6u
#define SENDING_MAX_NS (2 * LH_NS_PER_S)
#define BITS_PER_BYTE  8u

struct enlarger {
    struct plan *plan;
    struct lh_prng prng;
    bool huge;           /* slots of more chunks than one acknowledgement names */
    bool many;           /* more of them than the bitmap of a DONE has bits, and short */
    uint64_t left_bytes; /* by which messages may still grow */
};

static uint32_t draw_many_slots(struct lh_prng *prng)
{
    return 128u << lh_prng_below(prng, 2);
}

static void enlarge_slots(struct enlarger *e, struct plan_pair *pair)
{
    struct lh_attr *attr = &pair->attr[0];
    bool huge = e->huge && !pair->raw;
    uint32_t packets = 1u << lh_prng_below(&e->prng, huge ? 1 : 2);
    uint64_t wide = draw_spread(&e->prng, WORD_CHUNKS + 1, pair->raw ? RAW_CHUNKS : WIDE_CHUNKS);
    uint64_t maximum = draw_between(&e->prng, ACK_CHUNKS + 1, ACK_CHUNKS + 1000);
    bool coded = strstr(pair->deadline[0], "code=") || strstr(pair->deadline[1], "code=");
    if (e->many) {
        wide = coded ? 8 : draw_between(&e->prng, 1, 2); /* parity of a group fits */
        attr->slots = draw_many_slots(&e->prng);
    }
    attr->mtu_bytes = 256;
    attr->chunk_bytes = attr->mtu_bytes * packets;
    attr->slot_bytes = attr->chunk_bytes * (huge ? maximum : wide);
    if (huge && attr->slots > HUGE_SLOTS_MAX)
        attr->slots = HUGE_SLOTS_MAX;
    attr->receive_buffer_bytes = draw_spread(&e->prng, 65536, ROOMY_BYTES);
    /* All of it at once: only then do many chunks arrive behind the first that is missing. */
    bool roomy = lh_prng_chance(&e->prng, 0.6);
    if (roomy)
        attr->receive_buffer_bytes = ROOMY_BYTES;
    pair->attr[1] = pair->attr[0];
    for (uint32_t side = 0; side < 2; side++) {
        uint64_t chunks = draw_spread(&e->prng, WORD_CHUNKS, 2 * WIDE_CHUNKS);
        pair->attr[side].window_bytes = roomy ? ROOMY_BYTES : attr->chunk_bytes * chunks;
        if (pair->coded[side][0] != '\0')
            draw_code(&pair->attr[side], &e->prng, pair->coded[side], sizeof pair->coded[side]);
        if (pair->newcomer[side][0] != '\0') { /* of a generator of its own: the others draw as before */
            struct lh_prng newcomer = e->prng;
            draw_newcomer(e->plan->seed, &pair->attr[side], &newcomer, pair->newcomer[side],
                          sizeof pair->newcomer[side]);
        }
    }
}

/* Around an end of a segment, or any length of more than one word of chunks, or segments. */
static uint64_t draw_length(struct enlarger *e, const struct lh_attr *attr)
{
    if (e->many)
        return draw_between(&e->prng, MANY_SEGMENTS * attr->slot_bytes, MAX_SEGMENTS * attr->slot_bytes);
    bool edge = lh_prng_chance(&e->prng, e->huge ? 0.8 : 0.3);
    uint64_t segments = draw_between(&e->prng, 1, e->huge ? 1 : 3);
    uint64_t nearby = lh_prng_below(&e->prng, 2 * attr->chunk_bytes);
    uint64_t any = draw_between(&e->prng, WORD_CHUNKS * attr->chunk_bytes, 2 * attr->slot_bytes);
    return edge ? attr->slot_bytes * segments + nearby - attr->chunk_bytes : any;
}

static void enlarge_message(struct enlarger *e, struct plan_event *event)
{
    const struct plan_pair *pair = &e->plan->pairs[event->pair];
    bool chosen = lh_prng_chance(&e->prng, 0.5);
    uint64_t bytes = draw_length(e, &pair->attr[0]);
    uint64_t share = lh_prng_below(&e->prng, bytes);
    if (pair->raw && bytes > pair->attr[0].slot_bytes)
        bytes = pair->attr[0].slot_bytes;
    if (pair->raw && event->bytes > pair->attr[0].slot_bytes) {
        event->bytes = pair->attr[0].slot_bytes;
        event->room = event->room < event->bytes ? event->room : event->bytes;
    }
    if (!chosen || bytes <= event->bytes || bytes > e->left_bytes)
        return;
    e->left_bytes -= bytes;
    if (event->room >= event->bytes)
        event->room = bytes + (pair->raw ? 0 : event->room - event->bytes);
    else /* too short for it; of an exchange, what is sent */
        event->room = share < bytes ? share : bytes;
    event->bytes = bytes;
}

/* Everything takes longer, and so do the faults: most of a long message must still meet them. */
static void stretch(struct plan *plan, lh_time times)
{
    plan->heal_ns *= times;
    for (uint32_t i = 0; i < plan->event_count; i++) {
        struct plan_event *event = &plan->events[i];
        event->at_ns *= times;
        if (event->kind == EVENT_message)
            event->span_ns *= times;
        if (event->kind == EVENT_exchange)
            event->delay_ns *= times;
    }
}

/* How long the slowest link takes for so much. */
static lh_time sending_ns(const struct plan *plan, uint64_t bytes)
{
    lh_time max_ns = 0;
    for (uint32_t from = 0; from < plan->hosts; from++)
        for (uint32_t to = 0; to < plan->hosts; to++) {
            uint64_t bps = plan_link(plan, from, to).rate_bps;
            lh_time span_ns = bps ? bytes * BITS_PER_BYTE * LH_NS_PER_S / bps : 0;
            max_ns = span_ns > max_ns ? span_ns : max_ns;
        }
    return max_ns < SENDING_MAX_NS ? max_ns : SENDING_MAX_NS;
}

/* As many slots as connections of groups have, and blocks of several segments. */
static void enlarge_group(struct plan_group *group, struct lh_prng *prng)
{
    for (uint32_t across = 0; across < 2; across++) {
        struct lh_attr *attr = &group->attr[across];
        uint64_t shorter = attr->slot_bytes / draw_between(prng, 1, 8);
        bool coded = strncmp(group->reliability[across], "sr-", 3) != 0; /* parity of a group fits */
        attr->slots = draw_many_slots(prng);
        attr->window_bytes = ROOMY_BYTES;
        if (!coded && shorter >= attr->chunk_bytes)
            attr->slot_bytes = shorter - shorter % attr->chunk_bytes;
    }
}

void plan_enlarge(struct plan *plan)
{
    struct enlarger e = {.plan = plan};
    struct lh_prng scale; /* of its own: the others draw as before */
    if (!plan_has(plan, FEATURE_large))
        return;
    lh_prng_seed(&e.prng, plan->seed ^ 0x1A26E);
    lh_prng_seed(&scale, plan->seed ^ 0x3B0);
    if (plan_has(plan, FEATURE_group)) {
        enlarge_group(&plan->group, &scale);
        return;
    }
    e.huge = lh_prng_chance(&e.prng, 0.1);
    e.many = lh_prng_chance(&scale, 0.4) && !e.huge;
    uint64_t bytes = e.huge ? HUGE_BYTES : WIDE_BYTES;
    e.left_bytes = bytes;
    for (uint32_t i = 0; i < plan->pair_count; i++)
        enlarge_slots(&e, &plan->pairs[i]);
    for (uint32_t i = 0; i < plan->event_count; i++)
        if (plan->events[i].kind == EVENT_message || plan->events[i].kind == EVENT_exchange)
            enlarge_message(&e, &plan->events[i]);
    uint64_t times = draw_between(&e.prng, 1, STRETCH_MAX);
    stretch(plan, times);
    plan->heal_ns += sending_ns(plan, bytes - e.left_bytes);
}
