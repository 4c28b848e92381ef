/*
 * test_model_terms.c - a path in the model's terms; nonsense is refused in words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/terms.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static const struct lh_model_path good = {.message_bytes = 128 << 20,
                                          .chunk_bytes = 65536,
                                          .mtu_bytes = 4096,
                                          .bandwidth_bps = 400e9,
                                          .rtt_s = 25e-3,
                                          .loss = 1e-4};
static const struct lh_model_scheme rto = {.kind = LH_MODEL_SR_RTO};

static void test_terms(void **state)
{
    (void)state;
    struct model_terms terms;
    assert_int_equal(model_terms_of(&good, &rto, &terms), 0);
    assert_near(terms.chunks, 2048, 0);
    assert_near(terms.packets, 32768, 0);
    assert_near(terms.inject_s, 1.31072e-6, 1e-12);
    assert_near(terms.ideal_s, 27.68435456e-3, 1e-12);
    assert_near(model_terms_overhead(&terms), 1 + 75e-3 / 1.31072e-6, 1e-12);
    assert_near(terms.loss.chunk, -expm1(16 * log1p(-1e-4)), 1e-12);
}

/* A short message is one chunk of its own packets; injection takes what its bytes take. */
static void test_odd_sizes(void **state)
{
    (void)state;
    struct lh_model_path path = good;
    struct model_terms terms;
    path.message_bytes = 5000;
    assert_int_equal(model_terms_of(&path, &rto, &terms), 0);
    assert_near(terms.chunks, 1, 0);
    assert_near(terms.loss.chunk, -expm1(2 * log1p(-1e-4)), 1e-12);
    assert_near(terms.ideal_s, 25e-3 + 5000 * 8 / 400e9, 1e-15);
    path.message_bytes = 65537;
    path.header_bytes = 84;
    assert_int_equal(model_terms_of(&path, &rto, &terms), 0);
    assert_near(terms.chunks, 2, 0);
    assert_near(terms.message_wire_bytes, 65537 + 17 * 84, 0);
    assert_near(terms.chunks * terms.inject_s, terms.message_wire_bytes * 8 / 400e9, 1e-12);
}

/* Loss told by the chunk is the same as told by the packet. */
static void test_loss_of_chunk(void **state)
{
    (void)state;
    struct lh_model_path path = good;
    struct model_terms by_packet;
    struct model_terms by_chunk;
    for (path.burst_packets = 0; path.burst_packets <= 10; path.burst_packets += 10) {
        path.loss_of_chunk = false;
        path.loss = 1e-4;
        assert_int_equal(model_terms_of(&path, &rto, &by_packet), 0);
        path.loss_of_chunk = true;
        path.loss = by_packet.loss.chunk;
        assert_int_equal(model_terms_of(&path, &rto, &by_chunk), 0);
        assert_near(by_chunk.loss.packet, 1e-4, 1e-9);
    }
}

static void refused(struct lh_model_path path, int code, const char *word)
{
    struct model_terms terms = {.chunks = 7};
    assert_int_equal(model_terms_of(&path, &rto, &terms), code);
    if (!strstr(lh_last_error(), word))
        fail_msg("\"%s\" does not say %s", lh_last_error(), word);
    assert_near(terms.chunks, 7, 0); /* set only on success */
}

#define REFUSED(code, word, ...)                                                                           \
    do {                                                                                                   \
        struct lh_model_path path = good;                                                                  \
        __VA_ARGS__;                                                                                       \
        refused(path, code, word);                                                                         \
    } while (0)

static void test_refused(void **state)
{
    (void)state;
    REFUSED(-LH_ERANGE, "message of 0", path.message_bytes = 0);
    REFUSED(-LH_ERANGE, "2^63", path.message_bytes = (uint64_t)1 << 63);
    REFUSED(-LH_ERANGE, "2^63", path.message_bytes = (uint64_t)-5);
    REFUSED(-LH_ERANGE, "packets", path.message_bytes = ((uint64_t)1 << 63) - 1; path.mtu_bytes = 1);
    REFUSED(-LH_EINVAL, "MTU", path.mtu_bytes = 0);
    REFUSED(-LH_ERANGE, "chunk of 0", path.chunk_bytes = 0);
    REFUSED(-LH_ERANGE, "2^63", path.chunk_bytes = (uint64_t)-4096);
    REFUSED(-LH_EINVAL, "multiple", path.chunk_bytes = 65537);
    REFUSED(-LH_ERANGE, "bandwidth of 0", path.bandwidth_bps = 0);
    REFUSED(-LH_ERANGE, "bandwidth of -1", path.bandwidth_bps = -1);
    REFUSED(-LH_ERANGE, "bandwidth of nan", path.bandwidth_bps = fabs(NAN));
    REFUSED(-LH_ERANGE, "bandwidth of inf", path.bandwidth_bps = INFINITY);
    REFUSED(-LH_ERANGE, "round trip of 0", path.rtt_s = 0);
    REFUSED(-LH_ERANGE, "round trip of -0.1", path.rtt_s = -0.1);
    REFUSED(-LH_ERANGE, "round trip", path.rtt_s = NAN);
    REFUSED(-LH_ERANGE, "round trip", path.rtt_s = INFINITY);
    REFUSED(-LH_ERANGE, "loss of -1e-09", path.loss = -1e-9);
    REFUSED(-LH_ERANGE, "loss of 1 ", path.loss = 1);
    REFUSED(-LH_ERANGE, "loss of ", path.loss = NAN);
    REFUSED(-LH_ERANGE, "smaller chunks", path.loss = 0.5);
    REFUSED(-LH_ERANGE, "bursts", path.burst_packets = -1);
    REFUSED(-LH_ERANGE, "bursts", path.burst_packets = NAN);
    REFUSED(-LH_EINVAL, "at least 1", path.burst_packets = 0.5);
    REFUSED(-LH_ERANGE, "longer ones", path.burst_packets = 2; path.loss = 0.7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_loss_of_chunk),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
