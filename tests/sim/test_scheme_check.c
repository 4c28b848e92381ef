/*
 * test_scheme_check.c - each breach of a rule of longhaul/scheme.h is caught, by the rule's name; and what
 * keeps to the rules is not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/scheme_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHUNKS 4u
#define NOW    ((lh_time)1000)

/* What the machine under watch does in its next step. */
static struct lh_actions next;
static struct lh_sender_view sender_view;
static struct lh_receiver_view receiver_view;
static uint8_t bitmap[CHUNKS];

static size_t no_bytes(uint32_t chunks)
{
    return chunks;
}

static void no_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    memset(state, 7, transfer->chunks); /* its own: the check's is before it */
    (void)now;
}

static void hear_sender(void *state, const uint8_t *data, size_t bytes, const struct lh_sender_view *view)
{
    (void)state, (void)data, (void)bytes, (void)view;
}

static void hear_receiver(void *state, const uint8_t *data, size_t bytes,
                          const struct lh_receiver_view *view)
{
    (void)state, (void)data, (void)bytes, (void)view;
}

static void step(struct lh_actions *actions)
{
    struct lh_actions kept = *actions;
    *actions = next;
    if (next.next_ns == 0) /* not set */
        actions->next_ns = kept.next_ns;
    if (next.in_flight_chunks == UINT32_MAX)
        actions->in_flight_chunks = kept.in_flight_chunks;
}

static void step_sender(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    (void)state, (void)view;
    step(actions);
}

static void step_receiver(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    (void)state, (void)view;
    step(actions);
}

static uint32_t two(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    (void)params, (void)chunks;
    return 2;
}

static const struct lh_scheme_coding code = {.extra_chunks = two, .groups = two};

#define MACHINES                                                                                           \
    .sender_bytes = no_bytes, .sender_start = no_start, .sender_on_message = hear_sender,                  \
    .sender_step = step_sender, .receiver_bytes = no_bytes, .receiver_start = no_start,                    \
    .receiver_on_message = hear_receiver, .receiver_step = step_receiver

static const struct lh_scheme plain = {.name = "plain", .id = 200, MACHINES};
static const struct lh_scheme coded = {.name = "coded", .id = 201, MACHINES, .coding = &code};

/* ---- running ----------------------------------------------------------------------------------------- */

static jmp_buf back;
static void *sender, *receiver;
static const struct lh_scheme *checked;

static void on_breach(enum scheme_rule rule)
{
    longjmp(back, (int)rule + 1);
}

static void begin(const struct lh_scheme *scheme)
{
    struct lh_transfer transfer = {.chunks = CHUNKS, .chunk_bytes = 1024};
    free(sender);
    free(receiver);
    checked = scheme_checked(scheme);
    sender = calloc(1, checked->sender_bytes(CHUNKS));
    receiver = calloc(1, checked->receiver_bytes(CHUNKS));
    assert_true(sender && receiver);
    checked->sender_start(sender, &transfer, NOW);
    checked->receiver_start(receiver, &transfer, NOW);
    memset(bitmap, 0, sizeof bitmap);
    sender_view = (struct lh_sender_view){.now = NOW, .budget_chunks = 8, .extra_open = true};
    receiver_view = (struct lh_receiver_view){
        .now = NOW, .chunk_bitmap = bitmap, .length_known = true, .chunks = CHUNKS};
    next = (struct lh_actions){.next_ns = LH_TIME_NEVER};
}

/* The rule that the step breaks; SCHEME_RULE_COUNT: none. */
static enum scheme_rule step_of(bool receives)
{
    static struct lh_actions actions;
    int broken = setjmp(back);
    if (broken)
        return (enum scheme_rule)(broken - 1);
    actions = (struct lh_actions){.count = 0};
    if (receives)
        checked->receiver_step(receiver, &receiver_view, &actions);
    else
        checked->sender_step(sender, &sender_view, &actions);
    next.count = 0;
    return SCHEME_RULE_COUNT;
}

#define SENDER(rule)     assert_int_equal(step_of(false), SCHEME_RULE_##rule)
#define RECEIVER(rule)   assert_int_equal(step_of(true), SCHEME_RULE_##rule)
#define SCHEME_RULE_WELL SCHEME_RULE_COUNT

static struct lh_action *add(enum lh_action_kind kind)
{
    return lh_action_add(&next, kind);
}

static void chunks(uint32_t first, uint32_t count, bool again)
{
    struct lh_action *action = add(LH_ACTION_SEND_CHUNKS);
    action->what.chunks.first = first;
    action->what.chunks.count = count;
    action->what.chunks.again = again;
    next.in_flight_chunks = 1;
}

static void message(uint32_t bytes)
{
    add(LH_ACTION_SEND_MESSAGE)->what.message.bytes = bytes;
}

static void encode(uint32_t group, uint32_t rows)
{
    struct lh_action *action = add(LH_ACTION_ENCODE);
    action->what.encode.group = group;
    action->what.encode.rows = rows;
}

static void failure(int error)
{
    add(LH_ACTION_FAIL)->what.error = error;
}

/* ---- tests ------------------------------------------------------------------------------------------- */

static void test_well_behaved(void **state)
{
    (void)state;
    begin(&coded);
    chunks(0, 2, false), chunks(2, 2, false), chunks(4, 2, false), encode(1, 1), message(896);
    SENDER(WELL);
    next.next_ns = NOW + 1;
    SENDER(WELL);
    sender_view.now = NOW + 1;
    chunks(0, 4, true);
    next.next_ns = LH_TIME_NEVER;
    SENDER(WELL);
    message(1);
    RECEIVER(WELL);
    add(LH_ACTION_COMPLETE);
    RECEIVER(WELL);
    RECEIVER(WELL);
}

static void test_actions(void **state)
{
    (void)state;
    begin(&plain), add(LH_ACTION_COMPLETE);
    SENDER(action);
    begin(&plain), chunks(0, 1, false);
    RECEIVER(action);
    begin(&coded), encode(0, 1);
    RECEIVER(action);
    begin(&plain), next.count = LH_ACTIONS_MAX + 1;
    SENDER(list);
    begin(&plain), message(0);
    SENDER(message);
    begin(&plain), message(LH_SCHEME_MESSAGE_MAX + 1);
    RECEIVER(message);
    begin(&plain), failure(0);
    SENDER(error);
    begin(&plain), failure(5), message(1);
    SENDER(after);
}

static void test_chunks(void **state)
{
    (void)state;
    begin(&plain), chunks(0, 0, false);
    SENDER(range);
    begin(&plain), chunks(3, 2, false);
    SENDER(range);
    begin(&plain), chunks(4, 1, false); /* no extra chunks */
    SENDER(range);
    begin(&coded), chunks(3, 2, false); /* of both kinds */
    SENDER(range);
    begin(&coded), chunks(5, 2, false);
    SENDER(range);
    begin(&plain), sender_view.budget_chunks = 3, chunks(0, 2, false), chunks(2, 2, false);
    SENDER(budget);
    begin(&plain), chunks(0, 1, false), chunks(0, 2, true);
    SENDER(again);
    begin(&coded), sender_view.extra_open = false, chunks(4, 1, false);
    SENDER(extra);
}

static void test_encode(void **state)
{
    (void)state;
    begin(&plain), encode(0, 1);
    SENDER(encode);
    begin(&coded), encode(2, 1);
    SENDER(encode);
    begin(&coded), encode(0, 0);
    SENDER(encode);
    begin(&coded);
    for (uint32_t i = 0; i < LH_ENCODES_MAX; i++) {
        encode(0, 1);
        SENDER(WELL);
    }
    encode(0, 1);
    SENDER(encode);
}

/* The three rules that no action shows. */
static void test_steps(void **state)
{
    (void)state;
    begin(&plain), next.next_ns = NOW;
    SENDER(next);
    begin(&plain), next.next_ns = 0;
    SENDER(next);
    begin(&plain), next.next_ns = NOW - 1;
    RECEIVER(next);
    begin(&plain), next.in_flight_chunks = UINT32_MAX; /* not set */
    SENDER(in_flight);
    begin(&plain), next.in_flight_chunks = 1; /* nothing was injected */
    SENDER(in_flight);
}

/* Budget was left: chunks now are chunks that the connection would not have asked for. */
static void test_unused_budget(void **state)
{
    (void)state;
    begin(&plain), chunks(0, 1, false);
    SENDER(WELL);
    sender_view.now++;
    chunks(1, 1, false);
    SENDER(recall);
    begin(&plain), sender_view.budget_chunks = 1, chunks(0, 1, false);
    SENDER(WELL); /* all was used */
    chunks(1, 1, false);
    SENDER(WELL);
    begin(&plain), chunks(0, 1, false);
    SENDER(WELL);
    checked->sender_on_message(sender, bitmap, 1, &sender_view); /* an event */
    chunks(1, 1, false);
    SENDER(WELL);
    begin(&plain), next.next_ns = NOW + 5, chunks(0, 1, false);
    SENDER(WELL);
    sender_view.now = NOW + 5;
    next.next_ns = LH_TIME_NEVER;
    chunks(1, 1, false);
    SENDER(WELL);
}

static void test_complete(void **state)
{
    (void)state;
    begin(&plain), memset(bitmap, 1, 3), add(LH_ACTION_COMPLETE);
    RECEIVER(complete);
    begin(&plain), memset(bitmap, 1, 4), receiver_view.length_known = false, add(LH_ACTION_COMPLETE);
    RECEIVER(complete);
    begin(&plain), memset(bitmap, 1, 4), add(LH_ACTION_COMPLETE);
    RECEIVER(WELL);
    add(LH_ACTION_COMPLETE);
    RECEIVER(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_well_behaved), cmocka_unit_test(test_actions),
        cmocka_unit_test(test_chunks),       cmocka_unit_test(test_encode),
        cmocka_unit_test(test_steps),        cmocka_unit_test(test_unused_budget),
        cmocka_unit_test(test_complete),
    };
    scheme_check_on_breach(on_breach);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(sender);
    free(receiver);
    return failed;
}
