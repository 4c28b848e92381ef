/*
 * pair_keys.h - the secrets of pairs of ranks: each rank makes a key pair of X25519 (RFC 7748) for a group.
 * All exchange cards, with the public keys and whatever else they are to agree on, and blobs, which they give
 * each other to connect. Each computes the secrets that it has with the others, without a handshake for each.
 *
 *   Z       X25519 of this rank's private and the other's public key
 *   PRK     HMAC-SHA-384, key: the group's secret, of Z                         (HKDF-Extract, RFC 5869)
 *   T       SHA-384 of both ranks (4 bytes each, big-endian), of SHA-384 of both cards, and of SHA-384 of
 *           both blobs: of each the lower rank's first
 *   secret  the first 32 bytes of HMAC-SHA-384, key: PRK, of "longhaul pair 1", lane 1, T, and a byte 1
 *                                                                               (HKDF-Expand)
 *
 * So who lacks the group's secret, or gets any of that changed, has another secret; and who gets to
 * know the group's secret later has none, as private keys end with the creation of the group. Each
 * creation has key pairs of its own, so no two have the same secrets, whatever else is the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_KEYS_PAIR_KEYS_H
#define LH_KEYS_PAIR_KEYS_H

#include <longhaul/types.h>

#include "keys/key_file.h"

#define PAIR_PUBLIC_BYTES 32u
#define PAIR_SECRET_BYTES 32u

#define KEYS_DIGEST_BYTES 48u

struct pair_keys;

/* SHA-384. -LH_ESYSTEM: not in this system's libcrypto. */
int keys_digest(const void *data, size_t bytes, uint8_t out[KEYS_DIGEST_BYTES]);
/* For a rank of a group of `size`. -LH_ENOMEM; -LH_ESYSTEM: no X25519 in this system's libcrypto. */
int pair_keys_create(const uint8_t secret[KEY_SECRET_BYTES], uint32_t rank, uint32_t size,
                     struct pair_keys **keys);
/* Leaves nothing in memory; NULL is fine. */
void pair_keys_free(struct pair_keys *keys);
/* What the others get of this rank. */
const uint8_t *pair_keys_public(const struct pair_keys *keys);
/* The card of a rank, with its public key in it; of this rank as it gave it, whatever came back. -LH_ESYSTEM.
 */
int pair_keys_set_card(struct pair_keys *keys, uint32_t rank, const uint8_t public[PAIR_PUBLIC_BYTES],
                       const void *card, size_t bytes);
/* The blob that this rank gives to another: it counts as it was when that was called last. -LH_ESYSTEM. */
int pair_keys_set_blob(struct pair_keys *keys, uint32_t rank, const void *blob, size_t bytes);
/* With the blob that the other has given to this rank: secrets of `count` lanes. -LH_EHANDSHAKE: its public
 * key is none; -LH_ESYSTEM. */
int pair_keys_derive(const struct pair_keys *keys, uint32_t rank, const void *blob, size_t bytes,
                     uint8_t (*secrets)[PAIR_SECRET_BYTES], uint8_t count);
/* ---- two sides --------------------------------------------------------------------------------------- */

/*
 * The key of one of two sides that give each other blobs, and have no ranks: they are a group of two, in
 * which the side with the smaller public key is rank 0; card and blob of each are its blob. A blob ends with
 * the name of the key, and the public key.
 */
struct blob_key;
#define BLOB_KEY_BYTES (KEY_NAME_BYTES + PAIR_PUBLIC_BYTES)

/* Errors as of pair_keys_create(). */
int blob_key_create(const struct key_group *group, struct blob_key **key);
/* Leaves nothing in memory; NULL is fine. */
void blob_key_free(struct blob_key *key);
/* What this side's blob ends with. */
const uint8_t *blob_key_part(const struct blob_key *key);
/* This side's blob as it was given first: the secret is made of it. bytes: 0: it was not given yet. */
const uint8_t *blob_key_given(const struct blob_key *key, size_t *bytes);
/* Gives it, once, LH_BLOB_MAX bytes at most. -LH_ESYSTEM. */
int blob_key_give(struct blob_key *key, const void *blob, size_t bytes);
/* By the other's blob, with its part at the end, after this side has given its own: the secret of both, once.
 * Returns this side's rank. -LH_EHANDSHAKE: the other has another key, this side's own blob, or no public
 * key; then another blob may come. -LH_ESYSTEM. */
int blob_key_meet(struct blob_key *key, const void *blob, size_t bytes, uint8_t secret[PAIR_SECRET_BYTES]);
/* Whether it has. */
bool blob_key_has_met(const struct blob_key *key);

#endif
