/*
 * ofi_connect.c - links are opened here: by the first message to a peer, and by what the listener accepts.
 *
 * The first message of a connection is its hello: who connects, and the token of the endpoint that it wants.
 * A client without a valid one gets no further. lh_connect waits for the peer, so it has threads of its own
 * while links are to be opened.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/libfabric/ofi_link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Connections that are opened at once. */
#define CONNECTS_MAX 8
/* Shorter than users wait, longer than a lost SYN takes. */
#define CONNECT_TIMEOUT_NS (30 * LH_NS_PER_S)
/* Accepted clients without a hello: a further one takes the place of the oldest. */
#define STRANGERS_MAX 64

/* ---- hello --------------------------------------------------------------------------------------------- */

/* The other one of a pair that the peer has opened. */
static struct ofi_link *find_other(const struct ofi_link *link, enum ofi_link_kind kind)
{
    for (struct ofi_link *at = link->domain->links; at; at = at->next)
        if (at->kind == kind && at->state == OFI_LINK_UP && at->endpoint == link->endpoint && !at->other &&
            !memcmp(at->hello.id, link->hello.id, sizeof link->hello.id) &&
            !memcmp(&at->peer, &link->peer, sizeof link->peer))
            return at;
    return NULL;
}

static struct ofi_endpoint *find_endpoint(const struct ofi_domain *domain, const struct ofi_hello *hello)
{
    static const uint8_t none[OFI_TOKEN_BYTES];
    if (!memcmp(hello->token, none, sizeof none))
        return domain->has_port ? domain->endpoints : NULL;
    struct ofi_endpoint *endpoint = domain->endpoints;
    while (endpoint && memcmp(endpoint->name.token, hello->token, sizeof hello->token))
        endpoint = endpoint->next;
    return endpoint;
}

static bool on_hello(struct ofi_link *link, size_t bytes)
{
    struct ofi_domain *domain = link->domain;
    memcpy(&link->hello, link->memory, sizeof link->hello);
    const struct ofi_hello *hello = &link->hello;
    struct ofi_endpoint *endpoint = bytes == sizeof *hello ? find_endpoint(domain, hello) : NULL;
    if (!endpoint || endpoint->is_closing || !endpoint->is_enabled || hello->is_bulk > 1 ||
        memcmp(hello->magic, domain->name.magic, sizeof hello->magic) || !ofi_name_is_valid(&hello->from)) {
        ofi_link_fail(link, "refused", -LH_EHANDSHAKE, "it does not know the address of an endpoint");
        return true;
    }
    domain->strangers--;
    link->endpoint = endpoint;
    link->peer = hello->from;
    ofi_av_note(endpoint->av, ofi_av_find(endpoint->av, &link->peer), 0);
    link->kind = hello->is_bulk ? OFI_LINK_IN_BULK : OFI_LINK_IN_FRAMES;
    link->other = find_other(link, hello->is_bulk ? OFI_LINK_IN_FRAMES : OFI_LINK_IN_BULK);
    if (link->other) {
        link->other->other = link;
        ofi_link_add_work(link->other);
    }
    if (!ofi_link_make_slots(link, hello->is_bulk ? 0 : OFI_SLOTS_IN, OFI_FRAME_BYTES) && !hello->is_bulk)
        ofi_link_fail(link, "accept", -LH_ENOMEM, "out of memory");
    ofi_link_add_work(link);
    return true;
}

void ofi_link_accept(struct ofi_domain *domain, struct lh_connection *connection)
{
    pthread_mutex_lock(&domain->lock);
    struct ofi_link *oldest = NULL;
    for (struct ofi_link *at = domain->links; at; at = at->next)
        if (at->kind == OFI_LINK_NEW && at->state == OFI_LINK_UP)
            oldest = at;
    if (oldest && domain->strangers >= STRANGERS_MAX)
        ofi_link_fail(oldest, "refused", -LH_EHANDSHAKE, "it has sent no hello");
    struct ofi_link *link = ofi_link_new(domain, OFI_LINK_NEW);
    if (link) {
        domain->strangers++;
        link->connection = connection;
        link->state = OFI_LINK_UP;
        link->on_hello = on_hello;
        if (!ofi_link_make_slots(link, 1, sizeof(struct ofi_hello)))
            ofi_link_fail(link, "accept", -LH_ENOMEM, "out of memory");
        ofi_link_add_work(link);
        ofi_link_work(domain);
    }
    pthread_mutex_unlock(&domain->lock);
    if (!link)
        lh_close(connection);
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

static int send_hello(struct ofi_link *link)
{
    struct lh_part part = {.address = &link->hello, .bytes = sizeof link->hello};
    link->hello_transfer = (struct ofi_transfer){OFI_CONTROL_SEND, link, NULL};
    return ofi_link_post(link, &part, 1, &link->hello_transfer);
}

/* Locked: lh_connect() has succeeded. */
static void on_connected(struct ofi_link *link)
{
    int error = 0;
    link->state = OFI_LINK_UP;
    if (link->kind == OFI_LINK_OUT_FRAMES &&
        !ofi_link_make_slots(link, OFI_SLOTS_OUT, sizeof(struct ofi_frame)))
        error = -LH_ENOMEM;
    if (!error)
        error = send_hello(link);
    if (error)
        ofi_link_fail(link, "connect", error, lh_strerror(error));
    else if (link->kind == OFI_LINK_OUT_FRAMES)
        ofi_av_note(link->endpoint->av, link->address, 0);
    ofi_link_add_work(link->kind == OFI_LINK_OUT_BULK && link->other ? link->other : link);
}

static int connect_link(struct ofi_link *link, struct lh_connection **connection)
{
    struct ofi_domain *domain = link->domain;
    const struct plugin_settings *settings = &domain->fabric->settings;
    struct lh_attr attr;
    struct lh_security security;
    char where[OFI_WHERE_MAX];
    plugin_settings_attr(settings, &attr, &security);
    attr.link = settings->link;
    attr.engine = domain->engine;
    if (!strncmp(settings->congestion, "fixed", 5))
        attr.rate_bps = settings->rate_bps;
    if (link->kind == OFI_LINK_OUT_FRAMES) { /* frames are small: few slots, of few bytes */
        attr.slots = 16;
        attr.slot_bytes = 65536;
    }
    ofi_name_where(&link->peer, where);
    return lh_connect(where, &attr, CONNECT_TIMEOUT_NS, connection);
}

/* Connects the links that wait, until none does. */
static void *connect_run(void *context)
{
    struct ofi_domain *domain = context;
    pthread_mutex_lock(&domain->lock);
    while (domain->first_connect) {
        struct ofi_link *link = domain->first_connect;
        domain->first_connect = link->next_connect;
        if (!domain->first_connect)
            domain->last_connect = NULL;
        int error = -LH_ECANCELED;
        if (link->state == OFI_LINK_CONNECTING) {
            struct lh_connection *connection = NULL;
            pthread_mutex_unlock(&domain->lock);
            error = connect_link(link, &connection);
            pthread_mutex_lock(&domain->lock);
            link->connection = connection;
        }
        link->is_in_thread = false;
        if (!error && link->state == OFI_LINK_CONNECTING)
            on_connected(link);
        else if (error)
            ofi_link_fail(link, "connect", error, lh_last_error());
        ofi_link_work(domain);
        pthread_cond_signal(&domain->wake);
        pthread_cond_broadcast(&domain->changed);
    }
    domain->connecting--;
    pthread_cond_broadcast(&domain->changed);
    pthread_mutex_unlock(&domain->lock);
    return NULL;
}

/* -FI_EAGAIN: no thread can start. */
static int start_connect(struct ofi_link *link)
{
    struct ofi_domain *domain = link->domain;
    pthread_t thread;
    if (domain->connecting < CONNECTS_MAX) {
        if (!pthread_create(&thread, NULL, connect_run, domain)) {
            pthread_detach(thread);
            domain->connecting++;
        } else if (domain->connecting == 0) {
            return -FI_EAGAIN;
        }
    }
    link->is_in_thread = true;
    if (domain->last_connect)
        domain->last_connect->next_connect = link;
    else
        domain->first_connect = link;
    domain->last_connect = link;
    return 0;
}

static int open_link(struct ofi_endpoint *endpoint, enum ofi_link_kind kind, const struct ofi_name *peer,
                     const uint8_t *id, struct ofi_link **out)
{
    struct ofi_link *link = ofi_link_new(endpoint->domain, kind);
    if (!link)
        return -FI_ENOMEM;
    link->endpoint = endpoint;
    link->peer = *peer;
    link->hello.is_bulk = kind == OFI_LINK_OUT_BULK;
    link->hello.from = endpoint->name;
    memcpy(link->hello.magic, peer->magic, sizeof link->hello.magic);
    memcpy(link->hello.token, peer->token, sizeof link->hello.token);
    int error = 0;
    if (id)
        memcpy(link->hello.id, id, sizeof link->hello.id);
    else if (getrandom(link->hello.id, sizeof link->hello.id, 0) != sizeof link->hello.id)
        error = -FI_EIO;
    if (!error)
        error = start_connect(link);
    if (error) {
        endpoint->domain->links = link->next; /* it is the first */
        free(link);
        return error;
    }
    *out = link;
    return 0;
}

static int find_out(struct ofi_endpoint *endpoint, fi_addr_t address, struct ofi_link **out)
{
    const struct ofi_address *peer = ofi_av_address(endpoint->av, address);
    if (!peer)
        return -FI_EINVAL;
    if (address >= endpoint->out_count) {
        size_t count = endpoint->av->capacity;
        struct ofi_link **larger = realloc(endpoint->out, count * sizeof(*larger)); // NOLINT: of pointers
        if (!larger)
            return -FI_ENOMEM;
        for (size_t i = endpoint->out_count; i < count; i++)
            larger[i] = NULL;
        endpoint->out = larger;
        endpoint->out_count = count;
    }
    *out = endpoint->out[address];
    if (*out && (*out)->generation == peer->generation)
        return 0;
    if (*out)
        ofi_link_end(*out, -LH_ECLOSED);
    int error = open_link(endpoint, OFI_LINK_OUT_FRAMES, &peer->name, NULL, out);
    if (error)
        return error;
    (*out)->address = address;
    (*out)->generation = peer->generation;
    endpoint->out[address] = *out;
    return 0;
}

/* ---- sending ------------------------------------------------------------------------------------------- */

static void describe(struct ofi_operation *operation)
{
    bool has_data = operation->flags & FI_REMOTE_CQ_DATA;
    const struct ofi_frame frame = {
        .kind = operation->is_rendezvous ? OFI_FRAME_RENDEZVOUS : OFI_FRAME_EAGER,
        .flags = (uint8_t)((operation->flags & FI_TAGGED ? OFI_FRAME_TAGGED : 0) |
                           (has_data ? OFI_FRAME_DATA : 0)),
        .tag = operation->tag,
        .data = operation->data,
        .bytes = operation->bytes,
        .id = ++operation->endpoint->next_id,
    };
    operation->frame = ofi_frame_to_wire(&frame);
}

int ofi_link_send(struct ofi_operation *operation)
{
    struct ofi_endpoint *endpoint = operation->endpoint;
    struct ofi_link *link = NULL;
    int error = find_out(endpoint, operation->address, &link);
    if (!error && operation->is_rendezvous && operation->bytes && !link->other) {
        error = open_link(endpoint, OFI_LINK_OUT_BULK, &link->peer, link->hello.id, &link->other);
        if (!error)
            link->other->other = link;
    }
    if (error)
        return error;
    describe(operation);
    if (link->state == OFI_LINK_CONNECTING || link->unsent.first) {
        if (link->unsent_count >= OFI_QUEUED_MAX)
            return -FI_EAGAIN;
        ofi_list_add(&link->unsent, operation);
        link->unsent_count++;
    } else {
        error = ofi_link_send_frame(link, operation);
        if (error && !ofi_is_exhaustion(error))
            ofi_link_fail(link, "send", error, lh_last_error());
    }
    endpoint->unsent += !error && !operation->is_rendezvous;
    return ofi_is_exhaustion(error) ? -FI_EAGAIN : ofi_error(error);
}
