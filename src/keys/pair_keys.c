/* SPDX-License-Identifier: BSD-3-Clause */
#include "keys/pair_keys.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/connection.h>

#include "base/bytes.h"
#include "base/error.h"

#define LABEL       "longhaul pair 1"
#define LABEL_BYTES (sizeof LABEL - 1)

struct peer {
    uint8_t public[PAIR_PUBLIC_BYTES];
    uint8_t card[KEYS_DIGEST_BYTES];
    uint8_t blob[KEYS_DIGEST_BYTES]; /* this rank's for it */
};

struct pair_keys {
    EVP_PKEY *own;
    uint32_t rank, size;
    uint8_t secret[KEY_SECRET_BYTES];
    struct peer peers[]; /* by rank; of this rank without a blob */
};

static int not_available(const char *what)
{
    return lh_fail(LH_ESYSTEM, "%s: not available in this system's libcrypto", what);
}

/* ---- this rank --------------------------------------------------------------------------------------- */

static bool make_key(struct pair_keys *keys)
{
    size_t bytes = PAIR_PUBLIC_BYTES;
    keys->own = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    return keys->own && EVP_PKEY_get_raw_public_key(keys->own, keys->peers[keys->rank].public, &bytes) &&
           bytes == PAIR_PUBLIC_BYTES;
}

int pair_keys_create(const uint8_t secret[KEY_SECRET_BYTES], uint32_t rank, uint32_t size,
                     struct pair_keys **made)
{
    assert(rank < size);
    struct pair_keys *keys = calloc(1, sizeof *keys + size * sizeof *keys->peers);
    if (!keys)
        return lh_fail(LH_ENOMEM, "no memory for keys of %u ranks", size);
    keys->rank = rank;
    keys->size = size;
    memcpy(keys->secret, secret, sizeof keys->secret);
    if (!make_key(keys)) {
        pair_keys_free(keys);
        return not_available("X25519");
    }
    *made = keys;
    return 0;
}

void pair_keys_free(struct pair_keys *keys)
{
    if (!keys)
        return;
    EVP_PKEY_free(keys->own); /* cleanses it */
    OPENSSL_cleanse(keys->secret, sizeof keys->secret);
    free(keys);
}

const uint8_t *pair_keys_public(const struct pair_keys *keys)
{
    return keys->peers[keys->rank].public;
}

/* ---- what is exchanged ------------------------------------------------------------------------------- */

int keys_digest(const void *data, size_t bytes, uint8_t out[KEYS_DIGEST_BYTES])
{
    unsigned length = 0;
    bool made = EVP_Digest(data, bytes, out, &length, EVP_sha384(), NULL) && length == KEYS_DIGEST_BYTES;
    return made ? 0 : not_available("SHA-384");
}

int pair_keys_set_card(struct pair_keys *keys, uint32_t rank, const uint8_t public[PAIR_PUBLIC_BYTES],
                       const void *card, size_t bytes)
{
    assert(rank < keys->size);
    if (rank != keys->rank)
        memcpy(keys->peers[rank].public, public, PAIR_PUBLIC_BYTES);
    return keys_digest(card, bytes, keys->peers[rank].card);
}

int pair_keys_set_blob(struct pair_keys *keys, uint32_t rank, const void *blob, size_t bytes)
{
    assert(rank < keys->size);
    return keys_digest(blob, bytes, keys->peers[rank].blob);
}

/* ---- secrets ----------------------------------------------------------------------------------------- */

static bool agree(EVP_PKEY *own, const uint8_t public[PAIR_PUBLIC_BYTES], uint8_t shared[PAIR_SECRET_BYTES])
{
    size_t bytes = PAIR_SECRET_BYTES;
    EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public, PAIR_PUBLIC_BYTES);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(own, NULL);
    /* OpenSSL refuses a result of zeros, as of a public key of small order. */
    bool agreed = other && context && EVP_PKEY_derive_init(context) > 0 &&
                  EVP_PKEY_derive_set_peer(context, other) > 0 &&
                  EVP_PKEY_derive(context, shared, &bytes) > 0 && bytes == PAIR_SECRET_BYTES;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(other);
    return agreed;
}

static bool mac(const uint8_t key[KEY_SECRET_BYTES], const void *data, size_t bytes,
                uint8_t out[KEYS_DIGEST_BYTES])
{
    unsigned length = 0;
    static_assert(KEY_SECRET_BYTES == KEYS_DIGEST_BYTES, "keys are what HMAC gives");
    return HMAC(EVP_sha384(), key, KEY_SECRET_BYTES, data, bytes, out, &length) &&
           length == KEYS_DIGEST_BYTES;
}

/* What both have exchanged, the lower rank's first. */
static int transcript(const struct pair_keys *keys, uint32_t rank, const uint8_t blob[KEYS_DIGEST_BYTES],
                      uint8_t out[KEYS_DIGEST_BYTES])
{
    uint8_t text[8 + 4 * KEYS_DIGEST_BYTES];
    bool first = keys->rank < rank;
    const struct peer *peer = &keys->peers[rank];
    const uint8_t *parts[] = {keys->peers[keys->rank].card, peer->card, peer->blob, blob};
    lh_put_be32(text, first ? keys->rank : rank);
    lh_put_be32(text + 4, first ? rank : keys->rank);
    for (unsigned part = 0; part < 4; part++)
        memcpy(text + 8 + part * KEYS_DIGEST_BYTES, parts[first ? part : part ^ 1], KEYS_DIGEST_BYTES);
    return keys_digest(text, sizeof text, out);
}

int pair_keys_derive(const struct pair_keys *keys, uint32_t rank, const void *blob, size_t bytes,
                     uint8_t (*secrets)[PAIR_SECRET_BYTES], uint8_t count)
{
    uint8_t shared[PAIR_SECRET_BYTES], prk[KEYS_DIGEST_BYTES], out[KEYS_DIGEST_BYTES];
    uint8_t theirs[KEYS_DIGEST_BYTES], info[LABEL_BYTES + 1 + KEYS_DIGEST_BYTES + 1];
    assert(rank < keys->size && rank != keys->rank);
    int error = keys_digest(blob, bytes, theirs);
    memcpy(info, LABEL, LABEL_BYTES);
    info[sizeof info - 1] = 1;
    if (!error)
        error = transcript(keys, rank, theirs, info + LABEL_BYTES + 1);
    if (!error && !agree(keys->own, keys->peers[rank].public, shared))
        error = lh_fail(LH_EHANDSHAKE, "group: rank %u has given no public key of X25519", rank);
    if (!error && !mac(keys->secret, shared, sizeof shared, prk))
        error = not_available("HMAC-SHA-384");
    for (uint8_t lane = 0; lane < count && !error; lane++) {
        info[LABEL_BYTES] = lane;
        if (mac(prk, info, sizeof info, out))
            memcpy(secrets[lane], out, PAIR_SECRET_BYTES);
        else
            error = not_available("HMAC-SHA-384");
    }
    OPENSSL_cleanse(shared, sizeof shared);
    OPENSSL_cleanse(prk, sizeof prk);
    OPENSSL_cleanse(out, sizeof out);
    return error;
}

/* ---- two sides --------------------------------------------------------------------------------------- */

struct blob_key {
    struct pair_keys *pairs; /* NULL: it has met the other side */
    uint8_t part[BLOB_KEY_BYTES];
    size_t bytes;
    uint8_t blob[LH_BLOB_MAX];
};

int blob_key_create(const struct key_group *group, struct blob_key **made)
{
    struct blob_key *key = calloc(1, sizeof *key);
    if (!key)
        return lh_fail(LH_ENOMEM, "no memory for a key");
    int error = pair_keys_create(group->pairs, 0, 2, &key->pairs);
    if (error) {
        free(key);
        return error;
    }
    memcpy(key->part, group->name, KEY_NAME_BYTES);
    memcpy(key->part + KEY_NAME_BYTES, pair_keys_public(key->pairs), PAIR_PUBLIC_BYTES);
    *made = key;
    return 0;
}

void blob_key_free(struct blob_key *key)
{
    if (key)
        pair_keys_free(key->pairs);
    free(key);
}

const uint8_t *blob_key_part(const struct blob_key *key)
{
    return key->part;
}

const uint8_t *blob_key_given(const struct blob_key *key, size_t *bytes)
{
    *bytes = key->bytes;
    return key->blob;
}

int blob_key_give(struct blob_key *key, const void *blob, size_t bytes)
{
    assert(key->bytes == 0 && bytes <= sizeof key->blob);
    int error = pair_keys_set_card(key->pairs, key->pairs->rank, pair_keys_public(key->pairs), blob, bytes);
    if (!error)
        error = pair_keys_set_blob(key->pairs, !key->pairs->rank, blob, bytes);
    if (error)
        return error;
    memcpy(key->blob, blob, bytes);
    key->bytes = bytes;
    return 0;
}

/* Makes the side with the greater public key rank 1, and returns this one's. */
static int settle_rank(struct pair_keys *keys, const uint8_t public[PAIR_PUBLIC_BYTES])
{
    int order = memcmp(pair_keys_public(keys), public, PAIR_PUBLIC_BYTES);
    uint32_t rank = order > 0;
    if (order == 0)
        return lh_fail(LH_EHANDSHAKE, "the peer's public key is this side's own: its blob was reflected");
    if (rank != keys->rank) {
        struct peer other = keys->peers[1];
        keys->peers[1] = keys->peers[0];
        keys->peers[0] = other;
        keys->rank = rank;
    }
    return (int)rank;
}

int blob_key_meet(struct blob_key *key, const void *blob, size_t bytes, uint8_t secret[PAIR_SECRET_BYTES])
{
    const uint8_t *part = (const uint8_t *)blob + bytes - BLOB_KEY_BYTES, *public = part + KEY_NAME_BYTES;
    uint8_t secrets[1][PAIR_SECRET_BYTES];
    assert(key->pairs && key->bytes > 0 && bytes >= BLOB_KEY_BYTES);
    if (memcmp(part, key->part, KEY_NAME_BYTES) != 0)
        return lh_fail(LH_EHANDSHAKE, "the peer has another key (use the same one at both sides)");
    int rank = settle_rank(key->pairs, public);
    if (rank < 0)
        return rank;
    uint32_t other = rank == 0;
    int error = pair_keys_set_card(key->pairs, other, public, blob, bytes);
    if (!error)
        error = pair_keys_derive(key->pairs, other, blob, bytes, secrets, 1);
    if (error)
        return error;
    memcpy(secret, secrets[0], PAIR_SECRET_BYTES);
    OPENSSL_cleanse(secrets, sizeof secrets);
    pair_keys_free(key->pairs);
    key->pairs = NULL;
    return rank;
}

bool blob_key_has_met(const struct blob_key *key)
{
    return !key->pairs;
}
