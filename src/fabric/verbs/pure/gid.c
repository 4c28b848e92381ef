/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/gid.h"

#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

uint32_t verbs_gid_family(const uint8_t bytes[16])
{
    return memcmp(bytes, mapped, sizeof mapped) == 0 ? 4 : 6;
}

enum verbs_gid_rank verbs_gid_rank(const struct verbs_gid *gid)
{
    static const uint8_t zero[16];
    const uint8_t *b = gid->bytes;
    if (!gid->roce_v2 || memcmp(b, zero, 15) == 0) /* all zero, or ::1 */
        return VERBS_GID_USELESS;
    if (verbs_gid_family(b) == 4) {
        if (b[12] == 0 || b[12] == 127 || b[12] >= 224)
            return VERBS_GID_USELESS;
        return b[12] == 169 && b[13] == 254 ? VERBS_GID_LINK_LOCAL : VERBS_GID_IPV4;
    }
    if (b[0] == 0xFF)
        return VERBS_GID_USELESS; /* a group */
    return b[0] == 0xFE && (b[1] & 0xC0) == 0x80 ? VERBS_GID_LINK_LOCAL : VERBS_GID_IPV6;
}

int verbs_gid_choose(const struct verbs_gid *gids, uint32_t count, int32_t wanted_index, uint32_t family)
{
    int best = -1;
    enum verbs_gid_rank best_rank = VERBS_GID_USELESS;
    for (uint32_t i = 0; i < count; i++) {
        if (wanted_index >= 0 && gids[i].index != (uint32_t)wanted_index)
            continue;
        if (family != 0 && verbs_gid_family(gids[i].bytes) != family)
            continue;
        enum verbs_gid_rank rank = verbs_gid_rank(&gids[i]);
        if (rank > best_rank) {
            best = (int)i;
            best_rank = rank;
        }
    }
    return best;
}

void verbs_gid_to_address(const uint8_t gid[16], uint8_t address[16])
{
    if (verbs_gid_family(gid) == 6) {
        memcpy(address, gid, 16);
        return;
    }
    memset(address, 0, 16);
    memcpy(address, gid + 12, 4);
}

void verbs_gid_from_address(uint32_t family, const uint8_t address[16], uint8_t gid[16])
{
    if (family == 6) {
        memcpy(gid, address, 16);
        return;
    }
    memcpy(gid, mapped, sizeof mapped);
    memcpy(gid + 12, address, 4);
}
