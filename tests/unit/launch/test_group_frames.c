/*
 * test_group_frames.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "launch/group_frames.h"

/* ---- test group frame ------------------------------------------------------------------------------ */

static const struct group_frame possible[] = {
    {GROUP_HELLO, GROUP_HELLO_BYTES},
    {GROUP_CHALLENGE, GROUP_CHALLENGE_BYTES},
    {GROUP_PROOF, GROUP_PROOF_BYTES},
    {GROUP_WELCOME, GROUP_PROOF_BYTES},
    {GROUP_PART, GROUP_ROUND_BYTES},
    {GROUP_ALL, GROUP_ROUND_BYTES + (uint32_t)GROUP_EXCHANGE_MAX},
    {GROUP_REFUSE, GROUP_REASON_MAX},
    {GROUP_REFUSE, 0},
    {GROUP_FULL, 0},
};
static const struct group_frame impossible[] = {
    {GROUP_HELLO, GROUP_HELLO_BYTES + 1},
    {GROUP_CHALLENGE, GROUP_CHALLENGE_BYTES - 1},
    {GROUP_PROOF, 0},
    {GROUP_WELCOME, GROUP_PROOF_BYTES + 1},
    {GROUP_PART, GROUP_ROUND_BYTES - 1},
    {GROUP_ALL, GROUP_ROUND_BYTES + (uint32_t)GROUP_EXCHANGE_MAX + 1},
    {GROUP_REFUSE, GROUP_REASON_MAX + 1},
    {(enum group_frame_type)0, 0},
    {GROUP_FULL, 1},
    {(enum group_frame_type)9, 4},
};

static void headers(void **state)
{
    (void)state;
    uint8_t bytes[GROUP_FRAME_HEADER_BYTES];
    struct group_frame read;
    for (size_t i = 0; i < sizeof possible / sizeof *possible; i++) {
        group_frame_encode(&possible[i], bytes);
        assert_int_equal(group_frame_decode(bytes, &read), 0);
        assert_int_equal(read.type, possible[i].type);
        assert_int_equal(read.body_bytes, possible[i].body_bytes);
    }
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        group_frame_encode(&impossible[i], bytes);
        assert_int_equal(group_frame_decode(bytes, &read), -LH_EHANDSHAKE);
    }
}

static void foreign_headers(void **state)
{
    (void)state;
    uint8_t bytes[GROUP_FRAME_HEADER_BYTES];
    struct group_frame read;
    group_frame_encode(&possible[0], bytes);
    bytes[4]++;
    assert_int_equal(group_frame_decode(bytes, &read), -LH_EVERSION);
    bytes[4]--;
    bytes[7] = 1;
    assert_int_equal(group_frame_decode(bytes, &read), -LH_EHANDSHAKE);
    memcpy(bytes, "GET / HTTP/1", sizeof bytes);
    assert_int_equal(group_frame_decode(bytes, &read), -LH_EHANDSHAKE);
}

static void bodies(void **state)
{
    (void)state;
    const struct group_hello hello = {.rank = 3,
                                      .size = 4,
                                      .secret = true,
                                      .nonce = "0123456789abcde",
                                      .known = "edcba9876543210",
                                      .job = "SLURM_JOB_ID=17.0"};
    const struct group_challenge challenge = {
        .wait_ms = 30000, .secret = false, .nonce = "fedcba987654321", .job = "random-00"};
    struct group_hello hello_read;
    struct group_challenge challenge_read;
    uint8_t body[GROUP_SMALL_BODY_MAX];
    group_hello_encode(&hello, body);
    assert_int_equal(group_hello_decode(body, &hello_read), 0);
    assert_int_equal(hello_read.rank, 3);
    assert_int_equal(hello_read.size, 4);
    assert_true(hello_read.secret);
    assert_memory_equal(hello_read.nonce, hello.nonce, GROUP_NONCE_BYTES);
    assert_memory_equal(hello_read.known, hello.known, GROUP_NONCE_BYTES);
    assert_memory_equal(hello_read.job, hello.job, GROUP_JOB_BYTES);
    group_challenge_encode(&challenge, body);
    assert_int_equal(group_challenge_decode(body, &challenge_read), 0);
    assert_int_equal(challenge_read.wait_ms, 30000);
    assert_false(challenge_read.secret);
    assert_memory_equal(challenge_read.nonce, challenge.nonce, GROUP_NONCE_BYTES);
    assert_memory_equal(challenge_read.job, challenge.job, GROUP_JOB_BYTES);
}

static void impossible_hellos(void **state)
{
    (void)state;
    uint8_t body[GROUP_HELLO_BYTES];
    struct group_hello read;
    group_hello_encode(&(struct group_hello){.rank = 0, .size = 4}, body);
    assert_int_equal(group_hello_decode(body, &read), -LH_EHANDSHAKE);
    group_hello_encode(&(struct group_hello){.rank = 4, .size = 4}, body);
    assert_int_equal(group_hello_decode(body, &read), -LH_EHANDSHAKE);
    group_hello_encode(&(struct group_hello){.rank = 1, .size = 4}, body);
    body[11] = 2;
    assert_int_equal(group_hello_decode(body, &read), -LH_EHANDSHAKE);
}

/* The name of a job is shown to people: printable, and ended. */
static void impossible_jobs(void **state)
{
    (void)state;
    uint8_t body[GROUP_HELLO_BYTES], *job = body + GROUP_HELLO_BYTES - GROUP_JOB_BYTES;
    struct group_hello read;
    group_hello_encode(&(struct group_hello){.rank = 1, .size = 4, .job = "JOB=1"}, body);
    assert_int_equal(group_hello_decode(body, &read), 0);
    job[GROUP_JOB_BYTES - 1] = 'x'; /* behind its end */
    assert_int_equal(group_hello_decode(body, &read), -LH_EHANDSHAKE);
    memset(job, 'x', GROUP_JOB_BYTES); /* without an end */
    assert_int_equal(group_hello_decode(body, &read), -LH_EHANDSHAKE);
    memset(job, 0, GROUP_JOB_BYTES);
    job[0] = 0x1b;
    assert_int_equal(group_hello_decode(body, &read), -LH_EHANDSHAKE);
}

static void jobs_conflict(void **state)
{
    (void)state;
    assert_false(group_jobs_conflict("A=1", "A=1"));
    assert_false(group_jobs_conflict("", "A=1"));
    assert_false(group_jobs_conflict("A=1", ""));
    assert_false(group_jobs_conflict(GROUP_JOB_RANDOM "12", "A=1"));
    assert_false(group_jobs_conflict("A=1", GROUP_JOB_RANDOM "12"));
    assert_true(group_jobs_conflict("A=1", "A=2"));
    assert_true(group_jobs_conflict(GROUP_JOB_RANDOM "12", GROUP_JOB_RANDOM "13"));
}

static void reasons(void **state)
{
    (void)state;
    char reason[GROUP_REASON_MAX + 1];
    group_reason_decode((const uint8_t *)"no\x1b[2J\xff", 7, reason);
    assert_string_equal(reason, "no?[2J?");
}

static int run_group_frame(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),       cmocka_unit_test(foreign_headers),
        cmocka_unit_test(bodies),        cmocka_unit_test(impossible_hellos),
        cmocka_unit_test(reasons),       cmocka_unit_test(impossible_jobs),
        cmocka_unit_test(jobs_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test group proof ------------------------------------------------------------------------------ */

static const struct group_claim claim = {
    .rank = 2, .size = 4, .rank_nonce = "0123456789abcde", .root_nonce = "fedcba987654321"};

/* printf '%b' 'LHG rank\0\0\0\x02\0\0\0\x040123456789abcde\0fedcba987654321\0' |
 * openssl dgst -sha256 -hmac hush */
static const uint8_t group_proof_known[GROUP_PROOF_BYTES] = {
    0xa4, 0xa5, 0xaa, 0x64, 0x31, 0x69, 0xd1, 0xbb, 0x82, 0xaf, 0x46, 0x86, 0xd0, 0x0a, 0x38, 0x15,
    0x4f, 0x66, 0x5a, 0x28, 0x8a, 0x3f, 0x45, 0x44, 0x34, 0x33, 0xe2, 0xbc, 0x02, 0x4f, 0xd8, 0xca};

static void proof_is_the_hmac(void **state)
{
    (void)state;
    uint8_t proof[GROUP_PROOF_BYTES];
    assert_int_equal(group_proof_make("hush", &claim, false, proof), 0);
    assert_memory_equal(proof, group_proof_known, sizeof group_proof_known);
}

/* A proof serves for one secret, one claim, and one direction. */
static void proof_serves_once(void **state)
{
    (void)state;
    uint8_t proof[GROUP_PROOF_BYTES];
    struct group_claim other = claim;
    assert_int_equal(group_proof_make("hush", &claim, false, proof), 0);
    assert_true(group_proof_check("hush", &claim, false, proof));
    assert_false(group_proof_check("husj", &claim, false, proof));
    assert_false(group_proof_check("", &claim, false, proof));
    assert_false(group_proof_check("hush", &claim, true, proof));
    other.rank = 1;
    assert_false(group_proof_check("hush", &other, false, proof));
    other = claim;
    other.root_nonce[15] ^= 1;
    assert_false(group_proof_check("hush", &other, false, proof));
    proof[31] ^= 1;
    assert_false(group_proof_check("hush", &claim, false, proof));
}

static void without_a_secret(void **state)
{
    (void)state;
    uint8_t proof[GROUP_PROOF_BYTES];
    assert_int_equal(group_proof_make("", &claim, false, proof), 0);
    assert_true(group_proof_check("", &claim, true, proof));
}

static void nonces_differ(void **state)
{
    (void)state;
    uint8_t a[GROUP_NONCE_BYTES], b[GROUP_NONCE_BYTES];
    assert_int_equal(group_nonce(a), 0);
    assert_int_equal(group_nonce(b), 0);
    assert_memory_not_equal(a, b, sizeof a);
}

static int run_group_proof(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proof_is_the_hmac),
        cmocka_unit_test(proof_serves_once),
        cmocka_unit_test(without_a_secret),
        cmocka_unit_test(nonces_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_group_frame() + run_group_proof();
}
