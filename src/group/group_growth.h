/*
 * group_growth.h - groups some of whose ranks have been in one before: which they are, by the cards of all;
 * places and numbers of newcomers; and that all have read the same cards.
 *
 * A card says of its rank: the identity of its mesh (48 bytes), its number there, the lowest number and the
 * lowest id of a group that it has not used (4 each). A newcomer has no number, and zeros.
 *
 * Connections between ranks that were in one mesh before are kept, so whoever claims another's number is sent
 * nothing: what is for that number goes where it went before. Before a group is made all compare, over these
 * connections and the new ones, a digest of what they have exchanged.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_GROWTH_H
#define LH_GROUP_GROUP_GROWTH_H

#include "group/mesh.h"

#define GROWTH_CARD_BYTES (KEYS_DIGEST_BYTES + 12u)

/* This rank's part of a card. */
void growth_write_card(const struct lh_group *group, uint8_t *part);
/* Of all cards, `stride` bytes each, with their parts at `part`: the id of the group, the places of its
 * ranks, and numbers of newcomers. -LH_EHANDSHAKE: they do not fit together; -LH_EPEER: a member has failed
 * here; -LH_ERANGE: no ids or places are left; -LH_ENOMEM, -LH_ESYSTEM. */
int growth_read_cards(struct lh_group *group, const uint8_t *cards, size_t stride, size_t part);
/* Of a member that goes on alone, by its own card. Takes the lock of the mesh. Errors as of
 * growth_read_cards(). */
int growth_alone(struct lh_group *group, const uint8_t *card, size_t bytes, size_t part);
/* All blobs, as they came. -LH_ESYSTEM. */
int growth_read_blobs(struct lh_group *group, const uint8_t *all, size_t bytes);
/* Whether ranks read the same: the identities of all. -LH_EHANDSHAKE. */
int growth_compare(const struct lh_group *group, uint8_t (*identities)[KEYS_DIGEST_BYTES]);
/* The group is made: newcomers are members, and who is in no group with them counts as failed. Under the lock
 * of the mesh. */
void growth_commit(struct lh_group *group);
/* It is not: newcomers leave, and the mesh is as before. Under the lock of the mesh. */
void growth_undo(struct lh_group *group);

#endif
