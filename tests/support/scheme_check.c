/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/scheme_check.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u
#define UNSET_NS  ((lh_time)0xA5A5A5A5A5A5A5A5) /* what no machine sets */
#define UNSET     0xA5A5A5A5u

static const char *const rule_names[] = {
#define SCHEME_RULE_NAME(name, words) #name ": " words,
    SCHEME_RULES(SCHEME_RULE_NAME)
#undef SCHEME_RULE_NAME
};

static void (*on_breach)(enum scheme_rule rule);

void scheme_check_on_breach(void (*handler)(enum scheme_rule rule))
{
    on_breach = handler;
}

static void demand(const struct lh_scheme *scheme, bool kept, enum scheme_rule rule)
{
    if (kept)
        return;
    if (on_breach)
        on_breach(rule);
    fprintf(stderr, "scheme %s breaks a rule of longhaul/scheme.h: %s\n", scheme->name, rule_names[rule]);
    abort();
}

/* Before the state of either machine. */
struct check {
    struct lh_transfer transfer;
    uint64_t injected;
    uint32_t encodes; /* requested */
    bool over;        /* COMPLETE, FINISH or FAIL */
    bool all_sent;    /* SENT */
    /* Of the last step that left budget unused: */
    bool had_enough;
    lh_time next_ns;
    lh_time rtt_ns;
    uint32_t encoded;
    bool extra_open;
    bool data_waits;
    bool holds_up;
    uint8_t sent[]; /* by chunk of the message */
};

static size_t state_offset(uint32_t chunks)
{
    return (sizeof(struct check) + chunks + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void *inner_state(struct check *check)
{
    return (uint8_t *)check + state_offset(check->transfer.chunks);
}

static void start(struct check *check, const struct lh_transfer *transfer)
{
    memset(check, 0, state_offset(transfer->chunks));
    check->transfer = *transfer;
}

static uint32_t extra_chunks(const struct lh_scheme *scheme, const struct check *check)
{
    return scheme->coding ? scheme->coding->extra_chunks(check->transfer.params, check->transfer.chunks)
                          : 0;
}

/* ---- actions ----------------------------------------------------------------------------------------- */

static void check_chunks(const struct lh_scheme *scheme, struct check *check,
                         const struct lh_sender_view *view, const struct lh_action *action,
                         uint32_t *budget)
{
    uint32_t chunks = check->transfer.chunks;
    uint32_t first = action->what.chunks.first, count = action->what.chunks.count;
    bool extra = first >= chunks;
    uint64_t end = extra ? (uint64_t)chunks + extra_chunks(scheme, check) : chunks;
    demand(scheme, count >= 1 && (uint64_t)first + count <= end, SCHEME_RULE_range);
    demand(scheme, count <= *budget, SCHEME_RULE_budget);
    demand(scheme, !extra || view->extra_open, SCHEME_RULE_extra);
    *budget -= count;
    check->injected += count;
    for (uint32_t chunk = first; !extra && chunk < first + count; chunk++) {
        demand(scheme, !action->what.chunks.again || check->sent[chunk], SCHEME_RULE_again);
        check->sent[chunk] = 1;
    }
}

static void check_encode(const struct lh_scheme *scheme, struct check *check,
                         const struct lh_sender_view *view, const struct lh_action *action)
{
    uint32_t groups =
        scheme->coding ? scheme->coding->groups(check->transfer.params, check->transfer.chunks) : 0;
    check->encodes++;
    demand(scheme, action->what.encode.group < groups && action->what.encode.rows >= 1, SCHEME_RULE_encode);
    demand(scheme, check->encodes - view->encoded <= LH_ENCODES_MAX, SCHEME_RULE_encode);
}

static void check_message(const struct lh_scheme *scheme, const struct lh_action *action)
{
    uint32_t bytes = action->what.message.bytes;
    demand(scheme, bytes >= 1 && bytes <= LH_SCHEME_MESSAGE_MAX, SCHEME_RULE_message);
}

static void check_complete(const struct lh_scheme *scheme, const struct lh_receiver_view *view)
{
    demand(scheme, view->length_known, SCHEME_RULE_complete);
    for (uint32_t chunk = 0; !scheme->coding && chunk < view->chunks; chunk++)
        demand(scheme, __atomic_load_n(&view->chunk_bitmap[chunk], __ATOMIC_RELAXED) != 0,
               SCHEME_RULE_complete);
}

static void check_fail(const struct lh_scheme *scheme, const struct lh_action *action)
{
    demand(scheme, action->what.error > 0, SCHEME_RULE_error);
}

/* ---- steps ------------------------------------------------------------------------------------------- */

static void before(struct lh_actions *actions)
{
    assert(actions->count == 0);
    actions->next_ns = UNSET_NS;
    actions->in_flight_chunks = UNSET;
}

static void check_list(const struct lh_scheme *scheme, const struct lh_actions *actions, lh_time now)
{
    demand(scheme, actions->count <= LH_ACTIONS_MAX, SCHEME_RULE_list);
    if (actions->count < LH_ACTIONS_MAX)
        demand(scheme, actions->next_ns != UNSET_NS && actions->next_ns > now, SCHEME_RULE_next);
}

/* Whether something happened since a step that left budget unused. */
static bool is_recalled(const struct check *check, const struct lh_sender_view *view)
{
    return !check->had_enough || view->now >= check->next_ns || view->encoded != check->encoded ||
           view->extra_open != check->extra_open || view->path.rtt_ns < check->rtt_ns / 2 ||
           view->data_waits != check->data_waits || view->holds_up != check->holds_up;
}

static void sender_step(const struct lh_scheme *scheme, struct check *check,
                        const struct lh_sender_view *view, struct lh_actions *actions)
{
    uint32_t budget = view->budget_chunks;
    bool recalled = is_recalled(check, view);
    before(actions);
    scheme->sender_step(inner_state(check), view, actions);
    check_list(scheme, actions, view->now);
    for (uint32_t i = 0; i < actions->count; i++) {
        const struct lh_action *action = &actions->list[i];
        demand(scheme, !check->over, SCHEME_RULE_after);
        demand(scheme, action->kind != LH_ACTION_COMPLETE && action->kind != LH_ACTION_FINISH,
               SCHEME_RULE_action);
        if (action->kind == LH_ACTION_SEND_CHUNKS) {
            demand(scheme, recalled, SCHEME_RULE_recall);
            check_chunks(scheme, check, view, action, &budget);
        } else if (action->kind == LH_ACTION_SEND_MESSAGE) {
            check_message(scheme, action);
        } else if (action->kind == LH_ACTION_ENCODE) {
            check_encode(scheme, check, view, action);
        } else if (action->kind == LH_ACTION_SENT) {
            demand(scheme, scheme->deadline && !check->all_sent && check->encodes == view->encoded,
                   SCHEME_RULE_sent);
            check->all_sent = true;
        } else {
            check_fail(scheme, action);
            check->over = true;
        }
        bool adds = action->kind == LH_ACTION_SEND_CHUNKS || action->kind == LH_ACTION_ENCODE;
        demand(scheme, !adds || !check->all_sent, SCHEME_RULE_sent);
    }
    demand(scheme, actions->in_flight_chunks != UNSET && actions->in_flight_chunks <= check->injected,
           SCHEME_RULE_in_flight);
    check->had_enough = budget > 0 && actions->count < LH_ACTIONS_MAX;
    check->next_ns = actions->next_ns;
    check->rtt_ns = view->path.rtt_ns;
    check->encoded = view->encoded;
    check->extra_open = view->extra_open;
    check->data_waits = view->data_waits;
    check->holds_up = view->holds_up;
}

static void receiver_step(const struct lh_scheme *scheme, struct check *check,
                          const struct lh_receiver_view *view, struct lh_actions *actions)
{
    before(actions);
    scheme->receiver_step(inner_state(check), view, actions);
    check_list(scheme, actions, view->now);
    for (uint32_t i = 0; i < actions->count; i++) {
        const struct lh_action *action = &actions->list[i];
        bool sends = action->kind == LH_ACTION_SEND_CHUNKS || action->kind == LH_ACTION_ENCODE ||
                     action->kind == LH_ACTION_SENT;
        demand(scheme, !check->over, SCHEME_RULE_after);
        demand(scheme, !sends, SCHEME_RULE_action);
        if (action->kind == LH_ACTION_SEND_MESSAGE) {
            check_message(scheme, action);
            continue;
        }
        if (action->kind == LH_ACTION_COMPLETE)
            check_complete(scheme, view);
        else if (action->kind == LH_ACTION_FINISH)
            demand(scheme, scheme->deadline && view->length_known, SCHEME_RULE_finish);
        else
            check_fail(scheme, action);
        check->over = true;
    }
}

/* ---- the calls of a checked scheme ------------------------------------------------------------------- */

/* A scheme's calls do not get the scheme: each place has calls of its own. */
#define PLACES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

static const struct lh_scheme *inner[16];
static struct lh_scheme outer[16];

#define DEFINE(n)                                                                                          \
    static size_t sender_bytes_##n(uint32_t chunks)                                                        \
    {                                                                                                      \
        return state_offset(chunks) + inner[n]->sender_bytes(chunks);                                      \
    }                                                                                                      \
    static size_t receiver_bytes_##n(uint32_t chunks)                                                      \
    {                                                                                                      \
        return state_offset(chunks) + inner[n]->receiver_bytes(chunks);                                    \
    }                                                                                                      \
    static void sender_start_##n(void *state, const struct lh_transfer *transfer, lh_time now)             \
    {                                                                                                      \
        start(state, transfer);                                                                            \
        inner[n]->sender_start(inner_state(state), transfer, now);                                         \
    }                                                                                                      \
    static void receiver_start_##n(void *state, const struct lh_transfer *transfer, lh_time now)           \
    {                                                                                                      \
        start(state, transfer);                                                                            \
        inner[n]->receiver_start(inner_state(state), transfer, now);                                       \
    }                                                                                                      \
    static void sender_on_message_##n(void *state, const uint8_t *data, size_t bytes,                      \
                                      const struct lh_sender_view *view)                                   \
    {                                                                                                      \
        ((struct check *)state)->had_enough = false;                                                       \
        inner[n]->sender_on_message(inner_state(state), data, bytes, view);                                \
    }                                                                                                      \
    static void receiver_on_message_##n(void *state, const uint8_t *data, size_t bytes,                    \
                                        const struct lh_receiver_view *view)                               \
    {                                                                                                      \
        inner[n]->receiver_on_message(inner_state(state), data, bytes, view);                              \
    }                                                                                                      \
    static void sender_step_##n(void *state, const struct lh_sender_view *view,                            \
                                struct lh_actions *actions)                                                \
    {                                                                                                      \
        sender_step(inner[n], state, view, actions);                                                       \
    }                                                                                                      \
    static void receiver_step_##n(void *state, const struct lh_receiver_view *view,                        \
                                  struct lh_actions *actions)                                              \
    {                                                                                                      \
        receiver_step(inner[n], state, view, actions);                                                     \
    }

PLACES(DEFINE)

#define CALLS(n)                                                                                           \
    {.sender_bytes = sender_bytes_##n,                                                                     \
     .sender_start = sender_start_##n,                                                                     \
     .sender_on_message = sender_on_message_##n,                                                           \
     .sender_step = sender_step_##n,                                                                       \
     .receiver_bytes = receiver_bytes_##n,                                                                 \
     .receiver_start = receiver_start_##n,                                                                 \
     .receiver_on_message = receiver_on_message_##n,                                                       \
     .receiver_step = receiver_step_##n},

const struct lh_scheme *scheme_checked(const struct lh_scheme *scheme)
{
    static const struct lh_scheme calls[] = {PLACES(CALLS)};
    if (!scheme)
        return NULL;
    for (unsigned i = 0; i < 16; i++) {
        if (scheme == &outer[i] || (inner[i] == scheme))
            return &outer[i];
        if (inner[i])
            continue;
        outer[i] = calls[i];
        outer[i].name = scheme->name;
        outer[i].help = scheme->help;
        outer[i].id = scheme->id;
        outer[i].parse = scheme->parse;
        outer[i].params_valid = scheme->params_valid;
        outer[i].coding = scheme->coding;
        outer[i].deadline = scheme->deadline;
        inner[i] = scheme;
        return &outer[i];
    }
    abort(); /* more schemes than there are places */
}
