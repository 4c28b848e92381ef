/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/describe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedules.h"
#include "world/group/call.h"
#include "world/large.h"
#include "world/switches.h"

#define WORD_MAX 32u
#define LIST_MAX 2048u

typedef unsigned long long wide; /* for %llu */

/* ---- in words ---------------------------------------------------------------------------------------- */

static void describe_links(FILE *out, const struct plan *plan)
{
    char text[LH_LINK_TEXT_MAX];
    for (uint32_t from = 0; from < plan->hosts; from++)
        for (uint32_t to = 0; to < plan->hosts; to++) {
            struct lh_link_spec link = plan_link(plan, from, to);
            if (from != to)
                fprintf(out, "  link %u to %u: %s\n", from, to, lh_link_format(&link, text, sizeof text));
        }
    for (uint32_t host = 0; host < plan->hosts && plan_has(plan, FEATURE_skew); host++)
        fprintf(out, "  clock of host %u: %llu ns ahead, gains %d ns a second\n", host,
                (wide)plan->clock[host].ahead_ns, plan->clock[host].skew_ppb);
}

static void describe_pair(FILE *out, const struct plan *plan, uint32_t number)
{
    const struct plan_pair *pair = &plan->pairs[number];
    const struct lh_attr *a = &pair->attr[0];
    fprintf(out,
            "  pair %u: %s, hosts %u and %u, mtu %u, chunk %u, slot %llu, slots %u, channels %u, "
            "generations %u, "
            "windows %llu and %llu, pace %llu, buffer %llu, workers %u",
            number, pair->raw ? "SDR" : "connection", pair->host[0], pair->host[1], a->mtu_bytes,
            a->chunk_bytes, (wide)a->slot_bytes, a->slots, a->channels, a->generations,
            (wide)a->window_bytes, (wide)pair->attr[1].window_bytes, (wide)a->rate_bps,
            (wide)a->receive_buffer_bytes, plan_has(plan, FEATURE_workers) ? pair->workers : 1);
    if (plan_has(plan, FEATURE_engine))
        fprintf(out, ", shares %d %d, chained %d %d, matches %d %d, opens at %llu us", pair->shared[0],
                pair->shared[1], pair->chained[0], pair->chained[1], plan_matches(plan, pair, 0),
                plan_matches(plan, pair, 1), (wide)(pair->opens_ns / LH_NS_PER_US));
    for (uint32_t side = 0; side < 2; side++)
        if (plan_congestion(plan, pair, side))
            fprintf(out, ", side %u has %s", side, plan_congestion(plan, pair, side));
    if (pair->raw)
        fprintf(out, ", immediate %u + %u\n", pair->message_bits, pair->fragment_bits);
    else
        fprintf(out, ", %s and %s, patience %llu ms\n", plan_reliability(plan, pair, 0),
                plan_reliability(plan, pair, 1), (wide)(pair->peer_timeout_ns / LH_NS_PER_MS));
}

static void describe_engines(FILE *out, const struct plan *plan)
{
    for (uint32_t host = 0; host < plan->hosts && plan_has(plan, FEATURE_engine); host++) {
        const struct plan_engine *engine = &plan->engines[host];
        fprintf(out, "  engine of host %u: workers %u, buffer %llu, queues:", host,
                plan_has(plan, FEATURE_workers) ? engine->workers : 1, (wide)engine->receive_buffer_bytes);
        for (uint32_t i = 0; i < engine->queues; i++)
            fprintf(out, " %u (%u at once, %llu us late)", engine->queue[i].capacity,
                    engine->queue[i].batch, (wide)(engine->queue[i].late_ns / LH_NS_PER_US));
        fputc('\n', out);
    }
}

static void describe_call(FILE *out, const struct plan *plan, const struct plan_event *event)
{
    struct call_plan made;
    call_plan_make(event, plan->group.block_bytes, plan->hosts, false, &made);
    fprintf(out, ": epoch %u, %s of %zu %s, %s, root %u, %s%s, within %llu us, deadline %llu us",
            event->pair, collective_name(made.call.collective), made.call.count,
            lh_type_name(made.call.type), lh_reduction_name(made.call.reduction), made.call.root,
            made.options.schedule ? made.options.schedule : "any schedule",
            made.in_place ? ", in place" : "", (wide)(event->span_ns / LH_NS_PER_US),
            (wide)(event->delay_ns / LH_NS_PER_US));
    if (event->room > 0)
        fprintf(out, "; host %u calls another (%llu)", event->host, (wide)event->room);
}

static void describe_group(FILE *out, const struct plan *plan)
{
    const struct plan_group *group = &plan->group;
    if (!plan_has(plan, FEATURE_group))
        return;
    fprintf(out, "  group: blocks of %u bytes, %u of them, patience %llu ms, %u epochs, %s and across %s\n",
            group->block_bytes, group->blocks, (wide)(group->peer_timeout_ns / LH_NS_PER_MS), group->epochs,
            group->reliability[0], group->reliability[1]);
    for (uint32_t i = 0; i < 2; i++)
        fprintf(out, "  %s: mtu %u, chunk %u, slot %llu, slots %u, window %llu, pace %llu, %s\n",
                i ? "across" : "inside", group->attr[i].mtu_bytes, group->attr[i].chunk_bytes,
                (wide)group->attr[i].slot_bytes, group->attr[i].slots, (wide)group->attr[i].window_bytes,
                (wide)group->attr[i].rate_bps, group->congestion[i]);
    for (uint32_t host = 0; host < plan->hosts; host++)
        fprintf(out, "  rank %u: site %u, joins at %llu us\n", host, group->site[host],
                (wide)(group->joins_ns[host] / LH_NS_PER_US));
}

static void describe_event(FILE *out, const struct plan *plan, const struct plan_event *event,
                           uint32_t number)
{
    fprintf(out, "  %3u %-8s at %llu us", number, plan_event_name(event->kind),
            (wide)(event->at_ns / LH_NS_PER_US));
    switch (event->kind) {
    case EVENT_message:
        fprintf(out, ": pair %u, side %u sends %llu bytes; received at %llu us into %llu", event->pair,
                event->side, (wide)event->bytes, (wide)(event->span_ns / LH_NS_PER_US), (wide)event->room);
        break;
    case EVENT_expose:
        fprintf(out, ": pair %u, side %u exposes %llu bytes, access %llu", event->pair, event->side,
                (wide)event->bytes, (wide)event->room);
        break;
    case EVENT_write:
    case EVENT_read:
        fprintf(out, ": pair %u, side %u, %llu bytes at %llu of event %u", event->pair, event->side,
                (wide)event->bytes, (wide)event->room, event->target);
        break;
    case EVENT_revoke:
        fprintf(out, ": pair %u, side %u withdraws event %u", event->pair, event->side, event->target);
        break;
    case EVENT_exchange:
        fprintf(out, ": pair %u, side %u sends %llu bytes into %llu, completed after %llu us", event->pair,
                event->side, (wide)event->room, (wide)event->bytes, (wide)(event->delay_ns / LH_NS_PER_US));
        break;
    case EVENT_collective:
        describe_call(out, plan, event);
        break;
    case EVENT_giveup:
        fprintf(out, ": host %u cancels event %u", event->host, event->target);
        break;
    case EVENT_cancel:
        fprintf(out, ": event %u at the %s", event->target, event->side ? "receiver" : "sender");
        break;
    case EVENT_close:
    case EVENT_renew:
    case EVENT_stall:
        fprintf(out, ": pair %u, side %u, for %llu us", event->pair, event->side,
                (wide)(event->span_ns / LH_NS_PER_US));
        break;
    case EVENT_narrow:
        fprintf(out, ": host %u to %u for %llu us, packets up to %llu bytes pass", event->host, event->peer,
                (wide)(event->span_ns / LH_NS_PER_US), (wide)event->bytes);
        break;
    case EVENT_lie:
        fprintf(out, ": pair %u, side %u hears them for %llu us, chance %.3f%s", event->pair, event->side,
                (wide)(event->span_ns / LH_NS_PER_US), event->chance,
                event->seed & 1 ? ", and no others" : "");
        break;
    default:
        fprintf(out, ": host %u (to %u) for %llu us, chance %.3f, %llu us", event->host, event->peer,
                (wide)(event->span_ns / LH_NS_PER_US), event->chance,
                (wide)(event->delay_ns / LH_NS_PER_US));
    }
    fputc('\n', out);
}

void describe_plan(FILE *out, const struct plan *drawn)
{
    static struct plan enlarged;
    const struct plan *plan = &enlarged;
    enlarged = *drawn;
    plan_enlarge(&enlarged);
    fprintf(out, "seed %llu: %u hosts, %u pairs, well after %llu us; features:", (wide)plan->seed,
            plan->hosts, plan->pair_count, (wide)(plan->heal_ns / LH_NS_PER_US));
    for (uint32_t f = 0; f < FEATURE_COUNT; f++)
        if (plan_has(plan, (enum plan_feature)f))
            fprintf(out, " %s", plan_feature_name((enum plan_feature)f));
    fputc('\n', out);
    describe_links(out, plan);
    switches_describe(out, plan);
    describe_engines(out, plan);
    describe_group(out, plan);
    for (uint32_t i = 0; i < plan->pair_count; i++)
        describe_pair(out, plan, i);
    for (uint32_t i = 0; i < plan->event_count; i++)
        if (!plan->events[i].off)
            describe_event(out, plan, &plan->events[i], i);
}

/* ---- as a command ------------------------------------------------------------------------------------ */

static void add_word(char list[LIST_MAX], const char *word)
{
    size_t used = strlen(list);
    snprintf(list + used, LIST_MAX - used, "%s%s", used ? "," : "", word);
}

/* The names of those that are `off`, or of those that are not. */
static void make_list(const struct plan *plan, bool off, char list[LIST_MAX])
{
    struct plan whole;
    char word[WORD_MAX];
    plan_draw(plan->seed, &whole);
    list[0] = '\0';
    for (uint32_t i = 0; i < plan->event_count; i++) {
        uint32_t first = i;
        while (i < plan->event_count && plan->events[i].off == off)
            i++;
        if (i == first)
            continue;
        snprintf(word, sizeof word, i - first > 1 ? "%u-%u" : "%u", first, i - 1);
        add_word(list, word);
    }
    for (uint32_t f = 0; f < FEATURE_COUNT; f++)
        if (plan_has(&whole, (enum plan_feature)f) && plan_has(plan, (enum plan_feature)f) != off)
            add_word(list, plan_feature_name((enum plan_feature)f));
}

void describe_command(FILE *out, const struct plan *plan)
{
    char without[LIST_MAX];
    char only[LIST_MAX];
    make_list(plan, true, without);
    make_list(plan, false, only);
    fprintf(out, "test_world --seed %llu", (wide)plan->seed);
    if (without[0] && strlen(only) < strlen(without))
        fprintf(out, " --only %s", only[0] ? only : "none");
    else if (without[0])
        fprintf(out, " --without %s", without);
    fputc('\n', out);
}

/* Of what a word names; false when it names nothing. */
static bool apply_word(struct plan *plan, const char *word, bool off)
{
    if (strcmp(word, "none") == 0)
        return true;
    if (isdigit((unsigned char)word[0])) {
        char *end;
        unsigned long first = strtoul(word, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (unsigned long i = first; i <= last && i < plan->event_count; i++)
            plan->events[i].off = off;
        return *end == '\0' && last < plan->event_count;
    }
    for (uint32_t f = 0; f < FEATURE_COUNT; f++)
        if (strcmp(word, plan_feature_name((enum plan_feature)f)) == 0) {
            plan->features = off ? plan->features & ~(1u << f) : plan->features | 1u << f;
            return true;
        }
    bool known = false;
    for (uint32_t kind = 0; kind < EVENT_COUNT; kind++)
        known |= strcmp(word, plan_event_name((enum plan_event_kind)kind)) == 0;
    for (uint32_t i = 0; i < plan->event_count; i++)
        if (strcmp(word, plan_event_name(plan->events[i].kind)) == 0)
            plan->events[i].off = off;
    return known;
}

bool describe_apply(struct plan *plan, const char *list, bool only)
{
    char word[WORD_MAX];
    if (only) {
        plan->features = 0;
        for (uint32_t i = 0; i < plan->event_count; i++)
            plan->events[i].off = true;
    }
    while (*list) {
        size_t length = strcspn(list, ",");
        if (length >= sizeof word)
            return false;
        memcpy(word, list, length);
        word[length] = '\0';
        if (!apply_word(plan, word, !only))
            return false;
        list += length + (list[length] == ',');
    }
    return true;
}
