/*
 * create.h - makes a group, in the steps between which its ranks exchange blobs: for lh_group_create(), and
 * for tests that have all ranks in one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_CREATE_H
#define LH_GROUP_CREATE_H

#include "group/mesh.h"

#define CREATE_CARD_BYTES (20 + LH_GROUP_SITE_MAX)

/* A group without links, and its card for all others: CREATE_CARD_BYTES. */
int create_group(const struct lh_group_attr *attr, struct lh_group **group, uint8_t *card);
/* Opens links, by the cards of all ranks. *blob_bytes: the longest blob for a peer. */
int create_links(struct lh_group *group, const struct lh_group_attr *attr, const uint8_t *cards,
                 uint32_t *blob_bytes);
/* Writes the blobs for all ranks, one every `stride` bytes, with their lengths ahead (4 bytes). */
int create_blobs(struct lh_group *group, uint8_t *blobs, size_t stride);
/* Attaches the links: all ranks' blobs, rank by rank, and begins. */
int create_attach(struct lh_group *group, const uint8_t *all, size_t stride);
/* A group of a mesh, with places for its members; NULL: no memory. And its end. */
struct lh_group *create_member(struct mesh *mesh, uint32_t size);
void create_remove(struct lh_group *group);
/* Ends a group, and, with the last of a mesh, closes the links. */
void create_undo(struct lh_group *group);

#endif
