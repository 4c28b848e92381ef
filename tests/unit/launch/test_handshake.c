/* The rendezvous' words: encoded, decoded, refused when they are impossible, and agreed upon alike by both
 * sides.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "launch/handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct handshake_proposal usual = {
    .mtu_bytes = 4096,
    .chunk_bytes = 65536,
    .slots = 64,
    .channels = 4,
    .generations = 4,
    .slot_bytes = 4 << 20,
    .link = {.delay_ns = 12500000, .rate_bps = 2000000000, .loss = 1e-3, .seed = 7},
};

static void header_round_trip(void **state)
{
    (void)state;
    uint8_t bytes[HANDSHAKE_HEADER_BYTES];
    for (enum handshake_type type = HANDSHAKE_PROPOSAL; type <= HANDSHAKE_COOKIE; type++) {
        const struct handshake_header header = {HANDSHAKE_VERSION, type, 0xABCD, HANDSHAKE_BODY_MAX};
        struct handshake_header read;
        handshake_header_encode(&header, bytes);
        assert_int_equal(handshake_header_decode(bytes, &read), 0);
        assert_int_equal(read.version, HANDSHAKE_VERSION);
        assert_int_equal(read.type, type);
        assert_int_equal(read.stream, 0xABCD);
        assert_int_equal(read.body_bytes, HANDSHAKE_BODY_MAX);
    }
}

/* Byte `at` of a good header set to `value` must be refused with `error`. */
static void refuse_header_of(uint8_t version, size_t at, uint8_t value, int error)
{
    uint8_t bytes[HANDSHAKE_HEADER_BYTES];
    const struct handshake_header header = {version, HANDSHAKE_READY, 0, 0};
    struct handshake_header read;
    handshake_header_encode(&header, bytes);
    assert_int_not_equal(bytes[at], value);
    bytes[at] = value;
    assert_int_equal(handshake_header_decode(bytes, &read), error);
}

static void impossible_headers(void **state)
{
    (void)state;
    for (uint8_t version = HANDSHAKE_VERSION_MIN; version <= HANDSHAKE_VERSION; version++) {
        refuse_header_of(version, 0, 'G', -LH_EHANDSHAKE);
        refuse_header_of(version, 3, 0, -LH_EHANDSHAKE);
        refuse_header_of(version, 4, 0, -LH_EVERSION);
        refuse_header_of(version, 4, HANDSHAKE_VERSION + 1, -LH_EVERSION);
        refuse_header_of(version, 5, 0, -LH_EHANDSHAKE);
        if (version < HANDSHAKE_VERSION_STREAMS)
            refuse_header_of(version, 6, 1, -LH_EHANDSHAKE);
        refuse_header_of(version, 8, 1, -LH_EHANDSHAKE);
        refuse_header_of(version, 10, 9, -LH_EHANDSHAKE); /* 2304 bytes */
    }
    /* Version 1 has no BUSY. */
    refuse_header_of(1, 5, HANDSHAKE_BUSY, -LH_EHANDSHAKE);
    refuse_header_of(2, 5, HANDSHAKE_MORE, -LH_EHANDSHAKE);
    refuse_header_of(3, 5, HANDSHAKE_COOKIE, -LH_EHANDSHAKE);
    refuse_header_of(4, 5, HANDSHAKE_COOKIE + 1, -LH_EHANDSHAKE);
}

/* A stranger must not have gigabytes set aside for the link that it proposes. */
static void links_that_hold_too_much(void **state)
{
    (void)state;
    static const struct {
        const char *link;
        bool possible;
    } cases[] = {{"none", true},
                 {"rtt=25ms,rate=400Gbit", true},
                 {"rtt=160ms,rate=100Gbit,queue=1MiB", false},
                 {"rtt=120ms,rate=100Gbit", true},
                 {"delay=3600s", true}, /* without a rate it holds a fixed amount */
                 {"rtt=10s,rate=400Gbit", false},
                 {"jitter=10s,rate=10Gbit", false},
                 {"rate=1Gbit,queue=2GiB", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t body[HANDSHAKE_BODY_MAX];
        struct handshake_proposal said = usual, read;
        assert_int_equal(lh_link_parse(cases[i].link, &said.link), 0);
        uint32_t bytes = handshake_proposal_encode(&said, body);
        int error = handshake_proposal_decode(body, bytes, &read);
        assert_int_equal(handshake_link_bytes(&said.link) == 0, i == 0);
        if (error != (cases[i].possible ? 0 : -LH_EHANDSHAKE))
            fail_msg("%s: %d", cases[i].link, error);
        if (!cases[i].possible)
            assert_non_null(strstr(lh_last_error(), "emulated link holds more than 1024 MiB"));
    }
}

static void proposal_round_trip(void **state)
{
    (void)state;
    uint8_t body[HANDSHAKE_BODY_MAX];
    struct handshake_proposal read;
    uint32_t bytes = handshake_proposal_encode(&usual, body);
    assert_int_equal(handshake_proposal_decode(body, bytes, &read), 0);
    assert_int_equal(read.mtu_bytes, usual.mtu_bytes);
    assert_int_equal(read.chunk_bytes, usual.chunk_bytes);
    assert_int_equal(read.slots, usual.slots);
    assert_int_equal(read.channels, usual.channels);
    assert_int_equal(read.generations, usual.generations);
    assert_int_equal(read.slot_bytes, usual.slot_bytes);
    assert_int_equal(read.link.delay_ns, usual.link.delay_ns);
    assert_int_equal(read.link.rate_bps, usual.link.rate_bps);
    assert_true(read.link.loss == usual.link.loss);
}

static void refuse_proposal(struct handshake_proposal proposal)
{
    uint8_t body[HANDSHAKE_BODY_MAX];
    struct handshake_proposal read;
    uint32_t bytes = handshake_proposal_encode(&proposal, body);
    assert_int_equal(handshake_proposal_decode(body, bytes, &read), -LH_EHANDSHAKE);
}

#define REFUSE(field, value)                                                                               \
    do {                                                                                                   \
        struct handshake_proposal proposal = usual;                                                        \
        proposal.field = (value);                                                                          \
        refuse_proposal(proposal);                                                                         \
    } while (0)

static void impossible_proposals(void **state)
{
    (void)state;
    REFUSE(mtu_bytes, 0);
    REFUSE(mtu_bytes, 128);
    REFUSE(mtu_bytes, 1000);
    REFUSE(mtu_bytes, 1408); /* without any_mtu */
    REFUSE(mtu_bytes, 8192);
    REFUSE(chunk_bytes, 4097);
    REFUSE(chunk_bytes, 1u << 31);
    REFUSE(slots, 0);
    REFUSE(slots, 3);
    REFUSE(slots, 2048);
    REFUSE(channels, 0);
    REFUSE(channels, 33);
    REFUSE(generations, 0);
    REFUSE(generations, 9);
    REFUSE(slot_bytes, 255);
    REFUSE(slot_bytes, ((uint64_t)1 << 30) + 1);
}

static void wrong_lengths_and_links(void **state)
{
    (void)state;
    uint8_t body[HANDSHAKE_BODY_MAX] = {0};
    struct handshake_proposal read;
    uint32_t bytes = handshake_proposal_encode(&usual, body);
    assert_int_equal(handshake_proposal_decode(body, HANDSHAKE_PROPOSAL_MIN - 1, &read), -LH_EHANDSHAKE);
    assert_int_equal(
        handshake_proposal_decode(body, HANDSHAKE_PROPOSAL_MIN + HANDSHAKE_LINK_TEXT_MAX + 1, &read),
        -LH_EHANDSHAKE);
    body[bytes - 1] = '\0'; /* a text that ends early */
    assert_int_equal(handshake_proposal_decode(body, bytes, &read), -LH_EHANDSHAKE);
    handshake_proposal_encode(&usual, body);
    body[HANDSHAKE_PROPOSAL_MIN] = '?';
    assert_int_equal(handshake_proposal_decode(body, bytes, &read), -LH_EHANDSHAKE);
}

static void both_agree(void **state)
{
    (void)state;
    struct handshake_proposal other = usual;
    other.mtu_bytes = 1024;
    other.chunk_bytes = 0;
    other.slots = 16;
    other.channels = 8;
    other.generations = 2;
    other.slot_bytes = 3 << 20;
    struct handshake_proposal agreed = handshake_agree(&other, &usual);
    assert_int_equal(agreed.mtu_bytes, 1024);
    assert_int_equal(agreed.chunk_bytes, 65536); /* the connecting side has no wish */
    assert_int_equal(agreed.slots, 16);
    assert_int_equal(agreed.channels, 4);
    assert_int_equal(agreed.generations, 2);
    assert_int_equal(agreed.slot_bytes, 3 << 20);
    other.chunk_bytes = 2048;
    assert_int_equal(handshake_agree(&other, &usual).chunk_bytes, 2048);
    assert_int_equal(handshake_agree(&usual, &other).chunk_bytes, 65536);
}

static struct handshake_proposal any_mtu(uint32_t mtu_bytes)
{
    struct handshake_proposal proposal = usual;
    proposal.mtu_bytes = mtu_bytes;
    proposal.any_mtu = true;
    return proposal;
}

static void payloads_that_fill_the_path(void **state)
{
    (void)state;
    uint8_t body[HANDSHAKE_BODY_MAX];
    struct handshake_proposal read, ethernet = any_mtu(1408), jumbo = any_mtu(8896), nic = usual;
    uint32_t bytes = handshake_proposal_encode(&ethernet, body);
    assert_int_equal(handshake_proposal_decode(body, bytes, &read), 0);
    assert_true(read.any_mtu && read.mtu_bytes == 1408);
    struct handshake_proposal agreed = handshake_agree(&ethernet, &jumbo);
    assert_true(agreed.any_mtu && agreed.mtu_bytes == 1408);
    assert_int_equal(agreed.chunk_bytes, 32 * 1408); /* 65,536 rounded down */
    assert_int_equal(agreed.slot_bytes % agreed.chunk_bytes, 0);
    assert_int_equal(handshake_agree(&jumbo, &jumbo).mtu_bytes, 8896);
    nic.mtu_bytes = 4096; /* takes powers of two only */
    agreed = handshake_agree(&nic, &ethernet);
    assert_true(!agreed.any_mtu && agreed.mtu_bytes == 1024);
    assert_int_equal(handshake_agree(&jumbo, &nic).mtu_bytes, 4096);
    /* What an older release reads. */
    jumbo.chunk_bytes = 2 * 8896;
    handshake_use_powers(&jumbo);
    assert_true(!jumbo.any_mtu && jumbo.mtu_bytes == 4096 && jumbo.chunk_bytes == 16384);
    bytes = handshake_proposal_encode(&jumbo, body);
    assert_int_equal(body[0] | body[1], 0);
    refuse_proposal(any_mtu(1000));
    refuse_proposal(any_mtu(192));
    refuse_proposal(any_mtu(8960));
    handshake_proposal_encode(&ethernet, body);
    body[1] = 32; /* a step of no release */
    assert_int_equal(handshake_proposal_decode(body, bytes, &read), -LH_EHANDSHAKE);
    ethernet.encryption = HANDSHAKE_ENCRYPTION_FULL;
    handshake_proposal_encode(&ethernet, body);
    assert_int_equal(handshake_proposal_decode(body, bytes, &read), 0);
    assert_int_equal(read.encryption, HANDSHAKE_ENCRYPTION_FULL);
    body[0] = 3; /* of no release, either */
    assert_int_equal(handshake_proposal_decode(body, bytes, &read), -LH_EHANDSHAKE);
}

static void a_slot_holds_whole_chunks(void **state)
{
    (void)state;
    struct handshake_proposal a = usual;
    a.slot_bytes = 65536 * 3 + 5;
    assert_int_equal(handshake_agree(&a, &usual).slot_bytes, 65536 * 3);
    a.slot_bytes = 4096; /* less than a chunk */
    assert_int_equal(handshake_agree(&a, &usual).slot_bytes, 65536);
    a = usual;
    a.chunk_bytes = 0;
    struct handshake_proposal b = a;
    assert_int_equal(handshake_agree(&a, &b).chunk_bytes, 4096); /* nobody has a wish: one packet */
    a.chunk_bytes = 256;                                         /* less than the packets */
    assert_int_equal(handshake_agree(&a, &b).chunk_bytes, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_round_trip),           cmocka_unit_test(impossible_headers),
        cmocka_unit_test(proposal_round_trip),         cmocka_unit_test(impossible_proposals),
        cmocka_unit_test(wrong_lengths_and_links),     cmocka_unit_test(both_agree),
        cmocka_unit_test(payloads_that_fill_the_path), cmocka_unit_test(links_that_hold_too_much),
        cmocka_unit_test(a_slot_holds_whole_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
