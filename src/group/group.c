/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>
#include <longhaul/link.h>
#include <longhaul/timeout.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/min_max.h"
#include "collective/operation_progress.h"
#include "group/agreement.h"
#include "group/group_link.h"
#include "group/group_messages.h"
#include "group/group_paths.h"
#include "group/group_security.h"
#include "group/mesh.h"
#include "message/attributes.h"
#include "message/engine.h"

/* ---- create ---------------------------------------------------------------------------------------- */

/* version, size: 4 bytes each; block_bytes: 8; payload_max, 0 of an older release: 2; whether reliability is
 * bounded, inside sites 1, across 2: 2; the site; of group_security.h */
#define CARD_VERSION     8u
#define CARD_PAYLOAD     16u
#define CARD_BOUNDED     18u
#define CARD_SITE        20u
#define CARD_SECURITY    (CARD_SITE + LH_GROUP_SITE_MAX)
#define PEER_TIMEOUT_NS  (10 * LH_NS_PER_S)
#define TIMEOUT_NS       (30 * LH_NS_PER_S)
#define FLUSH_LOOK_NS    LH_NS_PER_MS /* no entry tells when a send with a deadline is over */
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
    if (group->operations.work)
        munmap(group->operations.work, group->operations.work_bytes);
    agreement_free(&group->agreement);
    for (uint32_t i = 0; i < COLLECTIVES; i++)
        lh_timeout_destroy(group->operations.timeouts[i]);
    paths_free(&group->paths);
    free(group->members.of_mesh);
    free(group->sites);
    free(group);
}

static void set_operations(struct op_context *operations, struct lh_group *group)
{
    struct mesh *mesh = group->mesh;
    operations->members = &group->members;
    operations->paths = &group->paths;
    operations->block_bytes = mesh->block_bytes;
    memcpy(operations->bounded, mesh->bounded, sizeof mesh->bounded);
    operations->peer_timeout_ns = mesh->peer_timeout_ns;
    operations->clock = mesh->engine->context;
    operations->changed = &mesh->changed;
}

/* A group of a mesh, with places for its members; NULL: no memory. And its end. */
static struct lh_group *create_member(struct mesh *mesh, uint32_t size)
{
    struct lh_group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->mesh = mesh;
    group->members.size = size;
    group->members.links = mesh->links;
    group->members.of_mesh = calloc(size, sizeof *group->members.of_mesh);
    group->sites = calloc(size, sizeof *group->sites);
    if (!group->members.of_mesh || !group->sites ||
        agreement_init(&group->agreement, &group->members) != 0) {
        free_group(group);
        return NULL;
    }
    group->paths.members = &group->members;
    group->paths.sites = group->sites;
    group->paths.block_bytes = mesh->block_bytes;
    group->paths.lock = &mesh->lock;
    set_operations(&group->operations, group);
    group->next = mesh->first_group;
    mesh->first_group = group;
    mesh->groups++;
    return group;
}

static void create_remove(struct lh_group *group)
{
    struct lh_group **at = &group->mesh->first_group;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    ahead_discard_group(&group->mesh->ahead, group->members.id);
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
    security_end(mesh);
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
    if (!error && !attr_is_loopback(mesh->engine->device))
        mesh->payload_max = engine_payload_max(mesh->engine, false);
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
    lh_put_be16(card + CARD_PAYLOAD, (uint16_t)group->mesh->payload_max);
    lh_put_be16(card + CARD_BOUNDED, (uint16_t)(group->mesh->bounded[0] | group->mesh->bounded[1] << 1));
    if (attr->site)
        memcpy(card + CARD_SITE, attr->site, strlen(attr->site));
}

int create_secure(struct lh_group *group, const struct key_group *key, uint8_t *card)
{
    struct mesh *mesh = group->mesh;
    if (mesh->payload_max) {
        mesh->payload_max = engine_payload_max(mesh->engine, true);
        lh_put_be16(card + CARD_PAYLOAD, (uint16_t)mesh->payload_max);
    }
    return security_begin(mesh, key, card, CREATE_CARD_BYTES, card + CARD_SECURITY);
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
    made->members.rank = attr->rank;
    for (uint32_t r = 0; r < attr->size; r++)
        made->members.of_mesh[r] = r;
    write_card(made, attr, card);
    memcpy(made->sites[made->members.rank], card + CARD_SITE,
           LH_GROUP_SITE_MAX); /* alone it reads no cards */
    *group = made;
    return 0;
}

/* ---- links ------------------------------------------------------------------------------------------- */

static int read_cards(struct lh_group *group, const uint8_t *cards)
{
    struct mesh *mesh = group->mesh;
    for (uint32_t r = 0; r < group->members.size; r++) {
        const uint8_t *card = cards + r * CREATE_CARD_BYTES;
        if (lh_get_be32(card) != CARD_VERSION || card[CARD_SECURITY - 1] != 0)
            return lh_fail(LH_EVERSION, "group: rank %u has another release (use one)", r);
        if (lh_get_be32(card + 4) != group->members.size)
            return lh_fail(LH_EHANDSHAKE, "group: size %u at rank %u, %u at rank %u", group->members.size,
                           group->members.rank, lh_get_be32(card + 4), r);
        if (lh_get_be64(card + 8) != mesh->block_bytes)
            return lh_fail(LH_EHANDSHAKE, "group: block_bytes %zu at rank %u, %llu at rank %u",
                           mesh->block_bytes, group->members.rank,
                           (unsigned long long)lh_get_be64(card + 8), r);
        int error = security_on_card(mesh, r, card, CREATE_CARD_BYTES, card + CARD_SECURITY,
                                     cards + mesh->rank * CREATE_CARD_BYTES + CARD_SECURITY);
        if (error)
            return error;
        memcpy(group->sites[r], card + CARD_SITE, LH_GROUP_SITE_MAX);
        mesh->payload_max = (uint32_t)lh_min(mesh->payload_max, lh_get_be16(card + CARD_PAYLOAD));
    }
    return 0;
}

/* Of hops that there are: operations are bounded at all ranks, or at none. */
static int check_bounded(const struct lh_group *group, const uint8_t *cards)
{
    const bool *own = group->mesh->bounded;
    uint32_t sites = group->paths.order->map.sites;
    for (uint32_t r = 0; r < group->members.size; r++) {
        uint32_t other = lh_get_be16(cards + r * CREATE_CARD_BYTES + CARD_BOUNDED);
        bool inside = own[0] != (other & 1) && group->members.size > sites;
        bool across = own[1] != (other >> 1 & 1) && sites > 1;
        if (inside || across)
            return lh_fail(
                LH_EHANDSHAKE,
                "group: reliability %s is bounded at rank %u, not at rank %u (give all ranks the "
                "same)",
                inside ? "inside sites" : "between sites", own[!inside] ? group->members.rank : r,
                own[!inside] ? r : group->members.rank);
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
    bool across = strcmp(group->sites[group->members.rank], group->sites[rank]) != 0;
    const struct lh_attr *given = attr_given(attr, across);
    struct lh_attr own;
    lh_attr_init(&own);
    if (given)
        own = *given;
    own.engine = group->mesh->engine;
    own.security = security_of_link(attr, group->mesh->encryption);
    own.device = NULL;
    own.workers = 0;
    own.peer_timeout_ns = group->mesh->peer_timeout_ns;
    attr_fill_packets(&own, group->mesh->payload_max); /* a path that takes less is found later */
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
        error = paths_create(&group->paths);
    if (!error)
        error = check_bounded(group, cards);
    *blob_bytes = 0;
    for (uint32_t r = 0; r < group->members.size && !error; r++) {
        size_t bytes;
        if (r == group->members.rank)
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
    memset(blobs, 0, stride * group->members.size);
    for (uint32_t r = 0; r < group->members.size; r++) {
        size_t bytes = sizeof blob;
        if (r == group->members.rank)
            continue;
        int error = link_blob(&group->mesh->links[r], blob, &bytes);
        if (!error && bytes + 4 > stride)
            error = lh_fail(LH_ERANGE, "group: a blob of %zu bytes", bytes);
        if (!error)
            error = security_on_blob(group->mesh, r, blob, bytes);
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
    for (uint32_t r = 0; r < group->members.size; r++) {
        const uint8_t *blob = all + (r * (size_t)group->members.size + group->members.rank) * stride;
        struct link *link = &group->mesh->links[r];
        if (r == group->members.rank)
            continue;
        size_t bytes = lh_get_be32(blob);
        if (bytes + 4 > stride)
            return lh_fail(LH_EHANDSHAKE, "group: malformed blob of rank %u (use one release)", r);
        int error = security_link(group->mesh, r, blob + 4, bytes);
        if (!error)
            error = link_attach(link, blob + 4, bytes);
        if (!error)
            error = link_begin(link);
        if (!error)
            error = link_send_control(link, &hello, NULL, 0);
        if (error)
            return error;
    }
    security_end(group->mesh);
    return 0;
}

/* ---- group ----------------------------------------------------------------------------------------- */

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
    size_t bytes = paths_row_bytes(&group->paths);
    uint8_t *rows = calloc(group->members.size + 1, bytes), *mine = rows + group->members.size * bytes;
    if (!rows)
        return lh_fail(LH_ENOMEM, "group: no memory for %u ranks", group->members.size);
    paths_announce_given(&group->paths, attr, mine);
    int error = group_gather(group, mine, bytes, rows);
    if (!error)
        error = paths_agree(&group->paths, rows, false);
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
    uint32_t *lengths = calloc(group->members.size, sizeof *lengths);
    uint8_t *mine = NULL, *all = NULL;
    int error = lengths ? exchange(attr, &blob_bytes, sizeof blob_bytes, lengths) : -LH_ENOMEM;
    size_t stride = 4;
    for (uint32_t r = 0; r < group->members.size && !error; r++) {
        if (lengths[r] > LINK_BLOB_MAX)
            error = lh_fail(LH_EHANDSHAKE, "group: rank %u has another release (use one)", r);
        else if (lengths[r] + 4 > stride)
            stride = lengths[r] + 4;
    }
    if (!error) {
        mine = calloc(group->members.size, stride);
        all = calloc(group->members.size, group->members.size * stride);
        error = mine && all
                    ? create_blobs(group, mine, stride)
                    : lh_fail(LH_ENOMEM, "group: no memory for blobs of %u ranks", group->members.size);
    }
    if (!error)
        error = exchange(attr, mine, group->members.size * stride, all);
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
    uint8_t *cards = calloc(group->members.size, CREATE_CARD_BYTES);
    if (!cards)
        return lh_fail(LH_ENOMEM, "group: no memory for %u ranks", group->members.size);
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

int group_create(const struct lh_group_attr *attr, enum lh_encryption encryption,
                 const struct key_group *key, struct lh_group **group)
{
    uint8_t card[CREATE_CARD_BYTES];
    struct lh_group *made;
    if (attr->size > 1 && !attr->exchange)
        return lh_fail(LH_EINVAL, "group of %u ranks without exchange", attr->size);
    int error = create_group(attr, &made, card);
    if (error)
        return error;
    made->mesh->encryption = encryption;
    error = encryption == LH_ENCRYPTION_FULL ? create_secure(made, key, card) : 0;
    if (!error)
        error = attr->size > 1 ? connect_all(made, attr, card) : paths_create(&made->paths);
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

int lh_group_create(const struct lh_group_attr *attr, struct lh_group **group)
{
    struct key_group key;
    bool encrypts;
    if (!attr || !group)
        return lh_fail_if_null("lh_group_create", attr ? "group" : "attr", NULL);
    int error = check(attr);
    if (!error)
        error = security_read(attr, &key, &encrypts);
    if (error)
        return error;
    error = group_create(attr, encrypts ? LH_ENCRYPTION_FULL : LH_ENCRYPTION_OFF, encrypts ? &key : NULL,
                         group);
    if (encrypts)
        key_group_wipe(&key);
    return error;
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
    lh_time began = mesh_now(mesh);
    while (!is_flushed(mesh) && mesh_now(mesh) - began < mesh->peer_timeout_ns)
        wait_until(mesh, is_flushed, mesh, FLUSH_LOOK_NS);
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
        error = lh_fail(LH_ESTATE, "group: collectives remain (call lh_collective_free() first)");
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
    return group->members.rank;
}

uint32_t lh_group_size(const struct lh_group *group)
{
    return group->members.size;
}

enum lh_encryption lh_group_encryption(const struct lh_group *group)
{
    return group->mesh->encryption;
}

const char *lh_group_site(const struct lh_group *group, uint32_t rank)
{
    return rank < group->members.size ? group->sites[rank] : NULL;
}

int lh_group_path(struct lh_group *group, uint32_t from, uint32_t to, struct lh_group_path *path)
{
    if (!group || !path)
        return lh_fail_if_null("lh_group_path", group ? "path" : "group", NULL);
    if (from >= group->members.size || to >= group->members.size || from == to)
        return lh_fail(LH_EINVAL, "path from rank %u to rank %u: out of range (two of 0 to %u)", from, to,
                       group->members.size - 1);
    pthread_mutex_lock(&group->mesh->lock);
    const struct path_figures *pairs = group->paths.pairs;
    if (pairs)
        *path =
            (struct lh_group_path){.rtt_ns = pairs[from * group->members.size + to].rtt_ns,
                                   .rate_bps = pairs[from * group->members.size + to].rate_bps,
                                   .loss = pairs[from * group->members.size + to].loss * PATHS_LOSS_UNIT};
    pthread_mutex_unlock(&group->mesh->lock);
    return pairs ? 0 : lh_fail(LH_ESTATE, "group: paths were not measured (call lh_group_measure() first)");
}

int lh_group_place(struct lh_group *group, uint32_t rank, uint32_t *place, uint32_t *site)
{
    if (!group)
        return lh_fail_if_null("lh_group_place", "group", group);
    if (rank >= group->members.size)
        return lh_fail(LH_EINVAL, "rank %u: out of range (0 to %u)", rank, group->members.size - 1);
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

uint32_t lh_group_mtu(const struct lh_group *group)
{
    return group->mesh->payload_max;
}

int lh_group_error(struct lh_group *group, uint32_t rank)
{
    if (!group)
        return lh_fail_if_null("lh_group_error", "group", group);
    if (rank >= group->members.size)
        return lh_fail(LH_EINVAL, "rank %u: out of range (0 to %u)", rank, group->members.size - 1);
    pthread_mutex_lock(&group->mesh->lock);
    int error = rank == group->members.rank ? 0 : member_link(&group->members, rank)->error;
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

/* ---- subgroup -------------------------------------------------------------------------------------- */

/* Groups of some members of another: lh_group_split(), lh_group_shrink(). */

/* Ranks of the group, in the order of the new one. follows: what was measured in the group. */
static int make(struct lh_group *group, const uint32_t *ranks, uint32_t count, uint32_t id, bool follows,
                struct lh_group **made)
{
    struct mesh *mesh = group->mesh;
    if (id >= 1u << TAG_GROUP_BITS)
        return lh_fail(LH_ERANGE, "group: %u groups were made (create another)", 1u << TAG_GROUP_BITS);
    struct lh_group *part = create_member(mesh, count);
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
        create_remove(part);
        return error;
    }
    mesh_take_early_reports(part); /* before later ones come */
    *made = part;
    return 0;
}

/* Also where this rank has no group of it. At the end of the range none is left. */
static void use_id(struct mesh *mesh, uint32_t id)
{
    uint32_t next = id < 1u << TAG_GROUP_BITS ? id + 1 : 1u << TAG_GROUP_BITS;
    if (mesh->next_group < next)
        mesh->next_group = next;
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
    use_id(mesh, id);
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
    use_id(mesh, id);
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
