/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group_growth.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include <longhaul/queue.h>

#include "base/bytes.h"
#include "base/error.h"
#include "message/completion_queue.h"

#define NUMBER_AT      KEYS_DIGEST_BYTES
#define NEXT_NUMBER_AT (NUMBER_AT + 4)
#define NEXT_GROUP_AT  (NUMBER_AT + 8)
#define NEWCOMER       UINT32_MAX
/* A member may be so many numbers ahead, of groups that were not made. More is a lie, which would use them
 * up. */
#define NUMBERS_AHEAD_MAX (1u << 16)

/* ---- cards ------------------------------------------------------------------------------------------- */

void growth_write_card(const struct lh_group *group, uint8_t *part)
{
    const struct mesh *mesh = group->mesh;
    memset(part, 0, GROWTH_CARD_BYTES);
    lh_put_be32(part + NUMBER_AT, group->kept ? mesh->number : NEWCOMER);
    if (!group->kept)
        return;
    memcpy(part, mesh->identity, KEYS_DIGEST_BYTES);
    lh_put_be32(part + NEXT_NUMBER_AT, mesh->next_number);
    lh_put_be32(part + NEXT_GROUP_AT, mesh->next_group);
}

/* What the cards say, once they have been checked. */
struct lineage {
    uint32_t numbers[LH_GROUP_RANKS_MAX]; /* by rank; NEWCOMER */
    uint32_t members;
    uint32_t next_number; /* the highest */
    uint32_t next_group;
};

static int check_member(const struct lh_group *group, uint32_t rank, const uint8_t *part,
                        const uint8_t *first, uint32_t first_rank)
{
    struct mesh *mesh = group->mesh;
    uint32_t number = lh_get_be32(part + NUMBER_AT), next = lh_get_be32(part + NEXT_NUMBER_AT);
    uint32_t own_next = group->kept ? mesh->next_number : number;
    if (memcmp(part, first, KEYS_DIGEST_BYTES) != 0 ||
        (group->kept && memcmp(part, mesh->identity, KEYS_DIGEST_BYTES) != 0))
        return lh_fail(
            LH_EHANDSHAKE,
            "group: ranks %u and %u have been in different groups (let those of one of them join "
            "as newcomers)",
            group->kept ? group->members.rank : first_rank, rank);
    if (number >= next || (group->kept && next > own_next && next - own_next > NUMBERS_AHEAD_MAX) ||
        next > UINT32_MAX - NUMBERS_AHEAD_MAX || lh_get_be32(part + NEXT_GROUP_AT) > 1u << TAG_GROUP_BITS)
        return lh_fail(LH_EHANDSHAKE, "group: malformed card of rank %u (use one release)", rank);
    if (!group->kept || rank == group->members.rank)
        return 0;
    const struct link *link = mesh_find_number(mesh, number);
    if (!link || link->error || link->joins)
        return lh_fail(LH_EPEER,
                       "group: rank %u is a member that has failed for rank %u (let it join as a newcomer)",
                       rank, group->members.rank);
    return 0;
}

static int check_own(const struct lh_group *group, uint32_t number)
{
    if (number == (group->kept ? group->mesh->number : NEWCOMER))
        return 0;
    return lh_fail(LH_EHANDSHAKE,
                   "group: the exchange has changed the card of rank %u (it must return all "
                   "cards as they are, in the order of ranks)",
                   group->members.rank);
}

static int read_lineage(const struct lh_group *group, const uint8_t *parts, size_t stride,
                        struct lineage *lineage)
{
    uint32_t first = 0;
    *lineage = (struct lineage){.members = 0};
    for (uint32_t r = 0; r < group->members.size; r++) {
        const uint8_t *part = parts + r * stride;
        uint32_t number = lineage->numbers[r] = lh_get_be32(part + NUMBER_AT);
        int error = r == group->members.rank ? check_own(group, number) : 0;
        if (!error && number != NEWCOMER) {
            first = lineage->members++ ? first : r;
            error = check_member(group, r, part, parts + first * stride, first);
        }
        for (uint32_t other = 0; other < r && number != NEWCOMER && !error; other++)
            if (lineage->numbers[other] == number)
                error = lh_fail(LH_EHANDSHAKE, "group: ranks %u and %u are the same member", other, r);
        if (error)
            return error;
        if (number == NEWCOMER)
            continue;
        if (lineage->next_number < lh_get_be32(part + NEXT_NUMBER_AT))
            lineage->next_number = lh_get_be32(part + NEXT_NUMBER_AT);
        if (lineage->next_group < lh_get_be32(part + NEXT_GROUP_AT))
            lineage->next_group = lh_get_be32(part + NEXT_GROUP_AT);
    }
    return 0;
}

/* ---- places ------------------------------------------------------------------------------------------ */

/* A mesh of its own has the ranks of its first group in their order. */
static int find_place(const struct lh_group *group, uint32_t rank, uint32_t *place)
{
    struct mesh *mesh = group->mesh;
    *place = rank;
    if (!group->kept)
        return 0;
    for (*place = 0; *place < mesh->size; ++*place)
        if (*place != mesh->rank && mesh->links[*place].vacant)
            return 0;
    if (mesh->size == MESH_PLACES_MAX)
        return lh_fail(LH_ERANGE,
                       "group: %u ranks have gone, and groups still name them (destroy older groups)",
                       MESH_PLACES_MAX - group->members.size);
    mesh->size++;
    return 0;
}

static int place_newcomer(struct lh_group *group, uint32_t rank, uint32_t number)
{
    uint32_t place;
    int error = find_place(group, rank, &place);
    if (error)
        return error;
    group->members.of_mesh[rank] = place;
    group->mesh->links[place] = (struct link){.rank = place, .number = number, .joins = group->kept};
    return 0;
}

static int place_all(struct lh_group *group, const struct lineage *lineage)
{
    struct mesh *mesh = group->mesh;
    uint32_t next = lineage->next_number;
    for (uint32_t r = 0; r < group->members.size; r++) {
        uint32_t number = lineage->numbers[r] == NEWCOMER ? next++ : lineage->numbers[r];
        int error = 0;
        if (r == group->members.rank)
            mesh->number = number;
        else if (group->kept && lineage->numbers[r] != NEWCOMER)
            group->members.of_mesh[r] = mesh_find_number(mesh, number)->rank;
        else
            error = place_newcomer(group, r, number);
        if (error)
            return error;
    }
    mesh->next_number = next;
    return completion_ring_enlarge(
        &mesh->queue->ring, 16 + mesh->size * link_queue_places(mesh->bounded[0] || mesh->bounded[1]));
}

int growth_read_cards(struct lh_group *group, const uint8_t *cards, size_t stride, size_t part)
{
    struct lineage lineage;
    int error = read_lineage(group, cards + part, stride, &lineage);
    if (!error && group->kept && lineage.next_group < group->mesh->next_group)
        error = lh_fail(LH_EHANDSHAKE,
                        "group: the exchange gives rank %u a number of groups below its own (it must "
                        "return all cards as they are)",
                        group->members.rank);
    if (!error && lineage.next_group == 1u << TAG_GROUP_BITS)
        error = lh_fail(LH_ERANGE, "group: %u groups were made (create another)", 1u << TAG_GROUP_BITS);
    if (!error)
        error = keys_digest(cards, group->members.size * stride, group->identity);
    if (!error)
        error = place_all(group, &lineage);
    if (error)
        return error;
    group->grows = lineage.members > 0;
    group->members.id = lineage.next_group;
    if (!group->kept)
        mesh_use_id(group->mesh, lineage.next_group);
    mesh_take_early_reports(group);
    return 0;
}

int growth_alone(struct lh_group *group, const uint8_t *card, size_t bytes, size_t part)
{
    pthread_mutex_lock(&group->mesh->lock);
    int error = growth_read_cards(group, card, bytes, part);
    if (!error)
        error = paths_create(&group->paths);
    pthread_mutex_unlock(&group->mesh->lock);
    return error;
}

/* ---- what all have read ------------------------------------------------------------------------------ */

int growth_read_blobs(struct lh_group *group, const uint8_t *all, size_t bytes)
{
    uint8_t both[2 * KEYS_DIGEST_BYTES];
    memcpy(both, group->identity, KEYS_DIGEST_BYTES);
    int error = keys_digest(all, bytes, both + KEYS_DIGEST_BYTES);
    if (!error)
        error = keys_digest(both, sizeof both, group->identity);
    if (!error && !group->kept)
        memcpy(group->mesh->identity, group->identity, KEYS_DIGEST_BYTES);
    return error;
}

int growth_compare(const struct lh_group *group, uint8_t (*identities)[KEYS_DIGEST_BYTES])
{
    for (uint32_t r = 0; r < group->members.size; r++)
        if (memcmp(identities[r], group->identity, KEYS_DIGEST_BYTES) != 0)
            return lh_fail(
                LH_EHANDSHAKE,
                "group: the exchange gave ranks %u and %u different cards (it must give all ranks "
                "the same)",
                group->members.rank, r);
    return 0;
}

/* ---- the end ----------------------------------------------------------------------------------------- */

void growth_commit(struct lh_group *group)
{
    struct mesh *mesh = group->mesh;
    if (!group->kept)
        return;
    for (uint32_t r = 0; r < group->members.size; r++)
        if (r != group->members.rank)
            member_link(&group->members, r)->joins = false;
    for (uint32_t place = 0; place < mesh->size; place++)
        if (place != mesh->rank && !mesh->links[place].error &&
            member_of_mesh(&group->members, place) == LH_NO_RANK)
            mesh_exclude(mesh, place);
    memcpy(mesh->identity, group->identity, KEYS_DIGEST_BYTES);
    mesh_use_id(mesh, group->members.id);
    mesh_close_unused(mesh);
}

/* The next group has another id, whatever the others know of this one. */
void growth_undo(struct lh_group *group)
{
    struct mesh *mesh = group->mesh;
    for (uint32_t r = 0; r < group->members.size; r++) {
        struct link *link = member_link(&group->members, r);
        if (group->members.of_mesh[r] != mesh->rank && link->joins && !link->error)
            link->error = -LH_ECANCELED;
    }
    mesh_use_id(mesh, mesh->next_group);
    mesh->payload_max = group->payload_before;
    mesh->timeout_ns = group->timeout_before;
}
