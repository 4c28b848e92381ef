/*
 * test_connection_matching.c - receives that choose messages by their tags, over a simulated network.
 *
 * Which message a receive gets follows from the order of the sends and the order of the receives alone, not
 * from when what arrives: each test computes it, and compares.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "message/connection_state.h"
#include "sdr/sdr_driver.h"
#include "support/connection_pair.h"
#include "wire/eager_packets.h"

#define BYTES_MAX  100000u
#define MESSAGES   120u
#define RECEIVES   160u
#define ANY        UINT64_MAX
#define CLEAN_LINK "rtt=10ms,rate=10Gbit"
#define BAD_LINK   "rtt=10ms,rate=10Gbit,loss=0.05,reorder=0.02,duplicate=0.02,jitter=200us"

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static struct connection_pair open_pair(const char *link, const char *reliability)
{
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = reliability;
    attr.match_tags = true;
    connection_pair_open(&pair, "matching", 5, link, &attr, NULL);
    return pair;
}

static struct lh_request *send_tagged(struct connection_pair *pair, const void *data, size_t bytes,
                                      uint64_t tag)
{
    const struct lh_part part = {(void *)(uintptr_t)data, bytes, NULL};
    struct lh_request *request;
    must(lh_sendmsg(pair->ends[0], &(struct lh_message){.parts = &part, .count = 1, .tag = tag}, &request),
         "lh_sendmsg");
    return request;
}

static struct lh_request *recv_tagged(struct connection_pair *pair, void *buffer, size_t capacity,
                                      uint64_t tag, uint64_t ignore)
{
    const struct lh_part part = {buffer, capacity, NULL};
    const struct lh_message message = {.parts = &part, .count = 1, .tag = tag, .ignore = ignore};
    struct lh_request *request;
    must(lh_recvmsg(pair->ends[1], &message, &request), "lh_recvmsg");
    return request;
}

static struct lh_stats stats_of(struct connection_pair *pair, int end)
{
    struct lh_stats stats;
    must(lh_connection_stats(pair->ends[end], &stats), "lh_connection_stats");
    return stats;
}

/* ---- which message a receive gets -------------------------------------------------------------------- */

struct one_send {
    uint64_t tag;
    size_t bytes;
    uint8_t *data;
    struct lh_request *request;
    int receive; /* that gets it; -1: none */
};

struct one_receive {
    uint64_t tag, ignore;
    size_t capacity;
    uint8_t *buffer;
    struct lh_request *request;
    int send; /* that it gets; -1: none */
};

struct script {
    struct one_send sends[MESSAGES];
    struct one_receive receives[RECEIVES];
};

static size_t draw_bytes(struct lh_prng *prng)
{
    static const size_t special[] = {0,     1,    64, EAGER_UNIT_BYTES + 1, EAGER_MAX, EAGER_MAX + 1,
                                     16384, 16385};
    if (lh_prng_chance(prng, 0.7))
        return special[lh_prng_below(prng, sizeof special / sizeof special[0])];
    return lh_prng_below(prng, BYTES_MAX);
}

static void draw_script(struct script *script, struct lh_prng *prng)
{
    static const uint64_t ignored[] = {0, 0, 0, 1, 6, ANY};
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct one_send *one = &script->sends[i];
        *one = (struct one_send){.tag = lh_prng_below(prng, 8), .bytes = draw_bytes(prng), .receive = -1};
        one->data = connection_pair_bytes(one->bytes + 1, i + 1);
    }
    for (uint32_t i = 0; i < RECEIVES; i++) {
        struct one_receive *one = &script->receives[i];
        *one = (struct one_receive){.tag = lh_prng_below(prng, 8),
                                    .ignore = ignored[lh_prng_below(prng, 6)],
                                    .capacity = lh_prng_chance(prng, 0.1) ? 1000 : BYTES_MAX,
                                    .send = -1};
        one->buffer = calloc(1, one->capacity);
    }
}

static void pair_up(struct script *script)
{
    for (int i = 0; i < (int)MESSAGES; i++)
        for (int j = 0; j < (int)RECEIVES && script->sends[i].receive < 0; j++) {
            struct one_receive *receive = &script->receives[j];
            if (receive->send >= 0 || ((receive->tag ^ script->sends[i].tag) & ~receive->ignore) != 0)
                continue;
            receive->send = i;
            script->sends[i].receive = j;
        }
}

static void play(struct connection_pair *pair, struct script *script, struct lh_prng *prng)
{
    uint32_t sent = 0, received = 0;
    double ahead = (double)lh_prng_below(prng, 100) / 100;
    while (sent < MESSAGES || received < RECEIVES) {
        if (sent < MESSAGES && (received == RECEIVES || lh_prng_chance(prng, ahead))) {
            struct one_send *one = &script->sends[sent++];
            one->request = send_tagged(pair, one->data, one->bytes, one->tag);
        } else {
            struct one_receive *one = &script->receives[received++];
            one->request = recv_tagged(pair, one->buffer, one->capacity, one->tag, one->ignore);
        }
        if (lh_prng_chance(prng, 0.2))
            connection_pair_run(pair, lh_prng_below(prng, 20) * LH_NS_PER_MS);
    }
}

static void check_receive(struct connection_pair *pair, struct script *script,
                          const struct one_receive *receive)
{
    const struct one_send *send = &script->sends[receive->send];
    struct lh_result result = connection_pair_finish(pair, receive->request);
    bool fits = send->bytes <= receive->capacity;
    assert_int_equal(result.error, fits ? 0 : -LH_ETRUNCATED);
    assert_int_equal(result.tag, send->tag);
    if (fits)
        assert_int_equal(result.bytes, send->bytes);
    if (fits && send->bytes > 0)
        assert_memory_equal(receive->buffer, send->data, send->bytes);
    assert_int_equal(connection_pair_finish(pair, send->request).error, result.error);
}

static void check_script(struct connection_pair *pair, struct script *script)
{
    for (uint32_t i = 0; i < RECEIVES; i++)
        if (script->receives[i].send >= 0)
            check_receive(pair, script, &script->receives[i]);
    for (uint32_t i = 0; i < RECEIVES; i++)
        if (script->receives[i].send < 0) {
            assert_int_equal(lh_test(script->receives[i].request, NULL), 0);
            lh_request_free(script->receives[i].request);
        }
    for (uint32_t i = 0; i < MESSAGES; i++)
        if (script->sends[i].receive < 0) {
            assert_int_equal(lh_test(script->sends[i].request, NULL), 0);
            lh_request_free(script->sends[i].request);
        }
    for (uint32_t i = 0; i < RECEIVES; i++)
        free(script->receives[i].buffer);
    for (uint32_t i = 0; i < MESSAGES; i++)
        free(script->sends[i].data);
}

static void each_gets_its_own(const char *link, const char *reliability, uint64_t seed)
{
    static struct script script;
    struct connection_pair pair = open_pair(link, reliability);
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    draw_script(&script, &prng);
    pair_up(&script);
    play(&pair, &script, &prng);
    check_script(&pair, &script);
    connection_pair_run(&pair, LH_NS_PER_S);
    assert_int_equal(stats_of(&pair, 0).bad_control, 0);
    assert_int_equal(stats_of(&pair, 1).bad_control, 0);
    connection_pair_close(&pair);
}

static void every_message_lands_in_its_receive(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        each_gets_its_own(CLEAN_LINK, "sr-nack", seed);
        each_gets_its_own(BAD_LINK, "sr-nack", seed);
        each_gets_its_own(BAD_LINK, "ec:mds", seed);
        each_gets_its_own(BAD_LINK, "auto", seed);
    }
}

/* ---- what waits holds up nothing else ---------------------------------------------------------------- */

static void exchange(struct connection_pair *pair, uint64_t tag, size_t bytes)
{
    uint8_t *data = connection_pair_bytes(bytes, tag), *buffer = calloc(1, bytes);
    struct lh_request *recv = recv_tagged(pair, buffer, bytes, tag, 0);
    struct lh_request *send = send_tagged(pair, data, bytes, tag);
    assert_int_equal(connection_pair_finish(pair, recv).bytes, bytes);
    assert_int_equal(connection_pair_finish(pair, send).error, 0);
    assert_memory_equal(buffer, data, bytes);
    free(data);
    free(buffer);
}

/* Runs of states alternate: more than an acknowledgement has places for. */
static void messages_pass_those_that_wait(void **state)
{
    (void)state;
    enum { WAITING = 100, BYTES = EAGER_CELL_BYTES };
    static uint8_t data[WAITING][BYTES], large[20000], buffer[20000];
    struct lh_request *sends[WAITING], *receives[200];
    struct connection_pair pair = open_pair("rtt=100us", NULL);
    struct lh_request *first = send_tagged(&pair, large, sizeof large, 1);
    for (uint32_t i = 0; i < 200; i++)
        receives[i] = recv_tagged(&pair, buffer, sizeof buffer, 2, 0);
    for (uint32_t i = 0; i < WAITING; i++) {
        memset(data[i], (int)i, BYTES);
        sends[i] = send_tagged(&pair, data[i], BYTES, 3);
        exchange(&pair, 4, 64);
        exchange(&pair, 5, 10000);
    }
    for (uint32_t i = 0; i < WAITING; i++) {
        struct lh_request *recv = recv_tagged(&pair, buffer, sizeof buffer, 3, 0);
        assert_int_equal(connection_pair_finish(&pair, recv).bytes, BYTES);
        assert_memory_equal(buffer, data[i], BYTES);
        assert_int_equal(connection_pair_finish(&pair, sends[i]).error, 0);
    }
    struct lh_request *recv = recv_tagged(&pair, buffer, sizeof buffer, 0, ANY);
    assert_int_equal(connection_pair_finish(&pair, recv).tag, 1);
    assert_int_equal(connection_pair_finish(&pair, first).error, 0);
    for (uint32_t i = 0; i < 200; i++)
        lh_request_free(receives[i]);
    exchange(&pair, 2, 64); /* what was canceled takes no message */
    connection_pair_close(&pair);
}

/* Places are used up: later messages wait, and none is lost. */
static void then_the_sender_waits(void **state)
{
    (void)state;
    enum { COUNT = EAGER_CELLS + 100 };
    static struct lh_request *sends[COUNT];
    static uint8_t data[COUNT], buffer[EAGER_MAX + 1];
    struct connection_pair pair = open_pair("rtt=100us,loss=0.01", NULL);
    for (uint32_t i = 0; i < COUNT; i++) {
        bool is_long = i % 3 == 0;
        data[i] = (uint8_t)i;
        sends[i] =
            is_long ? send_tagged(&pair, buffer, sizeof buffer, 7) : send_tagged(&pair, &data[i], 1, 7);
    }
    connection_pair_run(&pair, LH_NS_PER_S);
    assert_int_equal(pair.ends[1]->small.matching.early.held, EAGER_CELLS);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint8_t got[EAGER_MAX + 1];
        struct lh_result result = connection_pair_finish(&pair, recv_tagged(&pair, got, sizeof got, 7, 0));
        assert_int_equal(result.bytes, i % 3 == 0 ? sizeof got : 1);
        assert_true(i % 3 == 0 || got[0] == data[i]);
        assert_int_equal(connection_pair_finish(&pair, sends[i]).error, 0);
    }
    assert_int_equal(stats_of(&pair, 1).bad_control, 0);
    assert_int_equal(pair.ends[0]->tx.outgoing.cells, 0);
    connection_pair_run(&pair, 3 * LH_NS_PER_S);
    assert_null(pair.ends[1]->small.matching.early.memory);
    connection_pair_close(&pair);
}

/* One that is never received: so many later ones, and no more. */
static void behind_one_that_is_never_received(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=100us", NULL);
    uint8_t byte = 1;
    struct lh_request *never = send_tagged(&pair, &byte, 1, 1), *request;
    for (uint32_t i = 0; i < LH_REQUESTS_MAX - 1; i++)
        exchange(&pair, 2, 1);
    assert_int_equal(lh_send(pair.ends[0], &byte, 1, NULL, &request), -LH_EAGAIN);
    lh_request_free(never); /* canceled */
    connection_pair_run(&pair, LH_NS_PER_S);
    exchange(&pair, 2, 1);
    connection_pair_close(&pair);
}

/* ---- cancel ------------------------------------------------------------------------------------------ */

/* size: of messages; link: where packets of a cancel get lost, too. */
static void cancel_some(const char *link, size_t size)
{
    enum { COUNT = 40 };
    struct lh_request *sends[COUNT], *recv;
    uint8_t *data = connection_pair_bytes(size, 1), *buffer = malloc(size);
    struct connection_pair pair = open_pair(link, NULL);
    for (uint32_t i = 0; i < COUNT; i++)
        sends[i] = send_tagged(&pair, data, size, i / 2);
    for (uint32_t i = 0; i < COUNT; i += 2) {
        lh_cancel(sends[i]);
        assert_int_equal(connection_pair_finish(&pair, sends[i]).error, -LH_ECANCELED);
        if (i == COUNT / 2)
            connection_pair_run(&pair, LH_NS_PER_S);
    }
    connection_pair_run(&pair, 10 * LH_NS_PER_S);
    for (uint32_t i = 1; i < COUNT; i += 2) {
        recv = recv_tagged(&pair, buffer, size, 100, 0);
        lh_request_free(recv);
        recv = recv_tagged(&pair, buffer, size, i / 2, 0);
        assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
        assert_int_equal(connection_pair_finish(&pair, sends[i]).error, 0);
    }
    connection_pair_run(&pair, 10 * LH_NS_PER_S);
    assert_int_equal(pair.ends[1]->small.matching.early.held, 0);
    assert_int_equal(pair.ends[0]->tx.outgoing.cells, 0);
    assert_int_equal(stats_of(&pair, 1).bad_control, 0);
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

static void what_is_canceled_takes_no_other_along(void **state)
{
    (void)state;
    cancel_some("rtt=100us", 64);
    cancel_some("rtt=100us,loss=0.2", 64);
    cancel_some("rtt=100us", 30000);
    cancel_some("rtt=100us,loss=0.2", 30000);
}

/* A receive that has a message, and is canceled while that arrives. */
static void canceled_with_its_message(void **state)
{
    (void)state;
    enum { BYTES = 1000000 };
    struct connection_pair pair = open_pair("rtt=10ms,rate=100Mbit", NULL);
    uint8_t *data = connection_pair_bytes(BYTES, 1), *buffer = calloc(1, BYTES);
    for (int by_sender = 0; by_sender < 2; by_sender++) {
        struct lh_request *recv = recv_tagged(&pair, buffer, BYTES, 1, 0);
        struct lh_request *send = send_tagged(&pair, data, BYTES, 1);
        connection_pair_run(&pair, 60 * LH_NS_PER_MS);
        lh_cancel(by_sender ? send : recv);
        assert_int_equal(connection_pair_finish(&pair, send).error, -LH_ECANCELED);
        assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_ECANCELED);
    }
    exchange(&pair, 1, BYTES);
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

static void canceled_while_it_waits(void **state)
{
    (void)state;
    uint8_t buffer[100];
    struct connection_pair pair = open_pair("rtt=100us", NULL);
    struct lh_request *recv = recv_tagged(&pair, buffer, sizeof buffer, 1, 0);
    connection_pair_run(&pair, LH_NS_PER_MS);
    lh_cancel(recv);
    struct lh_result result = connection_pair_finish(&pair, recv);
    assert_int_equal(result.error, -LH_ECANCELED);
    assert_int_equal(result.bytes, 0);
    connection_pair_close(&pair);
}

/* ---- bad input --------------------------------------------------------------------------------------- */

static void calls_that_are_refused(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr;
    struct lh_request *request;
    connection_pair_attr(&attr);
    connection_pair_open(&pair, "matching", 5, CLEAN_LINK, &attr, NULL);
    assert_int_equal(lh_recvmsg(pair.ends[1], &(struct lh_message){.tag = 1}, &request), -LH_EINVAL);
    assert_int_equal(lh_recvmsg(pair.ends[1], &(struct lh_message){.ignore = 1}, &request), -LH_EINVAL);
    assert_int_equal(lh_sendmsg(pair.ends[0], &(struct lh_message){.ignore = 1}, &request), -LH_EINVAL);
    must(lh_recvmsg(pair.ends[1], &(struct lh_message){.ignore = ANY}, &request), "lh_recvmsg");
    lh_request_free(request);
    connection_pair_close(&pair);
}

/* An older peer is named. One side alone may match. */
static void with_peers_of_all_kinds(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_connection *connection;
    struct lh_attr attr, other;
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    connection_pair_attr(&attr);
    other = attr;
    other.match_tags = true;
    connection_pair_open(&pair, "matching", 5, CLEAN_LINK, &attr, &other);
    exchange(&pair, 9, 20000);
    connection_pair_transfer(&pair, 1, 20000, 20000);
    must(lh_blob(pair.ends[0], blob, &bytes), "lh_blob");
    lh_put_be16(blob + 6, lh_get_be16(blob + 6) & (uint16_t)~BLOB_MATCH);
    other.device = "sim:matching/1";
    other.workers = LH_NO_WORKERS;
    must(lh_open(&other, &connection), "lh_open");
    assert_int_equal(lh_attach(connection, blob, bytes), -LH_EVERSION);
    assert_non_null(strstr(lh_last_error(), "match_tags"));
    lh_close(connection);
    connection_pair_close(&pair);
}

/* A peer announces what nobody waits for: so much memory, and no more. */
static void a_flood_of_announcements(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=100us", NULL);
    uint8_t out[EAGER_BYTES_MAX], *payload;
    for (uint32_t i = 0; i < 3 * EAGER_CELLS; i++) {
        const struct eager_entry entry = {.message = i, .is_long = true, .bytes = 1 << 30, .tag = i};
        struct eager_writer writer;
        eager_write_begin(&writer, out, sizeof out, i, NULL);
        eager_write_entry(&writer, &entry, &payload);
        must(lh_sdr_message_send(pair.ends[0]->qp, out, writer.bytes), "lh_sdr_message_send");
        connection_pair_run(&pair, LH_NS_PER_MS);
    }
    assert_int_equal(pair.ends[1]->small.matching.early.held, EAGER_CELLS);
    assert_int_equal(stats_of(&pair, 1).bad_control, 2 * EAGER_CELLS);
    assert_int_equal(lh_connection_error(pair.ends[1]), 0);
    connection_pair_close(&pair);
}

/* A clear-to-send of a message that was never sent ends the connection. */
static void a_forged_clear_to_send(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=100us", NULL);
    static uint8_t buffer[20000];
    struct lh_connection *forger = pair.ends[1]; /* a peer that clears what it likes */
    forger->rx.matched = forger->small.matching.on = false;
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, sizeof buffer);
    struct lh_request *also = connection_pair_recv(&pair, 1, buffer, sizeof buffer);
    struct lh_request *send = send_tagged(&pair, buffer, sizeof buffer, 1);
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_EPROTOCOL);
    assert_int_equal(lh_connection_error(pair.ends[0]), -LH_EPROTOCOL);
    assert_true(connection_pair_finish(&pair, recv).error != 0);
    assert_true(connection_pair_finish(&pair, also).error != 0);
    connection_pair_close(&pair);
}

/* The connection ends in a step that has more to do, while a cancelled message is in the ring. */
static void ends_within_a_step(void **state)
{
    (void)state;
    static uint8_t data[MESSAGES][900];
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.match_tags = true;
    connection_pair_open(&pair, "ends within a step", 1, CLEAN_LINK, &attr, NULL);
    connection_pair_run(&pair, 100 * LH_NS_PER_MS);
    struct lh_request *requests[MESSAGES];
    for (uint32_t i = 0; i < MESSAGES; i++)
        requests[i] = connection_pair_send(&pair, 0, data[i], sizeof data[i]);
    connection_pair_run(&pair, 200 * LH_NS_PER_MS);
    struct lh_connection *sender = pair.ends[0];
    must(lh_cancel(requests[2]), "lh_cancel");
    pthread_mutex_lock(&sender->requests->lock);
    effects_fail(&sender->effects, LH_EPATH, "the path changed");
    sender->needs_step = true;
    pthread_mutex_unlock(&sender->requests->lock);
    assert_int_not_equal(sender->tx.outgoing.unsent, sender->tx.outgoing.next);
    connection_pair_run(&pair, LH_NS_PER_MS);
    assert_int_equal(sender->error, -LH_EPATH);
    for (uint32_t i = 0; i < MESSAGES; i++)
        lh_request_free(requests[i]);
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_lands_in_its_receive),
        cmocka_unit_test(messages_pass_those_that_wait),
        cmocka_unit_test(then_the_sender_waits),
        cmocka_unit_test(behind_one_that_is_never_received),
        cmocka_unit_test(what_is_canceled_takes_no_other_along),
        cmocka_unit_test(canceled_with_its_message),
        cmocka_unit_test(canceled_while_it_waits),
        cmocka_unit_test(calls_that_are_refused),
        cmocka_unit_test(with_peers_of_all_kinds),
        cmocka_unit_test(a_flood_of_announcements),
        cmocka_unit_test(a_forged_clear_to_send),
        cmocka_unit_test(ends_within_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
