/*
 * group_security.h - keys of a group while it is made: the card of a rank carries a public key, and each link
 * gets secrets that its two ranks alone can compute (keys/pair_keys.h).
 *
 * All under the lock of the mesh, or before others know it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_SECURITY_H
#define LH_GROUP_GROUP_SECURITY_H

#include <longhaul/group.h>

#include "group/mesh.h"
#include "keys/key_file.h"
#include "keys/pair_keys.h"

/* In a card: 1, or 0 without keys: 1, zero 3, name of the key, public key of the rank. */
#define SECURITY_CARD_BYTES (4u + KEY_NAME_BYTES + PAIR_PUBLIC_BYTES)

/* Of attributes inside sites and across, NULL for none: the security of all connections of a group; NULL:
 * none. -LH_EINVAL: they differ. */
int security_of(const struct lh_attr *attr, const struct lh_attr *across,
                const struct lh_security **security);
/* Reads the key that a group is to have, for lh_group_create(). *encrypts: there is one. Errors as of
 * key_group_given(); -LH_EINVAL: what has no effect there. */
int security_read(const struct lh_group_attr *attr, struct key_group *key, bool *encrypts);
/* What a link asks lh_open() for, by the attributes of its group; NULL: nothing. Keys it has of its own. */
const struct lh_security *security_of_link(const struct lh_group_attr *attr, enum lh_encryption encryption);

/* From here on what this rank sends is encrypted. Writes its part of a card, which is complete then. key
 * stays the caller's. -LH_EUNSUPPORTED: the device does not encrypt; errors as of pair_keys_create(). */
int security_begin(struct lh_group *group, const struct key_group *key, uint8_t *card, size_t card_bytes,
                   uint8_t *part);
/* Of another rank, or as this rank's card came back. own: this rank's part, so. -LH_EHANDSHAKE: it has other
 * keys, or none. */
int security_on_card(struct lh_group *group, uint32_t rank, const uint8_t *card, size_t card_bytes,
                     const uint8_t *part, const uint8_t *own);
/* What this rank gives to another. No effect without keys. */
int security_on_blob(struct lh_group *group, uint32_t rank, const uint8_t *blob, size_t bytes);
/* Encrypts the link to a rank, by its blob, before link_attach(). No effect without keys. */
int security_link(struct lh_group *group, uint32_t rank, const uint8_t *blob, size_t bytes);
/* All links have their keys, or never will: nothing of what they were made of is left. */
void security_end(struct lh_group *group);

#endif
