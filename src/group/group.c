/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/last_error.h"
#include "group/create.h"
#include "group/gather.h"
#include "group/waiting.h"
#include "message/engine.h"

/* ---- creating ---------------------------------------------------------------------------------------- */

static bool is_connected(const void *what)
{
    const struct mesh *mesh = what;
    for (uint32_t r = 0; r < mesh->size; r++)
        if (r != mesh->rank && !mesh->links[r].error &&
            (!mesh->links[r].hello || !link_is_flushed(&mesh->links[r])))
            return false;
    return true;
}

static bool is_silent(const struct link *link)
{
    return !link->hello;
}

static bool is_deaf(const struct link *link)
{
    return link->hello && !link->error && !link_is_flushed(link);
}

#define RANKS_TEXT_MAX 64

/* " 1, 2", cut off. Returns how many. */
static uint32_t list_ranks(const struct mesh *mesh, bool (*is)(const struct link *link),
                           char out[RANKS_TEXT_MAX])
{
    size_t used = 0;
    uint32_t count = 0;
    out[0] = '\0';
    for (uint32_t r = 0; r < mesh->size && used < RANKS_TEXT_MAX - 16; r++)
        if (r != mesh->rank && is(&mesh->links[r]))
            used += (size_t)snprintf(out + used, RANKS_TEXT_MAX - used, "%s %u", count++ ? "," : "", r);
    return count;
}

/* Those that send nothing; and if all do, those that receive nothing: a path may carry one way only. */
static int fail_missing(const struct mesh *mesh)
{
    char ranks[RANKS_TEXT_MAX];
    uint32_t missing = list_ranks(mesh, is_silent, ranks);
    if (missing > 0)
        return lh_fail(LH_ETIMEDOUT, "group of %u: no packets from rank%s%s (start %s, or let UDP pass)",
                       mesh->size, missing > 1 ? "s" : "", ranks, missing > 1 ? "them" : "it");
    missing = list_ranks(mesh, is_deaf, ranks);
    return lh_fail(LH_ETIMEDOUT, "group of %u: no acknowledgement from rank%s%s (let UDP pass to %s)",
                   mesh->size, missing > 1 ? "s" : "", ranks, missing > 1 ? "them" : "it");
}

static int wait_connected(struct lh_group *group)
{
    struct mesh *mesh = group->mesh;
    if (mesh->engine->workers == LH_NO_WORKERS)
        return 0; /* the caller makes progress; what is sent meanwhile waits */
    pthread_mutex_lock(&mesh->lock);
    int error = wait_until(mesh, is_connected, mesh, mesh->timeout_ns);
    for (uint32_t r = 0; r < mesh->size && !error; r++)
        if (r != mesh->rank && !mesh->links[r].hello)
            error = lh_fail((enum lh_error) - mesh->links[r].error, "group: rank %u: %s", r,
                            lh_strerror(mesh->links[r].error));
    if (error == -LH_ETIMEDOUT)
        fail_missing(mesh);
    pthread_mutex_unlock(&mesh->lock);
    return error;
}

static int agree_on_paths(struct lh_group *group, const struct lh_group_attr *attr)
{
    size_t bytes = paths_row_bytes(group);
    uint8_t *rows = calloc(group->size + 1, bytes), *mine = rows + group->size * bytes;
    if (!rows)
        return lh_fail(LH_ENOMEM, "group: no memory for %u ranks", group->size);
    paths_tell_given(group, attr, mine);
    int error = group_gather(group, mine, bytes, rows);
    if (!error)
        error = paths_agree(group, rows, false);
    free(rows);
    return error;
}

static int exchange(const struct lh_group_attr *attr, const void *mine, size_t bytes, void *all)
{
    int error = attr->exchange(attr->exchange_context, mine, bytes, all);
    return error >= 0 ? 0 : lh_error_known(-error) ? error : -LH_EHANDSHAKE;
}

/* All ranks take part in each exchange, with what they have. */
static int exchange_blobs(struct lh_group *group, const struct lh_group_attr *attr, uint32_t blob_bytes)
{
    uint32_t *lengths = calloc(group->size, sizeof *lengths);
    uint8_t *mine = NULL, *all = NULL;
    int error = lengths ? exchange(attr, &blob_bytes, sizeof blob_bytes, lengths) : -LH_ENOMEM;
    size_t stride = 4;
    for (uint32_t r = 0; r < group->size && !error; r++) {
        if (lengths[r] > LINK_BLOB_MAX)
            error = lh_fail(LH_EHANDSHAKE, "group: rank %u has another release (use one)", r);
        else if (lengths[r] + 4 > stride)
            stride = lengths[r] + 4;
    }
    if (!error) {
        mine = calloc(group->size, stride);
        all = calloc(group->size, group->size * stride);
        error = mine && all ? create_blobs(group, mine, stride)
                            : lh_fail(LH_ENOMEM, "group: no memory for blobs of %u ranks", group->size);
    }
    if (!error)
        error = exchange(attr, mine, group->size * stride, all);
    if (!error)
        error = create_attach(group, all, stride);
    free(lengths);
    free(mine);
    free(all);
    return error;
}

static int connect_all(struct lh_group *group, const struct lh_group_attr *attr, const uint8_t *card)
{
    uint32_t blob_bytes = 0;
    uint8_t *cards = calloc(group->size, CREATE_CARD_BYTES);
    if (!cards)
        return lh_fail(LH_ENOMEM, "group: no memory for %u ranks", group->size);
    int error = exchange(attr, card, CREATE_CARD_BYTES, cards);
    if (!error)
        error = create_links(group, attr, cards, &blob_bytes);
    free(cards);
    if (!error)
        error = exchange_blobs(group, attr, blob_bytes);
    if (!error)
        error = wait_connected(group);
    if (!error && group->mesh->engine->workers != LH_NO_WORKERS)
        error = agree_on_paths(group, attr);
    return error;
}

int lh_group_create(const struct lh_group_attr *attr, struct lh_group **group)
{
    uint8_t card[CREATE_CARD_BYTES];
    struct lh_group *made;
    if (!attr || !group)
        return lh_fail_if_null("lh_group_create", attr ? "group" : "attr", NULL);
    if (attr->size > 1 && !attr->exchange)
        return lh_fail(LH_EINVAL, "group of %u ranks without exchange", attr->size);
    int error = create_group(attr, &made, card);
    if (error)
        return error;
    error = attr->size > 1 ? connect_all(made, attr, card) : paths_create(made);
    if (!error && attr->thread)
        error = made->mesh->engine->workers == LH_NO_WORKERS
                    ? lh_fail(LH_ESTATE, "group: a thread needs workers in the engine")
                    : waiting_start_thread(made->mesh);
    if (error) {
        char reason[LH_ERROR_TEXT_BYTES];
        snprintf(reason, sizeof reason, "%s", lh_last_error());
        create_undo(made); /* closes connections that have failed, too */
        return lh_error_set(error, reason);
    }
    *group = made;
    return 0;
}

/* ---- the end ----------------------------------------------------------------------------------------- */

static bool is_flushed(const void *what)
{
    const struct mesh *mesh = what;
    for (uint32_t r = 0; r < mesh->size; r++)
        if (r != mesh->rank && !mesh->links[r].error && !link_is_flushed(&mesh->links[r]))
            return false;
    return true;
}

/* The thread tells nobody of acknowledgements: from here on this one polls. */
static void flush(struct mesh *mesh)
{
    waiting_end_thread(mesh);
    pthread_mutex_lock(&mesh->lock);
    wait_until(mesh, is_flushed, mesh, mesh->peer_timeout_ns);
    pthread_mutex_unlock(&mesh->lock);
}

int lh_group_destroy(struct lh_group *group)
{
    if (!group)
        return 0;
    struct mesh *mesh = group->mesh;
    int error = engine_check_process(mesh->engine);
    if (error)
        return error;
    pthread_mutex_lock(&mesh->lock);
    bool last = mesh->groups == 1;
    if (group->first_op)
        error = lh_fail(LH_ESTATE, "group: collectives are left (lh_collective_free() first)");
    pthread_mutex_unlock(&mesh->lock);
    if (error)
        return error;
    if (last && mesh->engine->workers != LH_NO_WORKERS)
        flush(mesh);
    create_undo(group);
    return 0;
}

/* ---- what can be asked ------------------------------------------------------------------------------- */

uint32_t lh_group_rank(const struct lh_group *group)
{
    return group->rank;
}

uint32_t lh_group_size(const struct lh_group *group)
{
    return group->size;
}

const char *lh_group_site(const struct lh_group *group, uint32_t rank)
{
    return rank < group->size ? group->sites[rank] : NULL;
}

int lh_group_path(struct lh_group *group, uint32_t from, uint32_t to, struct lh_group_path *path)
{
    if (!group || !path)
        return lh_fail_if_null("lh_group_path", group ? "path" : "group", NULL);
    if (from >= group->size || to >= group->size || from == to)
        return lh_fail(LH_EINVAL, "path from rank %u to rank %u: out of range (two of 0 to %u)", from, to,
                       group->size - 1);
    pthread_mutex_lock(&group->mesh->lock);
    const struct path_figures *pairs = group->paths.pairs;
    if (pairs)
        *path = (struct lh_group_path){.rtt_ns = pairs[from * group->size + to].rtt_ns,
                                       .rate_bps = pairs[from * group->size + to].rate_bps,
                                       .loss = pairs[from * group->size + to].loss * PATHS_LOSS_UNIT};
    pthread_mutex_unlock(&group->mesh->lock);
    return pairs ? 0 : lh_fail(LH_ESTATE, "group: paths were not measured (lh_group_measure() first)");
}

int lh_group_place(struct lh_group *group, uint32_t rank, uint32_t *place, uint32_t *site)
{
    if (!group)
        return lh_fail_if_null("lh_group_place", "group", group);
    if (rank >= group->size)
        return lh_fail(LH_EINVAL, "rank %u: out of range (0 to %u)", rank, group->size - 1);
    pthread_mutex_lock(&group->mesh->lock);
    const struct site_map *map = &group->paths.order->map;
    if (place)
        *place = map->place_of[rank];
    if (site)
        *site = map->site_of[map->place_of[rank]];
    pthread_mutex_unlock(&group->mesh->lock);
    return 0;
}

struct lh_engine *lh_group_engine(const struct lh_group *group)
{
    return group->mesh->engine;
}

int lh_group_error(struct lh_group *group, uint32_t rank)
{
    if (!group)
        return lh_fail_if_null("lh_group_error", "group", group);
    if (rank >= group->size)
        return lh_fail(LH_EINVAL, "rank %u: out of range (0 to %u)", rank, group->size - 1);
    pthread_mutex_lock(&group->mesh->lock);
    int error = rank == group->rank ? 0 : group_link(group, rank)->error;
    pthread_mutex_unlock(&group->mesh->lock);
    return error;
}

int lh_group_progress(struct lh_group *group, lh_time *next_ns)
{
    if (!group)
        return lh_fail_if_null("lh_group_progress", "group", group);
    struct mesh *mesh = group->mesh;
    lh_time next = LH_TIME_NEVER;
    pthread_mutex_lock(&mesh->lock);
    bool any = false;
    int error = lh_engine_progress(mesh->engine, &next);
    if (!error) {
        any = mesh_next_deadline(mesh) <= mesh_now(mesh);
        any |= mesh_poll(mesh) > 0;
    }
    lh_time deadline = mesh_next_deadline(mesh);
    if (any)
        next = mesh_now(mesh); /* it may have sent something, or withdrawn it */
    else if (deadline < next)
        next = deadline;
    pthread_mutex_unlock(&mesh->lock);
    if (!error && next_ns)
        *next_ns = next;
    return error;
}
