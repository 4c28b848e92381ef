/*
 * fake_scheme.h - a reliability scheme whose machines do what the test says next, and show what they saw.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef UNIT_MESSAGE_FAKE_SCHEME_H
#define UNIT_MESSAGE_FAKE_SCHEME_H

#include <string.h>

#include <longhaul/scheme.h>

#define FAKE_ID       200u
#define FAKE_CODED_ID 201u

struct fake_machine {
    uint32_t chunks;
};

static struct {
    struct lh_actions next; /* of the next step of any machine; then nothing */
    uint32_t steps;
    uint32_t messages; /* of the peer's machine */
    struct lh_sender_view sender_view;
    struct lh_receiver_view receiver_view;
    uint32_t last_chunks; /* of the machine that stepped last */
    uint32_t encodes;
    uint32_t decodes;
} fake;

static inline void fake_scheme_reset(void)
{
    memset(&fake, 0, sizeof fake);
    fake.next.next_ns = LH_TIME_NEVER;
}

static inline struct lh_action *fake_next(enum lh_action_kind kind)
{
    return lh_action_add(&fake.next, kind);
}

static inline void fake_next_chunks(uint32_t first, uint32_t count)
{
    struct lh_action *action = fake_next(LH_ACTION_SEND_CHUNKS);
    action->what.chunks.first = first;
    action->what.chunks.count = count;
    action->what.chunks.again = false;
    fake.next.in_flight_chunks += count;
}

static inline void fake_next_message(uint32_t bytes)
{
    struct lh_action *action = fake_next(LH_ACTION_SEND_MESSAGE);
    action->what.message.bytes = bytes;
    memset(action->what.message.data, 7, bytes);
}

static inline void fake_next_fail(int error)
{
    fake_next(LH_ACTION_FAIL)->what.error = error;
}

static inline int fake_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    (void)text;
    memset(params, 0, LH_SCHEME_PARAMS);
    return 0;
}

/* Byte 7 set: impossible parameters. */
static inline bool fake_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return params[7] == 0;
}

static inline size_t fake_bytes(uint32_t chunks)
{
    (void)chunks;
    return sizeof(struct fake_machine);
}

static inline void fake_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    (void)now;
    *(struct fake_machine *)state = (struct fake_machine){transfer->chunks};
}

static inline void fake_take_next(const void *state, struct lh_actions *actions)
{
    fake.steps++;
    fake.last_chunks = ((const struct fake_machine *)state)->chunks;
    *actions = fake.next;
    fake.next.count = 0;
    fake.next.next_ns = LH_TIME_NEVER;
}

static inline void fake_sender_step(void *state, const struct lh_sender_view *view,
                                    struct lh_actions *actions)
{
    fake.sender_view = *view;
    fake_take_next(state, actions);
}

static inline void fake_receiver_step(void *state, const struct lh_receiver_view *view,
                                      struct lh_actions *actions)
{
    fake.receiver_view = *view;
    fake_take_next(state, actions);
}

static inline void fake_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                                          const struct lh_sender_view *view)
{
    (void)state, (void)data, (void)bytes;
    fake.sender_view = *view;
    fake.messages++;
}

static inline void fake_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                                            const struct lh_receiver_view *view)
{
    (void)state, (void)data, (void)bytes;
    fake.receiver_view = *view;
    fake.messages++;
}

/* params[0]: extra chunks of a transfer; one group a chunk. */
static inline uint32_t fake_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    return params[0] > slot_chunks ? 0 : slot_chunks;
}

static inline uint32_t fake_extra(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    (void)chunks;
    return params[0];
}

static inline uint32_t fake_groups(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    (void)params;
    return chunks;
}

static inline void fake_encode(const struct lh_coding *coding, uint32_t group, uint32_t first,
                               uint32_t rows)
{
    (void)group;
    memset(coding->extra + (size_t)first * coding->chunk_bytes, 0xEE, (size_t)rows * coding->chunk_bytes);
    __atomic_fetch_add(&fake.encodes, 1, __ATOMIC_RELAXED);
}

static inline uint32_t fake_decode(const struct lh_coding *coding, uint32_t group, const uint8_t *chunks,
                                   const uint8_t *extra)
{
    (void)extra;
    __atomic_fetch_add(&fake.decodes, 1, __ATOMIC_RELAXED);
    if (chunks[group])
        return 0;
    memset(coding->room + (size_t)group * coding->chunk_bytes, 0xDD, coding->chunk_bytes);
    return 1;
}

static const struct lh_scheme_coding fake_coding = {fake_chunks_max, fake_extra,  fake_groups,
                                                    fake_encode,     fake_decode, NULL};

static const struct lh_scheme fake_scheme = {
    .name = "fake",
    .help = "",
    .id = FAKE_ID,
    .parse = fake_parse,
    .params_valid = fake_params_valid,
    .sender_bytes = fake_bytes,
    .sender_start = fake_start,
    .sender_on_message = fake_sender_on_message,
    .sender_step = fake_sender_step,
    .receiver_bytes = fake_bytes,
    .receiver_start = fake_start,
    .receiver_on_message = fake_receiver_on_message,
    .receiver_step = fake_receiver_step,
};

static const struct lh_scheme fake_coded_scheme = {
    .name = "fake-coded",
    .help = "",
    .id = FAKE_CODED_ID,
    .parse = fake_parse,
    .params_valid = fake_params_valid,
    .sender_bytes = fake_bytes,
    .sender_start = fake_start,
    .sender_on_message = fake_sender_on_message,
    .sender_step = fake_sender_step,
    .receiver_bytes = fake_bytes,
    .receiver_start = fake_start,
    .receiver_on_message = fake_receiver_on_message,
    .receiver_step = fake_receiver_step,
    .coding = &fake_coding,
};

#endif
