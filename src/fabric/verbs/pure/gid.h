/*
 * gid.h - which of a port's addresses (GIDs) to use. Pure.
 *
 * A RoCE port has an entry for each IP address of its interface, often twice: for RoCE v1, which is no IP,
 * and v2.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_GID_H
#define LH_FABRIC_VERBS_GID_H

#include <stdbool.h>
#include <stdint.h>

struct verbs_gid {
    uint8_t bytes[16];
    uint32_t index;
    bool roce_v2;
};

/* What a GID is good for; the larger the better. */
enum verbs_gid_rank {
    VERBS_GID_USELESS = 0, /* not RoCE v2, or empty, or of no IP unicast address */
    VERBS_GID_LINK_LOCAL,
    VERBS_GID_IPV6,
    VERBS_GID_IPV4, /* on a port that has both, the one that the peer most likely has, too */
};

enum verbs_gid_rank verbs_gid_rank(const struct verbs_gid *gid);
/* 4 for an IPv4 address in IPv6 form (::ffff:192.0.2.7), else 6. */
uint32_t verbs_gid_family(const uint8_t bytes[16]);
/* Place in `gids` of the one to use, or -1. wanted_index >= 0: only that entry. family 4 or 6: only of
 * those; 0: any. Of equals the first. */
int verbs_gid_choose(const struct verbs_gid *gids, uint32_t count, int32_t wanted_index, uint32_t family);
/* The address as the connection blob has it: IPv4 in the first 4 bytes; and back. */
void verbs_gid_to_address(const uint8_t gid[16], uint8_t address[16]);
void verbs_gid_from_address(uint32_t family, const uint8_t address[16], uint8_t gid[16]);

#endif
