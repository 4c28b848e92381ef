/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/create.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <longhaul/link.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "group/bounded_lane.h"
#include "group/waiting.h"
#include "message/attr.h"
#include "message/engine.h"

/* version, size: 4 bytes each; block_bytes: 8; whether reliability is bounded, inside sites 1, across 2: 4;
 * the site */
#define CARD_VERSION     7u
#define CARD_BOUNDED     16u
#define CARD_SITE        20u
#define PEER_TIMEOUT_NS  (10 * LH_NS_PER_S)
#define TIMEOUT_NS       (30 * LH_NS_PER_S)
#define BLOCK_BYTES      (256u << 10)
#define BUFFER_BYTES     (16u << 20)
#define BLOCKS_MIN       4u
#define BLOCK_BYTES_MIN  LINK_SMALL_BYTES
#define BLOCK_BYTES_MAX  (4u << 20) /* a slot of a connection */
#define BUFFER_BYTES_MAX ((size_t)LINK_BULK_PLACES * BLOCK_BYTES_MAX)

void lh_group_attr_init(struct lh_group_attr *attr)
{
    *attr = (struct lh_group_attr){
        .struct_bytes = sizeof *attr,
        .timeout_ns = TIMEOUT_NS,
        .peer_timeout_ns = PEER_TIMEOUT_NS,
        .block_bytes = BLOCK_BYTES,
        .buffer_bytes = BUFFER_BYTES,
    };
}

/* ---- attributes -------------------------------------------------------------------------------------- */

static int check(const struct lh_group_attr *attr)
{
    if (attr->struct_bytes != sizeof *attr)
        return lh_fail(LH_EINVAL, "lh_group_attr: %zu bytes, %zu expected (call lh_group_attr_init())",
                       attr->struct_bytes, sizeof *attr);
    if (attr->size == 0 || attr->size > LH_GROUP_RANKS_MAX)
        return lh_fail(LH_EINVAL, "group of %u ranks: out of range (1 to %d)", attr->size,
                       LH_GROUP_RANKS_MAX);
    if (attr->rank >= attr->size)
        return lh_fail(LH_EINVAL, "rank %u: out of range (0 to %u)", attr->rank, attr->size - 1);
    if (!attr->engine && !attr->device)
        return lh_fail(LH_EINVAL, "group without an engine (set engine, or device)");
    if (attr->site && strlen(attr->site) >= LH_GROUP_SITE_MAX)
        return lh_fail(LH_EINVAL, "site %.80s: longer than %d characters", attr->site,
                       LH_GROUP_SITE_MAX - 1);
    if (attr->block_bytes != 0 &&
        (attr->block_bytes < BLOCK_BYTES_MIN || attr->block_bytes > BLOCK_BYTES_MAX))
        return lh_fail(LH_EINVAL, "block_bytes %zu: out of range (%u to %u)", attr->block_bytes,
                       BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
    return 0;
}

static int join_engine(struct mesh *mesh, const struct lh_group_attr *attr)
{
    struct lh_engine_attr engine_attr;
    if (attr->engine) {
        mesh->engine = attr->engine;
        return engine_check_process(attr->engine);
    }
    lh_engine_attr_init(&engine_attr);
    engine_attr.device = attr->device;
    int error = lh_engine_create(&engine_attr, &mesh->engine);
    mesh->own_engine = error == 0;
    return error;
}

/* ---- groups ------------------------------------------------------------------------------------------ */

static void free_group(struct lh_group *group)
{
    if (group->work)
        munmap(group->work, group->work_bytes);
    agreement_free(&group->agreement);
    choosing_free(&group->choosing);
    for (uint32_t i = 0; i < COLLECTIVES; i++)
        lh_timeout_destroy(group->timeouts[i]);
    paths_free(group);
    free(group->members);
    free(group->sites);
    free(group);
}

struct lh_group *create_member(struct mesh *mesh, uint32_t size)
{
    struct lh_group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->mesh = mesh;
    group->size = size;
    group->members = calloc(size, sizeof *group->members);
    group->sites = calloc(size, sizeof *group->sites);
    if (!group->members || !group->sites || agreement_init(&group->agreement, size) != 0) {
        free_group(group);
        return NULL;
    }
    group->next = mesh->first_group;
    mesh->first_group = group;
    mesh->groups++;
    return group;
}

void create_remove(struct lh_group *group)
{
    struct lh_group **at = &group->mesh->first_group;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    ahead_discard_group(&group->mesh->ahead, group->id);
    group->mesh->groups--;
    free_group(group);
}

/* ---- the mesh ---------------------------------------------------------------------------------------- */

static void drain(struct mesh *mesh)
{
    struct lh_completion entries[16];
    int n = mesh->queue ? 1 : 0;
    while (n > 0) { /* the connections are closed: nothing comes any more */
        n = lh_poll(mesh->queue, entries, 16);
        for (int i = 0; i < n; i++)
            if (entries[i].operation == LH_OPERATION_SEND)
                link_on_sent((struct sent *)(uintptr_t)entries[i].user);
            else if (entries[i].operation == LH_OPERATION_RECV)
                loss_free(
                    link_on_received((struct bounce *)(uintptr_t)entries[i].user, &entries[i].result));
    }
}

static void free_mesh(struct mesh *mesh)
{
    for (uint32_t r = 0; mesh->links && r < mesh->size; r++)
        link_close(&mesh->links[r]);
    drain(mesh);
    for (uint32_t r = 0; mesh->links && r < mesh->size; r++)
        link_free(&mesh->links[r]);
    ahead_end(&mesh->ahead);
    lh_completion_queue_destroy(mesh->queue);
    if (mesh->own_engine)
        lh_engine_destroy(mesh->engine);
    free(mesh->links);
    waiting_free(mesh);
    free(mesh);
}

void create_undo(struct lh_group *group)
{
    struct mesh *mesh = group->mesh;
    pthread_mutex_lock(&mesh->lock); /* the thread of the mesh goes through its groups */
    create_remove(group);
    bool last = mesh->groups == 0;
    pthread_mutex_unlock(&mesh->lock);
    if (!last)
        return;
    waiting_end_thread(mesh);
    free_mesh(mesh);
}

static const struct lh_attr *attr_given(const struct lh_group_attr *attr, bool across)
{
    return across && attr->attr_across ? attr->attr_across : attr->attr;
}

static int fill_mesh(struct mesh *mesh, const struct lh_group_attr *attr)
{
    mesh->rank = attr->rank;
    mesh->size = attr->size;
    mesh->block_bytes = attr->block_bytes ? attr->block_bytes : BLOCK_BYTES;
    mesh->timeout_ns = attr->timeout_ns ? attr->timeout_ns : TIMEOUT_NS;
    mesh->peer_timeout_ns = attr->peer_timeout_ns ? attr->peer_timeout_ns : PEER_TIMEOUT_NS;
    mesh->next_group = 1;
    mesh->links = calloc(attr->size, sizeof *mesh->links);
    if (!mesh->links)
        return lh_fail(LH_ENOMEM, "group: no memory for %u links", attr->size);
    int error = join_engine(mesh, attr);
    for (uint32_t across = 0; across < 2 && !error; across++) {
        struct bounded_lane lane;
        const struct lh_attr *given = attr_given(attr, across);
        if (given)
            error = bounded_lane_of(given, mesh->peer_timeout_ns, &lane);
        mesh->bounded[across] = !error && given && lane.exists;
    }
    if (error)
        return error;
    return lh_completion_queue_create(
        mesh->engine, 16 + attr->size * link_queue_places(mesh->bounded[0] || mesh->bounded[1]),
        &mesh->queue);
}

static void write_card(const struct lh_group *group, const struct lh_group_attr *attr, uint8_t *card)
{
    memset(card, 0, CREATE_CARD_BYTES);
    lh_put_be32(card, CARD_VERSION);
    lh_put_be32(card + 4, attr->size);
    lh_put_be64(card + 8, group->mesh->block_bytes);
    lh_put_be32(card + CARD_BOUNDED, group->mesh->bounded[0] | (uint32_t)group->mesh->bounded[1] << 1);
    if (attr->site)
        memcpy(card + CARD_SITE, attr->site, strlen(attr->site));
}

int create_group(const struct lh_group_attr *attr, struct lh_group **group, uint8_t *card)
{
    int error = check(attr);
    if (error)
        return error;
    struct mesh *mesh = calloc(1, sizeof *mesh);
    if (!mesh)
        return lh_fail(LH_ENOMEM, "no memory for a group");
    error = waiting_init(mesh);
    if (error) {
        free(mesh);
        return error;
    }
    error = fill_mesh(mesh, attr);
    struct lh_group *made = error ? NULL : create_member(mesh, attr->size);
    if (!made) {
        free_mesh(mesh);
        return error ? error : lh_fail(LH_ENOMEM, "no memory for a group");
    }
    made->rank = attr->rank;
    for (uint32_t r = 0; r < attr->size; r++)
        made->members[r] = r;
    write_card(made, attr, card);
    *group = made;
    return 0;
}

/* ---- links ------------------------------------------------------------------------------------------- */

static int read_cards(struct lh_group *group, const uint8_t *cards)
{
    struct mesh *mesh = group->mesh;
    for (uint32_t r = 0; r < group->size; r++) {
        const uint8_t *card = cards + r * CREATE_CARD_BYTES;
        if (lh_get_be32(card) != CARD_VERSION || card[CREATE_CARD_BYTES - 1] != 0)
            return lh_fail(LH_EVERSION, "group: rank %u has another release (use one)", r);
        if (lh_get_be32(card + 4) != group->size)
            return lh_fail(LH_EHANDSHAKE, "group: size %u at rank %u, %u at rank %u", group->size,
                           group->rank, lh_get_be32(card + 4), r);
        if (lh_get_be64(card + 8) != mesh->block_bytes)
            return lh_fail(LH_EHANDSHAKE, "group: block_bytes %zu at rank %u, %llu at rank %u",
                           mesh->block_bytes, group->rank, (unsigned long long)lh_get_be64(card + 8), r);
        memcpy(group->sites[r], card + CARD_SITE, LH_GROUP_SITE_MAX);
    }
    return 0;
}

/* Of hops that there are: operations are bounded at all ranks, or at none. */
static int check_bounded(const struct lh_group *group, const uint8_t *cards)
{
    const bool *own = group->mesh->bounded;
    uint32_t sites = group->paths.order->map.sites;
    for (uint32_t r = 0; r < group->size; r++) {
        uint32_t other = lh_get_be32(cards + r * CREATE_CARD_BYTES + CARD_BOUNDED);
        bool inside = own[0] != (other & 1) && group->size > sites;
        bool across = own[1] != (other >> 1 & 1) && sites > 1;
        if (inside || across)
            return lh_fail(
                LH_EHANDSHAKE,
                "group: reliability %s is bounded at rank %u, not at rank %u (give all ranks the "
                "same)",
                inside ? "inside sites" : "between sites", own[!inside] ? group->rank : r,
                own[!inside] ? r : group->rank);
    }
    return 0;
}

/* Between ranks of a machine. */
static bool is_near(const struct lh_attr *attr, const struct lh_engine *engine)
{
    return lh_link_is_none(&attr->link) && attr_is_loopback(engine->device);
}

/* There no queue is but the receiver's socket, which bounds what is on its way: reports to a controller would
 * only cost. */
static bool needs_no_controller(const struct lh_attr *attr, const struct lh_engine *engine)
{
    return !attr->congestion && attr->rate_bps == 0 && attr->rate_max_bps == 0 && is_near(attr, engine);
}

static struct lh_attr attr_of(const struct lh_group *group, const struct lh_group_attr *attr, uint32_t rank)
{
    bool across = strcmp(group->sites[group->rank], group->sites[rank]) != 0;
    const struct lh_attr *given = attr_given(attr, across);
    struct lh_attr own;
    lh_attr_init(&own);
    if (given)
        own = *given;
    own.engine = group->mesh->engine;
    own.device = NULL;
    own.workers = 0;
    own.peer_timeout_ns = group->mesh->peer_timeout_ns;
    if (needs_no_controller(&own, own.engine))
        own.congestion = "fixed";
    return own;
}

/* Opens the link to a rank. *bytes: of its blob. */
static int create_link(struct lh_group *group, const struct lh_group_attr *attr, uint32_t rank,
                       size_t buffer_bytes, size_t *bytes)
{
    struct mesh *mesh = group->mesh;
    struct lh_attr connection = attr_of(group, attr, rank), partial;
    struct bounded_lane lane;
    struct link_attr own = {.connection = &connection,
                            .near = is_near(&connection, mesh->engine),
                            .queue = mesh->queue,
                            .block_bytes = mesh->block_bytes,
                            .buffer_bytes = buffer_bytes};
    uint8_t blob[LINK_BLOB_MAX];
    *bytes = sizeof blob;
    int error = bounded_lane_of(&connection, mesh->peer_timeout_ns, &lane);
    if (!error && lane.exists) {
        partial = connection;
        partial.reliability = lane.reliability;
        partial.zero_missing = true;
        connection.reliability = NULL;
        own.bounded = &partial;
        own.deadline_ns = lane.deadline_ns;
    }
    if (!error)
        error = link_open(&mesh->links[rank], rank, &own);
    return error ? error : link_blob(&mesh->links[rank], blob, bytes);
}

int create_links(struct lh_group *group, const struct lh_group_attr *attr, const uint8_t *cards,
                 uint32_t *blob_bytes)
{
    struct mesh *mesh = group->mesh;
    size_t buffer_bytes = attr->buffer_bytes ? attr->buffer_bytes : BUFFER_BYTES;
    if (buffer_bytes < BLOCKS_MIN * mesh->block_bytes)
        buffer_bytes = BLOCKS_MIN * mesh->block_bytes;
    if (buffer_bytes > BUFFER_BYTES_MAX)
        buffer_bytes = BUFFER_BYTES_MAX;
    int error = read_cards(group, cards);
    if (!error)
        error = paths_create(group);
    if (!error)
        error = check_bounded(group, cards);
    *blob_bytes = 0;
    for (uint32_t r = 0; r < group->size && !error; r++) {
        size_t bytes;
        if (r == group->rank)
            continue;
        error = create_link(group, attr, r, buffer_bytes, &bytes);
        if (!error && bytes > *blob_bytes)
            *blob_bytes = (uint32_t)bytes;
    }
    return error;
}

int create_blobs(struct lh_group *group, uint8_t *blobs, size_t stride)
{
    uint8_t blob[LINK_BLOB_MAX];
    memset(blobs, 0, stride * group->size);
    for (uint32_t r = 0; r < group->size; r++) {
        size_t bytes = sizeof blob;
        if (r == group->rank)
            continue;
        int error = link_blob(&group->mesh->links[r], blob, &bytes);
        if (!error && bytes + 4 > stride)
            error = lh_fail(LH_ERANGE, "group: a blob of %zu bytes", bytes);
        if (error)
            return error;
        lh_put_be32(blobs + r * stride, (uint32_t)bytes);
        memcpy(blobs + r * stride + 4, blob, bytes);
    }
    return 0;
}

int create_attach(struct lh_group *group, const uint8_t *all, size_t stride)
{
    const struct tag hello = {.kind = TAG_HELLO};
    for (uint32_t r = 0; r < group->size; r++) {
        const uint8_t *blob = all + (r * (size_t)group->size + group->rank) * stride;
        struct link *link = &group->mesh->links[r];
        if (r == group->rank)
            continue;
        size_t bytes = lh_get_be32(blob);
        if (bytes + 4 > stride)
            return lh_fail(LH_EHANDSHAKE, "group: malformed blob of rank %u (use one release)", r);
        int error = link_attach(link, blob + 4, bytes);
        if (!error)
            error = link_begin(link);
        if (!error)
            error = link_send_control(link, &hello, NULL, 0);
        if (error)
            return error;
    }
    return 0;
}
