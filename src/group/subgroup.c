/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of some members of another: lh_group_split(), lh_group_shrink(). */
#include "group/group.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>

#include "base/error.h"
#include "group/agreement.h"
#include "group/group_messages.h"
#include "group/group_paths.h"
#include "group/mesh.h"
#include "message/engine.h"

/* Ranks of the group, in the order of the new one. follows: what was measured in the group. */
static int make(struct lh_group *group, const uint32_t *ranks, uint32_t count, uint32_t id, bool follows,
                struct lh_group **made)
{
    struct mesh *mesh = group->mesh;
    if (id >= 1u << TAG_GROUP_BITS)
        return lh_fail(LH_ERANGE, "group: %u groups were made (create another)", 1u << TAG_GROUP_BITS);
    struct lh_group *part = group_add(mesh, count);
    if (!part)
        return lh_fail(LH_ENOMEM, "no memory for a group");
    for (uint32_t i = 0; i < count; i++) {
        part->members.of_mesh[i] = group->members.of_mesh[ranks[i]];
        memcpy(part->sites[i], group->sites[ranks[i]], LH_GROUP_SITE_MAX);
        if (ranks[i] == group->members.rank)
            part->members.rank = i;
    }
    part->members.id = id;
    int error = paths_inherit(&part->paths, &group->paths, ranks, follows);
    if (error) {
        group_remove(part);
        return error;
    }
    mesh_take_early_reports(part); /* before later ones come */
    *made = part;
    return 0;
}

/* ---- splitting --------------------------------------------------------------------------------------- */

/* By key, then rank. */
static uint32_t sorted(const struct subgroup_choice *all, uint32_t size, uint32_t color, uint32_t *ranks)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < size; r++) {
        uint32_t at = count;
        if (all[r].color != color)
            continue;
        while (at > 0 && all[ranks[at - 1]].key > all[r].key) {
            ranks[at] = ranks[at - 1];
            at--;
        }
        ranks[at] = r;
        count++;
    }
    return count;
}

static int make_part(struct lh_group *group, const struct subgroup_choice *all, uint32_t color,
                     struct lh_group **part)
{
    struct mesh *mesh = group->mesh;
    uint32_t ranks[LH_GROUP_RANKS_MAX], id = 0;
    uint32_t count = sorted(all, group->members.size, color, ranks);
    int error = 0;
    bool follows = true;
    for (uint32_t r = 0; r < group->members.size; r++) {
        if (all[r].next_group > id)
            id = all[r].next_group;
        if (all[r].measured != all[group->members.rank].measured)
            follows = false;
    }
    pthread_mutex_lock(&mesh->lock);
    *part = NULL;
    if (color != LH_GROUP_NO_COLOR)
        error = make(group, ranks, count, id, follows, part);
    mesh_use_id(mesh, id);
    pthread_mutex_unlock(&mesh->lock);
    return error;
}

int subgroup_begin_split(struct lh_group *group, uint32_t color, uint32_t key, struct subgroup_split *split)
{
    pthread_mutex_lock(&group->mesh->lock);
    split->mine = (struct subgroup_choice){.color = color,
                                           .key = key,
                                           .next_group = group->mesh->next_group,
                                           .measured = group->paths.measured};
    pthread_mutex_unlock(&group->mesh->lock);
    split->all = calloc(group->members.size, sizeof *split->all);
    if (!split->all)
        return lh_fail(LH_ENOMEM, "group: no memory for %u ranks", group->members.size);
    int error = gather_begin(group, &split->mine, sizeof split->mine, split->all, &split->op);
    if (error)
        free(split->all);
    return error;
}

int subgroup_finish_split(struct lh_group *group, struct subgroup_split *split, int waited,
                          struct lh_group **part)
{
    int error = gather_end(split->op, waited);
    if (!error)
        error = make_part(group, split->all, split->mine.color, part);
    free(split->all);
    return error;
}

int lh_group_split(struct lh_group *group, uint32_t color, uint32_t key, struct lh_group **part)
{
    struct subgroup_split split;
    if (!group || !part)
        return lh_fail_if_null("lh_group_split", group ? "part" : "group", NULL);
    int error = engine_check_process(group->mesh->engine);
    if (error)
        return error;
    if (group->mesh->engine->workers == LH_NO_WORKERS && group->members.size > 1)
        return lh_fail(LH_ESTATE, "lh_group_split() without workers");
    error = subgroup_begin_split(group, color, key, &split);
    if (error)
        return error;
    int waited = lh_collective_wait(split.op, group->mesh->timeout_ns, NULL);
    return subgroup_finish_split(group, &split, waited, part);
}

/* ---- shrinking --------------------------------------------------------------------------------------- */

void subgroup_begin_shrink(struct lh_group *group)
{
    agreement_begin(&group->agreement, group->mesh->next_group, group->paths.measured);
    mesh_take_reports(group);
}

int subgroup_finish_shrink(struct lh_group *group, struct lh_group **smaller)
{
    struct mesh *mesh = group->mesh;
    uint32_t ranks[LH_GROUP_RANKS_MAX], count = 0, failed = 0;
    for (uint32_t r = 0; r < group->members.size; r++)
        if (agreement_has(agreement_failed(&group->agreement), r))
            failed++;
        else
            ranks[count++] = r;
    /* Who agreed on more failures has another group: it has another id. */
    uint32_t id = group->agreement.next_group + failed;
    bool follows = group->agreement.measured == group->paths.measured;
    int error = make(group, ranks, count, id, follows, smaller);
    mesh_use_id(mesh, id);
    agreement_end(&group->agreement);
    return error;
}

static bool is_reached(const void *what)
{
    return agreement_is_reached(what);
}

static void fail_late(const struct lh_group *group)
{
    uint32_t rank = agreement_missing(&group->agreement);
    bool called = group->agreement.reports[rank].round >= group->agreement.round;
    lh_fail(LH_ETIMEDOUT, "lh_group_shrink: rank %u %s in %llu ms", rank,
            called ? "has learned of other failures" : "did not call it",
            (unsigned long long)(group->mesh->timeout_ns / LH_NS_PER_MS));
}

int lh_group_shrink(struct lh_group *group, struct lh_group **smaller)
{
    if (!group || !smaller)
        return lh_fail_if_null("lh_group_shrink", group ? "smaller" : "group", NULL);
    struct mesh *mesh = group->mesh;
    int error = engine_check_process(mesh->engine);
    if (error)
        return error;
    if (mesh->engine->workers == LH_NO_WORKERS && group->members.size > 1)
        return lh_fail(LH_ESTATE, "lh_group_shrink() without workers");
    pthread_mutex_lock(&mesh->lock);
    subgroup_begin_shrink(group);
    error = wait_until(mesh, is_reached, &group->agreement, mesh->timeout_ns);
    if (error)
        fail_late(group);
    else
        error = subgroup_finish_shrink(group, smaller);
    pthread_mutex_unlock(&mesh->lock);
    return error;
}
