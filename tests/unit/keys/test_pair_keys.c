/*
 * test_pair_keys.c - secrets of pairs: the same at both, and what OpenSSL's HKDF makes of the same; others
 * for each change, each lane, each pair and each creation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "keys/pair_keys.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"

#define SIZE      5u
#define LANES     3u
#define CREATIONS 20u

static const uint8_t group_secret[KEY_SECRET_BYTES] = "of all ranks, and of nobody else";

/* What a rank gives, and what is changed of it on the way. */
struct given {
    const char *card, *blob;
};

static struct pair_keys *create(uint32_t rank)
{
    struct pair_keys *keys;
    assert_int_equal(pair_keys_create(group_secret, rank, SIZE, &keys), 0);
    return keys;
}

static void give_own(struct pair_keys *keys, uint32_t rank, uint32_t peer, struct given own)
{
    assert_int_equal(pair_keys_set_card(keys, rank, NULL, own.card, strlen(own.card)), 0);
    assert_int_equal(pair_keys_set_blob(keys, peer, own.blob, strlen(own.blob)), 0);
}

static int derive(struct pair_keys *keys, uint32_t peer, const uint8_t *public, struct given theirs,
                  uint8_t secrets[LANES][PAIR_SECRET_BYTES])
{
    assert_int_equal(pair_keys_set_card(keys, peer, public, theirs.card, strlen(theirs.card)), 0);
    return pair_keys_derive(keys, peer, theirs.blob, strlen(theirs.blob), secrets, LANES);
}

/* Whether ranks 1 and 3 have the same secrets, if 3 gets `come` in place of what 1 gave. */
static bool agree(struct given gave, struct given come)
{
    static const struct given other = {"card 3", "blob 3"};
    uint8_t one[LANES][PAIR_SECRET_BYTES], two[LANES][PAIR_SECRET_BYTES];
    struct pair_keys *a = create(1), *b = create(3);
    give_own(a, 1, 3, gave);
    give_own(b, 3, 1, other);
    assert_int_equal(derive(a, 3, pair_keys_public(b), other, one), 0);
    assert_int_equal(derive(b, 1, pair_keys_public(a), come, two), 0);
    bool same = memcmp(one, two, sizeof one) == 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        assert_true(same == (memcmp(one[lane], two[lane], PAIR_SECRET_BYTES) == 0));
    assert_memory_not_equal(one[0], one[1], PAIR_SECRET_BYTES);
    assert_memory_not_equal(one[1], one[2], PAIR_SECRET_BYTES);
    pair_keys_free(a);
    pair_keys_free(b);
    return same;
}

static void both_have_the_same(void **state)
{
    (void)state;
    assert_true(agree((struct given){"card 1", "blob 1"}, (struct given){"card 1", "blob 1"}));
    assert_false(agree((struct given){"card 1", "blob 1"}, (struct given){"card 2", "blob 1"}));
    assert_false(agree((struct given){"card 1", "blob 1"}, (struct given){"card 1", "blob 2"}));
    assert_false(agree((struct given){"card 1", "blob 1"}, (struct given){"card 1", "blob 1 and more"}));
    assert_false(agree((struct given){"card 1", "blob 1"}, (struct given){"blob 1", "card 1"}));
}

/* ---- OpenSSL's HKDF ---------------------------------------------------------------------------------- */

static void put_digest(uint8_t *out, const char *text)
{
    assert_int_equal(EVP_Digest(text, strlen(text), out, NULL, EVP_sha384(), NULL), 1);
}

static void hkdf(const uint8_t *shared, const uint8_t *info, int info_bytes, uint8_t out[PAIR_SECRET_BYTES])
{
    size_t bytes = PAIR_SECRET_BYTES;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    assert_true(EVP_PKEY_derive_init(context) > 0);
    assert_true(EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha384()) > 0);
    assert_true(EVP_PKEY_CTX_set1_hkdf_salt(context, group_secret, KEY_SECRET_BYTES) > 0);
    assert_true(EVP_PKEY_CTX_set1_hkdf_key(context, shared, PAIR_SECRET_BYTES) > 0);
    assert_true(EVP_PKEY_CTX_add1_hkdf_info(context, info, info_bytes) > 0);
    assert_true(EVP_PKEY_derive(context, out, &bytes) > 0);
    EVP_PKEY_CTX_free(context);
}

/* The test is rank 2: what docs/wire.md says, and OpenSSL computes. */
static void secrets_are_hkdf(void **state)
{
    (void)state;
    struct pair_keys *keys = create(4);
    uint8_t secrets[LANES][PAIR_SECRET_BYTES], expected[PAIR_SECRET_BYTES], shared[PAIR_SECRET_BYTES];
    uint8_t public[PAIR_PUBLIC_BYTES], transcript[8 + 4 * 48], info[15 + 1 + 48];
    size_t bytes = sizeof public, shared_bytes = sizeof shared;
    EVP_PKEY *own = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    EVP_PKEY *theirs =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, pair_keys_public(keys), PAIR_PUBLIC_BYTES);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(own, NULL);
    assert_int_equal(EVP_PKEY_get_raw_public_key(own, public, &bytes), 1);
    assert_true(EVP_PKEY_derive_init(context) > 0 && EVP_PKEY_derive_set_peer(context, theirs) > 0 &&
                EVP_PKEY_derive(context, shared, &shared_bytes) > 0);
    give_own(keys, 4, 2, (struct given){"card 4", "from 4 to 2"});
    assert_int_equal(derive(keys, 2, public, (struct given){"card 2", "from 2 to 4"}, secrets), 0);
    lh_put_be32(transcript, 2);
    lh_put_be32(transcript + 4, 4);
    put_digest(transcript + 8, "card 2");
    put_digest(transcript + 56, "card 4");
    put_digest(transcript + 104, "from 2 to 4");
    put_digest(transcript + 152, "from 4 to 2");
    memcpy(info, "longhaul pair 1", 15);
    assert_int_equal(EVP_Digest(transcript, sizeof transcript, info + 16, NULL, EVP_sha384(), NULL), 1);
    for (uint8_t lane = 0; lane < LANES; lane++) {
        info[15] = lane;
        hkdf(shared, info, sizeof info, expected);
        assert_memory_equal(secrets[lane], expected, sizeof expected);
    }
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(own);
    EVP_PKEY_free(theirs);
    pair_keys_free(keys);
}

/* ---- what must differ -------------------------------------------------------------------------------- */

static uint8_t ledger[CREATIONS * SIZE * SIZE * LANES][PAIR_SECRET_BYTES];
static size_t in_ledger;

static void add_all(struct pair_keys *const keys[SIZE], uint32_t rank)
{
    uint8_t secrets[LANES][PAIR_SECRET_BYTES];
    for (uint32_t peer = 0; peer < rank; peer++) {
        assert_int_equal(derive(keys[rank], peer, pair_keys_public(keys[peer]),
                                (struct given){"the same card", "the same blob"}, secrets),
                         0);
        for (unsigned lane = 0; lane < LANES; lane++)
            memcpy(ledger[in_ledger++], secrets[lane], PAIR_SECRET_BYTES);
    }
}

/* Groups of the same key, ranks, cards and blobs, made again and again. */
static void no_secret_twice(void **state)
{
    (void)state;
    struct pair_keys *keys[SIZE];
    for (unsigned creation = 0; creation < CREATIONS; creation++) {
        for (uint32_t rank = 0; rank < SIZE; rank++) {
            keys[rank] = create(rank);
            for (uint32_t peer = 0; peer < SIZE; peer++)
                give_own(keys[rank], rank, peer, (struct given){"the same card", "the same blob"});
        }
        for (uint32_t rank = 1; rank < SIZE; rank++)
            add_all(keys, rank);
        for (uint32_t rank = 0; rank < SIZE; rank++)
            pair_keys_free(keys[rank]);
    }
    assert_int_equal(in_ledger, CREATIONS * LANES * SIZE * (SIZE - 1) / 2);
    for (size_t i = 0; i < in_ledger; i++)
        for (size_t other = 0; other < i; other++)
            assert_memory_not_equal(ledger[i], ledger[other], PAIR_SECRET_BYTES);
}

/* Who has the private keys, and not the group's secret, has other secrets. */
static void another_group_secret(void **state)
{
    (void)state;
    static const uint8_t other_secret[KEY_SECRET_BYTES] = "of a host on the path";
    const struct given same = {"card", "blob"};
    uint8_t one[LANES][PAIR_SECRET_BYTES], two[LANES][PAIR_SECRET_BYTES];
    struct pair_keys *a = create(0), *b;
    assert_int_equal(pair_keys_create(other_secret, 1, SIZE, &b), 0);
    give_own(a, 0, 1, same);
    give_own(b, 1, 0, same);
    assert_int_equal(derive(a, 1, pair_keys_public(b), same, one), 0);
    assert_int_equal(derive(b, 0, pair_keys_public(a), same, two), 0);
    assert_memory_not_equal(one, two, sizeof one);
    pair_keys_free(a);
    pair_keys_free(b);
    pair_keys_free(NULL);
}

/* Of small order: the result would be known to all. */
static void public_keys_that_are_none(void **state)
{
    (void)state;
    uint8_t secrets[LANES][PAIR_SECRET_BYTES], public[PAIR_PUBLIC_BYTES] = {0};
    struct pair_keys *keys = create(0);
    give_own(keys, 0, 2, (struct given){"card", "blob"});
    for (uint8_t first = 0; first < 2; first++) {
        public[0] = first;
        assert_int_equal(derive(keys, 2, public, (struct given){"card", "blob"}, secrets), -LH_EHANDSHAKE);
        assert_non_null(strstr(lh_last_error(), "rank 2 has given no public key"));
    }
    pair_keys_free(keys);
}

/* ---- two sides --------------------------------------------------------------------------------------- */

#define BLOB_BYTES 100u

static struct blob_key *create_side(const struct key_group *group, uint8_t blob[BLOB_BYTES])
{
    struct blob_key *key;
    size_t bytes;
    assert_int_equal(blob_key_create(group, &key), 0);
    memset(blob, 1, BLOB_BYTES);
    memcpy(blob + BLOB_BYTES - BLOB_KEY_BYTES, blob_key_part(key), BLOB_KEY_BYTES);
    blob_key_given(key, &bytes);
    assert_int_equal(bytes, 0);
    assert_int_equal(blob_key_give(key, blob, BLOB_BYTES), 0);
    assert_memory_equal(blob_key_given(key, &bytes), blob, BLOB_BYTES);
    assert_int_equal(bytes, BLOB_BYTES);
    return key;
}

static void sides_without_ranks(void **state)
{
    (void)state;
    struct key_group group = {.name = "of the key"};
    memcpy(group.pairs, group_secret, sizeof group.pairs);
    for (unsigned i = 0; i < CREATIONS; i++) {
        uint8_t blob_a[BLOB_BYTES], blob_b[BLOB_BYTES], wrong[BLOB_BYTES];
        uint8_t one[PAIR_SECRET_BYTES], two[PAIR_SECRET_BYTES];
        struct blob_key *a = create_side(&group, blob_a), *b = create_side(&group, blob_b);
        assert_int_equal(blob_key_meet(a, blob_a, BLOB_BYTES, one), -LH_EHANDSHAKE); /* reflected */
        for (uint8_t fill = 0; fill < 2; fill++) { /* below and above its own; no point of the curve */
            memcpy(wrong, blob_b, sizeof wrong);
            memset(wrong + BLOB_BYTES - PAIR_PUBLIC_BYTES, 0, PAIR_PUBLIC_BYTES);
            wrong[BLOB_BYTES - PAIR_PUBLIC_BYTES] = fill;
            assert_int_equal(blob_key_meet(a, wrong, BLOB_BYTES, one), -LH_EHANDSHAKE);
        }
        memcpy(wrong, blob_b, sizeof wrong);
        wrong[BLOB_BYTES - BLOB_KEY_BYTES] ^= 1; /* another key */
        assert_int_equal(blob_key_meet(a, wrong, BLOB_BYTES, one), -LH_EHANDSHAKE);
        assert_false(blob_key_has_met(a));
        int rank = blob_key_meet(a, blob_b, BLOB_BYTES, one);
        assert_int_equal(rank, memcmp(blob_a + BLOB_BYTES - PAIR_PUBLIC_BYTES,
                                      blob_b + BLOB_BYTES - PAIR_PUBLIC_BYTES, PAIR_PUBLIC_BYTES) > 0);
        assert_true(blob_key_has_met(a));
        assert_int_equal(blob_key_meet(b, blob_a, BLOB_BYTES, two), !rank);
        assert_memory_equal(one, two, sizeof one);
        blob_key_free(a);
        blob_key_free(b);
    }
}

/* One blob that many sides attach to, and copies of it whose public key differs in the bit that X25519 does
 * not read: no two of them have the same secret, nor has a side that gets its own blob back in that way. */
static void one_blob_for_many_sides(void **state)
{
    (void)state;
    uint8_t blob[BLOB_BYTES], copy[BLOB_BYTES], own[BLOB_BYTES], secrets[3 * CREATIONS][PAIR_SECRET_BYTES];
    struct key_group group = {.name = "of the key"};
    unsigned count = 0;
    memcpy(group.pairs, group_secret, sizeof group.pairs);
    struct blob_key *side = create_side(&group, blob);
    memcpy(copy, blob, sizeof copy);
    copy[BLOB_BYTES - 1] ^= 0x80;
    for (unsigned i = 0; i < CREATIONS; i++) {
        for (unsigned how = 0; how < 3; how++) {
            struct blob_key *other = create_side(&group, own);
            own[BLOB_BYTES - 1] ^= 0x80;
            const uint8_t *given = how == 0 ? blob : how == 1 ? copy : own;
            assert_true(blob_key_meet(other, given, BLOB_BYTES, secrets[count++]) >= 0);
            blob_key_free(other);
        }
    }
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(secrets[i], secrets[k], PAIR_SECRET_BYTES);
    blob_key_free(side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_have_the_same),      cmocka_unit_test(sides_without_ranks),
        cmocka_unit_test(secrets_are_hkdf),        cmocka_unit_test(no_secret_twice),
        cmocka_unit_test(another_group_secret),    cmocka_unit_test(public_keys_that_are_none),
        cmocka_unit_test(one_blob_for_many_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
