/*
 * test_xp_nic_nic_world.c - lives of two NICs in a bad network, drawn from seeds: packets are lost,
 * copied, late, out of order, and forged; hosts pause; nobody posts in time. Then: each operation ends
 * once, within its deadline and a tick; the n-th message that takes a receive lands in the n-th receive,
 * or nowhere; what has completed never changes again.
 *
 * With an argument: that number of seeds instead of 400.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "xp/xp_nic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "unit/xp/nic_pair.h"

#define QPS          3u
#define OPERATIONS   40u /* of a queue pair and kind */
#define MESSAGE_MAX  (6 * PAIR_MTU)
#define UNTOUCHED    0xA5
#define REGION_BYTES 4096u
#define FLIGHT_MAX   4096u

struct operation {
    uint32_t bytes;
    lh_time timeout;
    bool ended;
    uint8_t data[MESSAGE_MAX];
    uint8_t after[MESSAGE_MAX]; /* receives: as they completed */
};

/* Of one queue pair: side 0 sends, side 1 receives. */
struct stream {
    uint32_t qpn;
    struct operation sends[OPERATIONS], receives[OPERATIONS];
    uint32_t sends_posted, receives_posted, sends_ended, receives_ended;
    lh_time receive_began; /* when the first in the queue became it */
};

struct flying {
    lh_time at;
    int to;
    bool marked;
    struct xp_packet packet;
    uint8_t payload[PAIR_MTU];
};

static struct world {
    struct nic_pair pair;
    struct lh_prng prng;
    struct stream streams[QPS];
    struct flying flight[FLIGHT_MAX];
    uint32_t flying;
    double loss, copies, late, forged, marks;
    lh_time delay, pause_until[2];
    uint8_t region[REGION_BYTES + 64];
    uint8_t scratch[MESSAGE_MAX]; /* what is written to the region, or read from it */
    uint32_t region_key;
    uint64_t whole, partial;
} world;

static uint64_t below(uint64_t bound)
{
    return lh_prng_below(&world.prng, bound);
}

static bool chance(double probability)
{
    return lh_prng_chance(&world.prng, probability);
}

/* Byte of the n-th message of a queue pair; never UNTOUCHED. */
static uint8_t byte_of(uint32_t stream, uint32_t message, uint32_t at)
{
    uint8_t byte = (uint8_t)(at * 31 + message * 7 + stream * 101 + at / 251);
    return byte == UNTOUCHED ? 0 : byte;
}

/* ---- what is posted ----------------------------------------------------------------------------------- */

static lh_time draw_timeout(void)
{
    return (LH_NS_PER_MS / 4) << below(6);
}

static void post_send(uint32_t index)
{
    struct stream *stream = &world.streams[index];
    uint32_t n = stream->sends_posted;
    struct operation *send = &stream->sends[n];
    *send = (struct operation){.bytes = (uint32_t)below(MESSAGE_MAX + 1), .timeout = draw_timeout()};
    for (uint32_t i = 0; i < send->bytes; i++)
        send->data[i] = byte_of(index, n, i);
    bool one_sided = chance(0.1) && send->bytes <= REGION_BYTES;
    struct lh_xp_request request = {.verb = LH_XP_SEND,
                                    .buffer = send->data,
                                    .bytes = send->bytes,
                                    .timeout_ns = send->timeout,
                                    .user = index << 16 | n};
    if (one_sided) { /* between the others, and takes no receive */
        request.verb = chance(0.5) ? LH_XP_WRITE : LH_XP_READ;
        request.buffer = world.scratch;
        request.key = world.region_key;
        request.remote = below(REGION_BYTES - send->bytes + 1);
        request.user |= 1u << 30;
    }
    if (xp_nic_post(&world.pair.nics[0], stream->qpn, &request, world.pair.now) == 0 && !one_sided)
        stream->sends_posted++;
}

static void post_receive(uint32_t index)
{
    struct stream *stream = &world.streams[index];
    uint32_t n = stream->receives_posted;
    struct operation *receive = &stream->receives[n];
    *receive = (struct operation){.bytes = chance(0.9) ? MESSAGE_MAX : (uint32_t)below(MESSAGE_MAX),
                                  .timeout = draw_timeout()};
    memset(receive->data, UNTOUCHED, sizeof receive->data);
    struct lh_xp_request request = {.verb = LH_XP_RECV,
                                    .buffer = receive->data,
                                    .bytes = receive->bytes,
                                    .timeout_ns = receive->timeout,
                                    .user = index << 16 | n};
    if (xp_nic_post(&world.pair.nics[1], stream->qpn, &request, world.pair.now) != 0)
        return;
    if (stream->receives_posted++ == stream->receives_ended)
        stream->receive_began = world.pair.now;
}

/* ---- what is promised --------------------------------------------------------------------------------- */

static void check_receive(uint32_t index, uint32_t n, const struct lh_xp_completion *completion)
{
    struct stream *stream = &world.streams[index];
    struct operation *receive = &stream->receives[n];
    const struct operation *send = &stream->sends[n];
    uint32_t came = 0;
    assert_int_equal(n, stream->receives_ended);
    assert_false(receive->ended);
    receive->ended = true;
    lh_time latest = stream->receive_began + receive->timeout + PAIR_TICK;
    assert_true(world.pair.now <= latest || world.pair.now <= world.pause_until[1]);
    stream->receives_ended++;
    stream->receive_began = world.pair.now;
    for (uint32_t i = 0; i < MESSAGE_MAX; i++) {
        if (receive->data[i] == UNTOUCHED)
            continue;
        assert_true(i < receive->bytes && n < stream->sends_posted && i < send->bytes);
        assert_int_equal(receive->data[i], byte_of(index, n, i));
        came++;
    }
    assert_true(completion->bytes >= came && completion->bytes <= receive->bytes);
    assert_true(world.copies > 0 || completion->bytes == came);
    if (completion->bytes > 0)
        assert_int_equal(completion->length, send->bytes);
    memcpy(receive->after, receive->data, sizeof receive->after);
    *(completion->bytes == send->bytes && came == send->bytes ? &world.whole : &world.partial) += 1;
}

static void check_completions(void)
{
    struct lh_xp_completion completion;
    while (xp_nic_poll(&world.pair.nics[0], &completion, 1)) {
        assert_true(completion.bytes <= MESSAGE_MAX);
        if (completion.user >> 30)
            continue;
        struct stream *stream = &world.streams[completion.user >> 16];
        assert_int_equal(completion.user & 0xFFFF, stream->sends_ended);
        stream->sends_ended++;
    }
    while (xp_nic_poll(&world.pair.nics[1], &completion, 1))
        check_receive((uint32_t)(completion.user >> 16), completion.user & 0xFFFF, &completion);
}

/* Nothing that was handed back has changed since, nor anything around the region. */
static void check_stillness(void)
{
    for (uint32_t s = 0; s < QPS; s++) {
        struct stream *stream = &world.streams[s];
        for (uint32_t i = 0; i < stream->receives_ended; i++)
            assert_memory_equal(stream->receives[i].data, stream->receives[i].after, MESSAGE_MAX);
    }
    for (uint32_t i = REGION_BYTES; i < sizeof world.region; i++)
        assert_int_equal(world.region[i], UNTOUCHED);
}

/* ---- the network -------------------------------------------------------------------------------------- */

static void fly(int to, const struct xp_packet *packet)
{
    if (world.flying == FLIGHT_MAX)
        return;
    struct flying *flying = &world.flight[world.flying++];
    flying->to = to;
    flying->packet = *packet;
    flying->marked = chance(world.marks);
    flying->at = world.pair.now + world.delay + below(world.delay / 2 + 1);
    if (chance(world.late))
        flying->at += below(40 * LH_NS_PER_MS);
    if (packet->payload_bytes)
        memcpy(flying->payload, packet->payload, packet->payload_bytes);
}

/* Well formed, from the right place, and false; with bytes that no message has where it is placed. */
static struct xp_packet forge(const struct xp_packet *packet)
{
    static uint8_t lies[PAIR_MTU];
    struct xp_packet forged = *packet;
    memset(lies, UNTOUCHED, sizeof lies);
    forged.payload = lies;
    switch (below(4)) {
    case 0: /* what is near is what the peer might send itself */
        forged.wqe_seq =
            (forged.wqe_seq + 2 * XP_SEQ_WINDOW + (uint32_t)below(XP_SEQ_MASK / 4)) & XP_SEQ_MASK;
        break;
    case 1:
        forged.dest_qpn = (uint32_t)below(2 * PAIR_QPS) + QPS + 1;
        break;
    case 2:
        forged.offset = ~below((uint64_t)1 << below(64));
        break;
    default:
        forged.key ^= 1u << below(32);
        forged.wqe_seq = (forged.wqe_seq - 2 * XP_SEQ_WINDOW - (uint32_t)below(1000)) & XP_SEQ_MASK;
    }
    return forged;
}

static void transmit(int side)
{
    struct xp_departure departure;
    if (world.pair.now < world.pause_until[side])
        return;
    while (xp_nic_transmit(&world.pair.nics[side], world.pair.now, &departure)) {
        if (chance(world.forged)) {
            struct xp_packet forged = forge(&departure.packet);
            fly(!side, &forged);
        }
        if (chance(world.copies))
            fly(!side, &departure.packet);
        if (!chance(world.loss))
            fly(!side, &departure.packet);
    }
}

static void deliver(void)
{
    for (uint32_t i = 0; i < world.flying;) {
        struct flying *flying = &world.flight[i];
        if (flying->at > world.pair.now || world.pair.now < world.pause_until[flying->to]) {
            i++;
            continue;
        }
        flying->packet.payload = flying->payload;
        xp_nic_arrive(&world.pair.nics[flying->to], 7, &flying->packet, flying->marked, world.pair.now);
        *flying = world.flight[--world.flying];
        check_completions();
    }
}

/* ---- lives -------------------------------------------------------------------------------------------- */

static void begin(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    lh_prng_seed(&world.prng, seed);
    pair_start(&world.pair, below((lh_time)1 << 50));
    for (uint32_t i = 0; i < QPS; i++)
        world.streams[i].qpn =
            pair_connect(&world.pair, (uint32_t)below(XP_SEQ_MASK + 1), (uint32_t)below(XP_SEQ_MASK + 1));
    world.loss = chance(0.3) ? 0 : 0.3 * lh_prng_double(&world.prng);
    world.copies = chance(0.5) ? 0 : 0.2 * lh_prng_double(&world.prng);
    world.late = chance(0.5) ? 0 : 0.1 * lh_prng_double(&world.prng);
    world.forged = chance(0.5) ? 0 : 0.3;
    world.marks = chance(0.7) ? 0 : 0.5;
    world.delay = 1000 << below(11);
    memset(world.region, UNTOUCHED, sizeof world.region);
    if (xp_nic_expose(&world.pair.nics[1], world.region, REGION_BYTES,
                      LH_XP_REMOTE_WRITE | LH_XP_REMOTE_READ, (uint32_t)below(65536), &world.region_key))
        fail();
}

/* No further than to the next thing that a host has to do. */
static lh_time next_moment(void)
{
    lh_time next = world.pair.now + 1 + below(2 * world.delay);
    for (int side = 0; side < 2; side++) {
        lh_time due = xp_nic_next(&world.pair.nics[side]);
        if (due < world.pause_until[side])
            due = world.pause_until[side];
        if (due > world.pair.now && due < next)
            next = due;
    }
    return next;
}

static void step(bool posts)
{
    world.pair.now = next_moment();
    for (int side = 0; side < 2; side++) {
        if (world.pair.now >= world.pause_until[side])
            xp_nic_expire(&world.pair.nics[side], world.pair.now);
        if (posts && chance(0.002))
            world.pause_until[side] = world.pair.now + below(8 * LH_NS_PER_MS);
    }
    check_completions();
    uint32_t index = (uint32_t)below(QPS);
    struct stream *stream = &world.streams[index];
    if (posts && stream->sends_posted < OPERATIONS && chance(0.3))
        post_send(index);
    if (posts && stream->receives_posted < OPERATIONS && chance(0.35))
        post_receive(index);
    transmit(0);
    transmit(1);
    deliver();
}

static void live(uint64_t seed)
{
    begin(seed);
    for (int i = 0; i < 600; i++)
        step(true);
    for (int i = 0; i < 200000 && (xp_nic_next(&world.pair.nics[0]) != LH_TIME_NEVER ||
                                   xp_nic_next(&world.pair.nics[1]) != LH_TIME_NEVER || world.flying);
         i++)
        step(false);
    check_stillness();
    for (uint32_t s = 0; s < QPS; s++) {
        const struct stream *stream = &world.streams[s];
        assert_int_equal(stream->sends_ended, stream->sends_posted);
        assert_int_equal(stream->receives_ended, stream->receives_posted);
    }
}

static uint64_t seeds = 400;

static void test_lives(void **state)
{
    (void)state;
    uint64_t whole = 0, partial = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        live(seed);
        whole += world.whole;
        partial += world.partial;
    }
    print_message("%llu lives: %llu messages whole, %llu not\n", (unsigned long long)seeds,
                  (unsigned long long)whole, (unsigned long long)partial);
    assert_true(whole > seeds && partial > seeds);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lives)};
    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
