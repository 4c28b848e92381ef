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
#include "group/group_growth.h"
#include "group/group_link.h"
#include "group/group_messages.h"
#include "group/group_paths.h"
#include "group/group_security.h"
#include "group/mesh.h"
#include "message/attributes.h"
#include "message/engine.h"

/* ---- create ---------------------------------------------------------------------------------------- */

/* version, size: 4 bytes each; block_bytes: 8; payload_max, 0 of an older release: 2; whether reliability is
 * bounded, inside sites 1, across 2: 2; the site; of group_growth.h; of group_security.h */
#define CARD_VERSION     9u
#define CARD_PAYLOAD     16u
#define CARD_BOUNDED     18u
#define CARD_SITE        20u
#define CARD_GROWTH      (CARD_SITE + LH_GROUP_SITE_MAX)
#define CARD_SECURITY    (CARD_GROWTH + GROWTH_CARD_BYTES)
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
    security_end(group);
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

struct lh_group *group_add(struct mesh *mesh, uint32_t size)
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

void group_remove(struct lh_group *group)
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
    group_remove(group);
    bool last = mesh->groups == 0;
    if (!last)
        mesh_close_unused(mesh);
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
    mesh->rank = mesh->number = attr->rank;
    mesh->size = mesh->next_number = attr->size;
    mesh->block_bytes = attr->block_bytes ? attr->block_bytes : BLOCK_BYTES;
    mesh->timeout_ns = attr->timeout_ns ? attr->timeout_ns : TIMEOUT_NS;
    mesh->peer_timeout_ns = attr->peer_timeout_ns ? attr->peer_timeout_ns : PEER_TIMEOUT_NS;
    mesh->next_group = 1;
    mesh->links = calloc(MESH_PLACES_MAX, sizeof *mesh->links);
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
    growth_write_card(group, card + CARD_GROWTH);
}

int create_secure(struct lh_group *group, const struct key_group *key, uint8_t *card)
{
    struct mesh *mesh = group->mesh;
    if (mesh->payload_max && !group->kept) {
        mesh->payload_max = engine_payload_max(mesh->engine, true);
        lh_put_be16(card + CARD_PAYLOAD, (uint16_t)mesh->payload_max);
    }
    return security_begin(group, key, card, CREATE_CARD_BYTES, card + CARD_SECURITY);
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
    struct lh_group *made = error ? NULL : group_add(mesh, attr->size);
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
        if (lh_get_be32(card) != CARD_VERSION || card[CARD_GROWTH - 1] != 0)
            return lh_fail(LH_EVERSION, "group: rank %u has another release (use one)", r);
        if (lh_get_be32(card + 4) != group->members.size)
            return lh_fail(LH_EHANDSHAKE, "group: size %u at rank %u, %u at rank %u", group->members.size,
                           group->members.rank, lh_get_be32(card + 4), r);
        if (lh_get_be64(card + 8) != mesh->block_bytes)
            return lh_fail(LH_EHANDSHAKE, "group: block_bytes %zu at rank %u, %llu at rank %u",
                           mesh->block_bytes, group->members.rank,
                           (unsigned long long)lh_get_be64(card + 8), r);
        int error = security_on_card(group, r, card, CREATE_CARD_BYTES, card + CARD_SECURITY,
                                     cards + group->members.rank * CREATE_CARD_BYTES + CARD_SECURITY);
        if (error)
            return error;
        memcpy(group->sites[r], card + CARD_SITE, LH_GROUP_SITE_MAX);
        mesh->payload_max = (uint32_t)lh_min(mesh->payload_max, lh_get_be16(card + CARD_PAYLOAD));
    }
    return growth_read_cards(group, cards, CREATE_CARD_BYTES, CARD_GROWTH);
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
    uint32_t place = group->members.of_mesh[rank];
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
        error = link_open(&mesh->links[place], place, &own);
    return error ? error : link_blob(&mesh->links[place], blob, bytes);
}

/* Whether the link to a rank is to be made: another one, to which there was none before. */
static bool is_new(const struct lh_group *group, uint32_t rank)
{
    return rank != group->members.rank && !member_link(&group->members, rank)->begun;
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
        if (!is_new(group, r))
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
        if (!is_new(group, r))
            continue;
        int error = link_blob(member_link(&group->members, r), blob, &bytes);
        if (!error && bytes + 4 > stride)
            error = lh_fail(LH_ERANGE, "group: a blob of %zu bytes", bytes);
        if (!error)
            error = security_on_blob(group, r, blob, bytes);
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
        struct link *link = member_link(&group->members, r);
        if (!is_new(group, r))
            continue;
        size_t bytes = lh_get_be32(blob);
        if (bytes + 4 > stride)
            return lh_fail(LH_EHANDSHAKE, "group: malformed blob of rank %u (use one release)", r);
        int error = security_link(group, r, blob + 4, bytes);
        if (!error)
            error = link_attach(link, blob + 4, bytes);
        if (!error)
            error = link_begin(link);
        if (!error)
            error = link_send_control(link, &hello, NULL, 0);
        if (error)
            return error;
    }
    security_end(group);
    return growth_read_blobs(group, all, group->members.size * (size_t)group->members.size * stride);
}

/* ---- creating ---------------------------------------------------------------------------------------- */

/* Of a group that is made: links of others are not its concern. */
static bool is_connected(const void *what)
{
    const struct lh_group *group = what;
    for (uint32_t r = 0; r < group->members.size && !group->refused.error; r++) {
        const struct link *link = member_link(&group->members, r);
        if (r != group->members.rank && link->error && group->grows)
            return true;
        if (group->kept && !link->joins)
            continue;
        if (r != group->members.rank && !link->error && (!link->hello || !link_is_flushed(link)))
            return false;
    }
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
static uint32_t list_ranks(const struct members *members, bool (*is)(const struct link *link),
                           char out[RANKS_TEXT_MAX])
{
    size_t used = 0;
    uint32_t count = 0;
    out[0] = '\0';
    for (uint32_t r = 0; r < members->size && used < RANKS_TEXT_MAX - 16; r++)
        if (r != members->rank && is(member_link(members, r)))
            used += (size_t)snprintf(out + used, RANKS_TEXT_MAX - used, "%s %u", count++ ? "," : "", r);
    return count;
}

/* Those that send nothing; and if all do, those that receive nothing: a path may carry one way only. */
static int fail_missing(const struct members *members)
{
    char ranks[RANKS_TEXT_MAX];
    uint32_t missing = list_ranks(members, is_silent, ranks);
    if (missing > 0)
        return lh_fail(LH_ETIMEDOUT, "group of %u: no packets from rank%s%s (start %s, or let UDP pass)",
                       members->size, missing > 1 ? "s" : "", ranks, missing > 1 ? "them" : "it");
    missing = list_ranks(members, is_deaf, ranks);
    return lh_fail(LH_ETIMEDOUT, "group of %u: no acknowledgement from rank%s%s (let UDP pass to %s)",
                   members->size, missing > 1 ? "s" : "", ranks, missing > 1 ? "them" : "it");
}

static int fail_refused(const struct lh_group *group)
{
    return lh_fail((enum lh_error) - group->refused.error, "%s", group->refused.text);
}

static int wait_connected(struct lh_group *group)
{
    struct mesh *mesh = group->mesh;
    if (mesh->engine->workers == LH_NO_WORKERS)
        return 0; /* the caller makes progress; what is sent meanwhile waits */
    pthread_mutex_lock(&mesh->lock);
    int error = wait_until(mesh, is_connected, group, mesh->timeout_ns);
    if (error)
        fail_missing(&group->members);
    else if (group->refused.error)
        error = fail_refused(group);
    for (uint32_t r = 0; r < group->members.size && !error; r++) {
        const struct link *link = member_link(&group->members, r);
        if (r != group->members.rank && (!link->hello || (group->grows && link->error)))
            error =
                lh_fail((enum lh_error) - link->error, "group: rank %u: %s", r, lh_strerror(link->error));
    }
    pthread_mutex_unlock(&mesh->lock);
    return error;
}

/* Whether all have read the same: all, also of those that it connects. */
static int confirm(struct lh_group *group)
{
    uint8_t(*all)[KEYS_DIGEST_BYTES] = calloc(group->members.size, sizeof *all);
    int error = all ? 0 : lh_fail(LH_ENOMEM, "group: no memory for %u ranks", group->members.size);
    if (!error)
        error = group_gather(group, group->identity, sizeof *all, all);
    if (!error)
        error = growth_compare(group, all);
    free(all);
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
        pthread_mutex_lock(&group->mesh->lock);
        error = mine && all
                    ? create_blobs(group, mine, stride)
                    : lh_fail(LH_ENOMEM, "group: no memory for blobs of %u ranks", group->members.size);
        pthread_mutex_unlock(&group->mesh->lock);
    }
    if (!error)
        error = exchange(attr, mine, group->members.size * stride, all);
    pthread_mutex_lock(&group->mesh->lock); /* other groups may use the mesh */
    if (!error)
        error = create_attach(group, all, stride);
    pthread_mutex_unlock(&group->mesh->lock);
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
    pthread_mutex_lock(&group->mesh->lock);
    if (!error)
        error = create_links(group, attr, cards, &blob_bytes);
    pthread_mutex_unlock(&group->mesh->lock);
    free(cards);
    if (!error)
        error = exchange_blobs(group, attr, blob_bytes);
    if (!error)
        error = wait_connected(group);
    if (!error && group->grows)
        error = confirm(group);
    if (!error && group->mesh->engine->workers != LH_NO_WORKERS)
        error = agree_on_paths(group, attr);
    return error;
}

/* The last step: those who may have the group learn that it has not all ranks. */
static int give_up(struct lh_group *group, int error)
{
    char reason[LH_ERROR_TEXT_BYTES];
    snprintf(reason, sizeof reason, "%s", lh_last_error());
    pthread_mutex_lock(&group->mesh->lock);
    if (group->grows)
        mesh_refuse(group, error, reason);
    if (group->kept)
        growth_undo(group);
    pthread_mutex_unlock(&group->mesh->lock);
    create_undo(group); /* closes connections that have failed, too */
    return lh_error_set(error, reason);
}

static int start_thread(struct lh_group *group)
{
    if (group->mesh->threaded)
        return 0;
    return group->mesh->engine->workers == LH_NO_WORKERS
               ? lh_fail(LH_ESTATE, "group: a thread needs workers in the engine")
               : waiting_start_thread(group->mesh);
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
        error = start_thread(made);
    if (error)
        return give_up(made, error);
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

/* ---- growing ----------------------------------------------------------------------------------------- */

/* What an attribute may not have otherwise than the group that grows. */
static int check_growth(const struct lh_group *group, const struct lh_group_attr *attr, bool encrypts)
{
    const struct mesh *mesh = group->mesh;
    if (attr->size > 1 && !attr->exchange)
        return lh_fail(LH_EINVAL, "group of %u ranks without exchange", attr->size);
    if (encrypts != (mesh->encryption == LH_ENCRYPTION_FULL))
        return lh_fail(LH_EINVAL,
                       "group: %s, and is to grow with%s a key (give it as to lh_group_create())",
                       encrypts ? "it has no key" : "it is encrypted", encrypts ? "" : "out");
    for (uint32_t across = 0; across < 2; across++) {
        struct bounded_lane lane = {.exists = false};
        const struct lh_attr *given = attr_given(attr, across);
        int error = given ? bounded_lane_of(given, mesh->peer_timeout_ns, &lane) : 0;
        if (error)
            return error;
        if (lane.exists != mesh->bounded[across])
            return lh_fail(LH_EINVAL, "group: its reliability is%s bounded (give the same to grow)",
                           lane.exists ? " not" : "");
    }
    for (uint32_t place = 0; place < mesh->size; place++)
        if (place != mesh->rank && !mesh->links[place].error &&
            member_of_mesh(&group->members, place) == LH_NO_RANK)
            return lh_fail(LH_ESTATE, "group: it is a part of another (grow one that all ranks are in)");
    return mesh->growing ? lh_fail(LH_ESTATE, "group: it grows already (wait for that call)") : 0;
}

/* The attributes of a member: what its group has, it keeps. */
static struct lh_group_attr attr_of_member(const struct lh_group *group, const struct lh_group_attr *attr)
{
    struct lh_group_attr own = *attr;
    own.engine = group->mesh->engine;
    own.device = NULL;
    own.block_bytes = group->mesh->block_bytes;
    if (!own.site && group->sites[group->members.rank][0])
        own.site = group->sites[group->members.rank];
    return own;
}

int grow_group(struct lh_group *old, const struct lh_group_attr *attr, const struct key_group *key,
               struct lh_group **group, uint8_t *card)
{
    struct mesh *mesh = old->mesh;
    const struct lh_group_attr own = attr_of_member(old, attr);
    pthread_mutex_lock(&mesh->lock);
    int error = check_growth(old, &own, key != NULL);
    struct lh_group *made = error ? NULL : group_add(mesh, own.size);
    if (!error && !made)
        error = lh_fail(LH_ENOMEM, "no memory for a group");
    if (made) {
        made->kept = mesh->growing = true;
        made->members.id = MESH_NO_GROUP;
        made->members.rank = own.rank;
        for (uint32_t r = 0; r < own.size; r++)
            made->members.of_mesh[r] = mesh->rank; /* until the others are known */
        made->payload_before = mesh->payload_max;
        made->timeout_before = mesh->timeout_ns;
        mesh->timeout_ns = own.timeout_ns ? own.timeout_ns : TIMEOUT_NS;
        write_card(made, &own, card);
        memcpy(made->sites[own.rank], card + CARD_SITE, LH_GROUP_SITE_MAX);
        *group = made;
    }
    pthread_mutex_unlock(&mesh->lock);
    if (!error && key)
        error = create_secure(made, key, card);
    if (error && made)
        grow_end(made, error);
    return error;
}

int grow_end(struct lh_group *group, int error)
{
    struct mesh *mesh = group->mesh;
    pthread_mutex_lock(&mesh->lock);
    mesh->growing = false;
    if (!error && group->refused.error)
        error = fail_refused(group);
    if (!error)
        growth_commit(group);
    pthread_mutex_unlock(&mesh->lock);
    return error ? give_up(group, error) : 0;
}

static int grow(struct lh_group *old, const struct lh_group_attr *attr, const struct key_group *key,
                struct lh_group **grown)
{
    uint8_t card[CREATE_CARD_BYTES];
    struct lh_group *made;
    int error = grow_group(old, attr, key, &made, card);
    if (error)
        return error;
    error =
        attr->size > 1 ? connect_all(made, attr, card) : growth_alone(made, card, sizeof card, CARD_GROWTH);
    if (!error && attr->thread)
        error = start_thread(made);
    error = grow_end(made, error);
    if (!error)
        *grown = made;
    return error;
}

int lh_group_grow(struct lh_group *group, const struct lh_group_attr *attr, struct lh_group **grown)
{
    struct key_group key;
    bool encrypts;
    if (!attr || !grown)
        return lh_fail_if_null("lh_group_grow", attr ? "grown" : "attr", NULL);
    if (!group)
        return lh_group_create(attr, grown);
    const struct lh_group_attr own = attr_of_member(group, attr);
    int error = attr->engine && attr->engine != group->mesh->engine
                    ? lh_fail(LH_EINVAL, "group: it has another engine (set engine to NULL, or to its own)")
                    : check(&own);
    if (!error)
        error = engine_check_process(group->mesh->engine);
    if (!error && group->mesh->engine->workers == LH_NO_WORKERS)
        error = lh_fail(LH_ESTATE, "lh_group_grow() without workers");
    if (!error)
        error = security_read(&own, &key, &encrypts);
    if (error)
        return error;
    error = grow(group, &own, encrypts ? &key : NULL, grown);
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
    pthread_mutex_lock(&group->mesh->lock); /* the group may grow */
    uint32_t payload_max = group->mesh->payload_max;
    pthread_mutex_unlock(&group->mesh->lock);
    return payload_max;
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
