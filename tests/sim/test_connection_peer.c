/*
 * test_connection_peer.c - peers that are different, broken or hostile; schemes of one's own; blobs.
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

#include "base/prng.h"
#include "support/connection_pair.h"
#include "support/echo_scheme.h"
#include "wire/eager_packets.h"

#define BYTES      100003u
#define LONG_BYTES (EAGER_MAX + 1) /* of a message that takes a scheme */
#define MS         LH_NS_PER_MS

/* ---- a scheme of one's own --------------------------------------------------------------------------- */

static struct connection_pair open_with(const struct lh_scheme *mine, const struct lh_scheme *theirs)
{
    struct connection_pair pair;
    struct lh_attr attr[2];
    connection_pair_attr(&attr[0]);
    attr[1] = attr[0];
    attr[0].scheme = mine;
    attr[1].scheme = theirs;
    connection_pair_open(&pair, "peer", 5, "rtt=10ms,rate=10Gbit,loss=0.1", &attr[0], &attr[1]);
    return pair;
}

/* It never tells the lengths by itself: the connection does. */
static void silent_scheme(void **state)
{
    (void)state;
    struct connection_pair pair = open_with(&echo_scheme, &echo_scheme);
    uint8_t *data = connection_pair_bytes(BYTES, 1);
    uint8_t *buffer = malloc(2 * BYTES);
    for (int i = 0; i < 5; i++) {
        memset(buffer, 0, 2 * BYTES);
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, 2 * BYTES);
        struct lh_request *send = connection_pair_send(&pair, 0, data, BYTES);
        assert_int_equal(connection_pair_finish(&pair, send).error, 0);
        assert_int_equal(connection_pair_finish(&pair, recv).bytes, BYTES);
        assert_memory_equal(buffer, data, BYTES);
    }
    free(data);
    free(buffer);
    connection_pair_close(&pair);
}

static void scheme_that_the_sender_lacks(void **state)
{
    (void)state;
    struct connection_pair pair = open_with(NULL, &echo_scheme);
    uint8_t data[LONG_BYTES] = {0};
    uint8_t buffer[LONG_BYTES];
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, LONG_BYTES);
    struct lh_request *send = connection_pair_send(&pair, 0, data, LONG_BYTES);
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_EPROTOCOL);
    assert_int_equal(lh_connection_error(pair.ends[0]), -LH_EPROTOCOL);
    assert_non_null(strstr(lh_last_error(), "scheme 200"));
    assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_ECLOSED);
    connection_pair_close(&pair);
}

static bool no_params(const uint8_t params[LH_SCHEME_PARAMS])
{
    (void)params;
    return false;
}

static void impossible_parameters(void **state)
{
    (void)state;
    struct lh_scheme strict = echo_scheme;
    strict.params_valid = no_params;
    struct connection_pair pair = open_with(&strict, &echo_scheme);
    uint8_t data[LONG_BYTES] = {0};
    uint8_t buffer[LONG_BYTES];
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, LONG_BYTES);
    struct lh_request *send = connection_pair_send(&pair, 0, data, LONG_BYTES);
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_EPROTOCOL);
    assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_ECLOSED);
    connection_pair_close(&pair);
}

static void fail_at_once(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    (void)state, (void)view;
    lh_action_add(actions, LH_ACTION_FAIL)->what.error = LH_ERANGE;
    actions->next_ns = LH_TIME_NEVER;
}

static void give_up(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    (void)state;
    if (view->chunks_arrived > 3)
        lh_action_add(actions, LH_ACTION_FAIL)->what.error = LH_ERANGE;
    actions->next_ns = LH_TIME_NEVER;
}

/* The error of one side's machine ends that message on both sides, and nothing else. */
static void schemes_that_fail(void **state)
{
    (void)state;
    struct lh_scheme sender_fails = echo_scheme;
    struct lh_scheme receiver_fails = echo_scheme;
    sender_fails.sender_step = fail_at_once;
    receiver_fails.receiver_step = give_up;
    uint8_t *data = connection_pair_bytes(BYTES, 1);
    uint8_t *buffer = malloc(BYTES);
    for (int i = 0; i < 2; i++) {
        struct connection_pair pair =
            i == 0 ? open_with(&sender_fails, &echo_scheme) : open_with(&echo_scheme, &receiver_fails);
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, BYTES);
        struct lh_request *send = connection_pair_send(&pair, 0, data, BYTES);
        assert_int_equal(connection_pair_finish(&pair, send).error, -LH_ERANGE);
        assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_ERANGE);
        recv = connection_pair_recv(&pair, 1, buffer, BYTES);
        send = connection_pair_send(&pair, 0, data, 0);
        assert_int_equal(connection_pair_finish(&pair, send).error, 0);
        assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
        connection_pair_close(&pair);
    }
    free(data);
    free(buffer);
}

static size_t deadline_bytes(uint32_t chunks_max)
{
    (void)chunks_max;
    return sizeof(lh_time);
}

static void deadline_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    (void)transfer;
    *(lh_time *)state = now + 20 * MS;
}

static void deadline_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    actions->next_ns = *(const lh_time *)state;
    if (view->now >= actions->next_ns)
        lh_action_add(actions, LH_ACTION_FAIL)->what.error = LH_ETIMEDOUT;
}

/* A receiver's machine has timers from its start on, though nothing may ever arrive. */
static void scheme_with_a_deadline(void **state)
{
    (void)state;
    struct lh_scheme bounded = echo_scheme;
    bounded.receiver_bytes = deadline_bytes;
    bounded.receiver_start = deadline_start;
    bounded.receiver_step = deadline_step;
    struct connection_pair pair = open_with(&echo_scheme, &bounded);
    uint8_t buffer[LONG_BYTES];
    connection_pair_run(&pair, 100 * MS);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, LONG_BYTES);
    connection_pair_run(&pair, 20 * MS + 1);
    assert_true(lh_test(recv, NULL));
    assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_ETIMEDOUT);
    connection_pair_close(&pair);
}

/* ---- blobs ------------------------------------------------------------------------------------------- */

static struct lh_connection *open_end(uint32_t host, uint64_t slot_bytes, uint32_t mtu)
{
    char device[] = "sim:blobs/0";
    struct lh_connection *c = NULL;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    device[sizeof device - 2] = (char)('0' + host);
    attr.device = device;
    attr.slot_bytes = slot_bytes;
    attr.mtu_bytes = mtu;
    attr.workers = LH_NO_WORKERS;
    assert_int_equal(lh_open(&attr, &c), 0);
    return c;
}

static void blobs(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_create("blobs", 1, NULL);
    struct lh_connection *a = open_end(0, 16384, 1024);
    struct lh_connection *b = open_end(1, 16384, 1024);
    struct lh_connection *longer = open_end(2, 32768, 1024);
    struct lh_connection *wider = open_end(3, 16384, 2048);
    struct lh_request *request = NULL;
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = 10;
    assert_int_equal(lh_send(a, blob, 1, NULL, &request), -LH_ESTATE);
    assert_int_equal(lh_recv(a, blob, 1, NULL, &request), -LH_ESTATE);
    assert_int_equal(lh_blob(b, blob, &bytes), -LH_ERANGE);
    bytes = sizeof blob;
    assert_int_equal(lh_blob(longer, blob, &bytes), 0);
    assert_int_equal(lh_attach(a, blob, bytes), -LH_EHANDSHAKE);
    assert_non_null(strstr(lh_last_error(), "32768"));
    bytes = sizeof blob;
    assert_int_equal(lh_blob(wider, blob, &bytes), 0);
    assert_int_equal(lh_attach(a, blob, bytes), -LH_EHANDSHAKE);
    bytes = sizeof blob;
    assert_int_equal(lh_blob(b, blob, &bytes), 0);
    for (size_t cut = 0; cut < bytes; cut++)
        assert_int_equal(lh_attach(a, blob, cut), -LH_EHANDSHAKE);
    blob[5]++;
    assert_int_equal(lh_attach(a, blob, bytes), -LH_EVERSION);
    blob[5]--;
    blob[bytes - 9] ^= 1;
    assert_int_equal(lh_attach(a, blob, bytes), -LH_EHANDSHAKE);
    blob[bytes - 9] ^= 1;
    assert_int_equal(lh_attach(a, blob, bytes), 0);
    assert_int_equal(lh_attach(a, blob, bytes), -LH_ESTATE);
    assert_non_null(strstr(lh_peer_name(a), "fd77::1"));
    lh_close(a);
    lh_close(b);
    lh_close(longer);
    lh_close(wider);
    lh_close(NULL);
    sim_world_destroy(world);
}

static void bad_devices(void **state)
{
    (void)state;
    struct lh_connection *c = NULL;
    struct lh_attr attr;
    lh_attr_init(&attr);
    assert_int_equal(lh_open(&attr, &c), -LH_EDEVICE); /* none */
    attr.device = "carrier-pigeon:7";
    assert_int_equal(lh_open(&attr, &c), -LH_EDEVICE);
    attr.device = "sim:nowhere/0";
    assert_true(lh_open(&attr, &c) < 0);
    attr.device = "udp:[::1]";
    attr.slots = 3;
    assert_int_equal(lh_open(&attr, &c), -LH_EINVAL);
    assert_null(c);
}

/* ---- a hostile peer ---------------------------------------------------------------------------------- */

struct vandal {
    struct lh_prng prng;
    uint32_t damaged;
};

#define BTH_BYTES 12u

/* Changes bytes of the connection's own messages and makes the checksum right again: what a peer that means
 * harm could send. The control header stays, or nobody would listen. */
static bool vandalize(void *context, struct sim_datagram *datagram)
{
    struct vandal *vandal = context;
    uint8_t *message = datagram->data + BTH_BYTES;
    uint32_t first = BTH_BYTES + 32;
    if (!datagram->control || message[1] < 3 || datagram->bytes < first + 8 ||
        lh_prng_chance(&vandal->prng, 0.7))
        return true;
    uint32_t end = datagram->bytes - 4;
    for (uint64_t changes = 1 + lh_prng_below(&vandal->prng, 4); changes > 0; changes--) {
        uint32_t at = first + (uint32_t)lh_prng_below(&vandal->prng, end - first);
        static const uint8_t edges[] = {0, 1, 2, 3, 4, 5, 6, 0x7F, 0x80, 0xFF};
        datagram->data[at] = edges[lh_prng_below(&vandal->prng, sizeof edges)];
    }
    vandal->damaged++;
    sim_datagram_seal(datagram);
    return true;
}

/* Nothing may crash or hang; what arrives is anybody's guess. */
static void hostile_messages(void **state)
{
    (void)state;
    uint32_t damaged = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct connection_pair pair;
        struct lh_attr attr;
        struct vandal vandal = {.damaged = 0};
        struct lh_request *requests[80];
        static uint8_t data[2][BYTES];
        lh_prng_seed(&vandal.prng, seed);
        connection_pair_attr(&attr);
        attr.reliability = seed % 2 ? "sr-nack" : "sr-rto";
        connection_pair_open(&pair, "hostile", seed, "rtt=2ms,rate=10Gbit,loss=0.02", &attr, NULL);
        connection_pair_run(&pair, 20 * MS);
        sim_world_tap(pair.world, vandalize, &vandal);
        uint32_t count = 0;
        for (uint32_t i = 0; i < 20 && lh_connection_error(pair.ends[0]) == 0; i++) {
            size_t bytes = lh_prng_below(&vandal.prng, BYTES);
            for (int end = 0; end < 2; end++) {
                struct lh_connection *own = pair.ends[end];
                if (lh_recv(own, data[end], BYTES, NULL, &requests[count]) == 0)
                    count++;
                if (lh_send(own, data[1 - end], bytes, NULL, &requests[count]) == 0)
                    count++;
            }
            connection_pair_run(&pair, lh_prng_below(&vandal.prng, 5 * MS) + 1);
        }
        connection_pair_run(&pair, 200 * MS);
        for (uint32_t i = 0; i < count; i++)
            lh_request_free(requests[i]);
        connection_pair_run(&pair, 50 * MS);
        connection_pair_close(&pair);
        damaged += vandal.damaged;
    }
    assert_true(damaged > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_scheme),
        cmocka_unit_test(scheme_that_the_sender_lacks),
        cmocka_unit_test(impossible_parameters),
        cmocka_unit_test(schemes_that_fail),
        cmocka_unit_test(scheme_with_a_deadline),
        cmocka_unit_test(blobs),
        cmocka_unit_test(bad_devices),
        cmocka_unit_test(hostile_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
