/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group/group_proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct group_claim claim = {
    .rank = 2, .size = 4, .rank_nonce = "0123456789abcde", .root_nonce = "fedcba987654321"};

/* printf '%b' 'LHG rank\0\0\0\x02\0\0\0\x040123456789abcde\0fedcba987654321\0' |
 * openssl dgst -sha256 -hmac hush */
static const uint8_t known[GROUP_PROOF_BYTES] = {
    0xa4, 0xa5, 0xaa, 0x64, 0x31, 0x69, 0xd1, 0xbb, 0x82, 0xaf, 0x46, 0x86, 0xd0, 0x0a, 0x38, 0x15,
    0x4f, 0x66, 0x5a, 0x28, 0x8a, 0x3f, 0x45, 0x44, 0x34, 0x33, 0xe2, 0xbc, 0x02, 0x4f, 0xd8, 0xca};

static void proof_is_the_hmac(void **state)
{
    (void)state;
    uint8_t proof[GROUP_PROOF_BYTES];
    assert_int_equal(group_proof_make("hush", &claim, false, proof), 0);
    assert_memory_equal(proof, known, sizeof known);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proof_is_the_hmac),
        cmocka_unit_test(proof_serves_once),
        cmocka_unit_test(without_a_secret),
        cmocka_unit_test(nonces_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
