/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/connection_state.h"

#include <assert.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "device/device_registry.h"
#include "control/message_control.h"
#include "keys/key_file.h"
#include "keys/pair_keys.h"
#include "message/attributes.h"
#include "message/bottleneck.h"
#include "message/engine.h"
#include "message/rx_messages.h"
#include "message/rx_receiver.h"
#include "message/rx_state.h"
#include "message/tx_sender.h"
#include "sdr/sdr_driver.h"

#define LAST_MESSAGES    3u  /* times: none is answered */
#define SUB_CHANNELS_MAX 16u /* so that a blob fits a control message */

void connection_set_control_connection(struct lh_connection *c, const struct control_connection_ops *ops,
                                       void *control_connection, const char *peer_name)
{
    pthread_mutex_lock(&c->requests->lock);
    c->keepalive.control_connection_ops = ops;
    c->keepalive.control_connection = control_connection;
    snprintf(c->peer_name, sizeof c->peer_name, "%s", peer_name);
    pthread_mutex_unlock(&c->requests->lock);
    sdr_qp_driver_kick(c->qp);
}

void connection_control_changed(struct lh_connection *c)
{
    sdr_qp_driver_kick(c->qp);
}

/* ---- open -------------------------------------------------------------------------------------------- */

/* *text: an attribute of the user, which the copy replaces; or NULL. */
static int keep_text(const char **text, char **copy)
{
    if (!*text)
        return 0;
    size_t bytes = strlen(*text) + 1;
    if (bytes > CONNECTION_TEXT_MAX)
        return lh_fail(LH_EINVAL, "reliability or congestion is longer than %u characters",
                       CONNECTION_TEXT_MAX - 1);
    *copy = malloc(bytes); /* no strdup(): the fault world counts what is taken */
    if (!*copy)
        return lh_fail(LH_ENOMEM, "no memory for the names of reliability and congestion");
    *text = memcpy(*copy, *text, bytes);
    return 0;
}

static int keep_texts(struct lh_connection *c)
{
    int error = keep_text(&c->attr.reliability, &c->reliability);
    if (!error)
        error = keep_text(&c->attr.congestion, &c->congestion);
    if (!error)
        error = path_memory_create(&c->attr, &c->path_memory);
    if (!c->attr.reliability)
        c->attr.reliability = c->choice.automatic ? SCHEME_NAME_AUTO : c->choice.scheme->name;
    return error;
}

/* There is no rendezvous: the caller exchanges the blobs. */
static int read_security(struct lh_connection *c, const struct lh_security *security)
{
    struct key_group given;
    if (security->encryption == LH_ENCRYPTION_OFF) {
        c->loopback_only = security->loopback_only;
        return 0;
    }
    if (security->code)
        return lh_fail(LH_EINVAL,
                       "security.code: is for lh_listen() and lh_connect() (use a key file, or a secret)");
    if (security->encryption == LH_ENCRYPTION_AUTH)
        return lh_fail(LH_EINVAL, "security.encryption: LH_ENCRYPTION_AUTH has no effect here, the caller "
                                  "exchanges blobs (use LH_ENCRYPTION_FULL, or lh_listen() and "
                                  "lh_connect())");
    int error = key_group_given(security->secret, security->key_file, &given);
    if (!error)
        error = blob_key_create(&given, &c->key);
    key_group_wipe(&given);
    return error;
}

static int settle_attr(struct lh_connection *c, const struct lh_attr *attr)
{
    int error = attr_check(attr, &c->attr);
    if (!error && c->attr.security)
        error = read_security(c, c->attr.security);
    c->attr.security = NULL; /* the caller's */
    if (!error)
        error = engine_settle(&c->attr);
    if (!error)
        error = attr_complete(&c->attr);
    if (!error)
        error = scheme_choose(&c->attr, &c->choice);
    return error ? error : keep_texts(c);
}

static int create_qp(struct lh_connection *c)
{
    const struct sdr_qp_attr attr = {0};
    struct lh_qp_attr more = {
        .slots = c->attr.slots,
        .generations = c->attr.generations,
        .mtu_bytes = c->attr.mtu_bytes,
        .slot_bytes = c->attr.slot_bytes,
        .rate_bps = c->attr.rate_bps,
        .chunk_bytes = c->attr.chunk_bytes,
        .congestion = c->attr.congestion,
        .rate_max_bps = c->attr.rate_max_bps,
        .window_bytes = c->attr.window_bytes,
    };
    const struct sdr_qp_own own = {.channels = c->attr.channels, .link = c->attr.link, .store = &c->store};
    return sdr_qp_open(c->context, &attr, &more, &own, &c->qp);
}

/* The state of a sub-connection alone is behind its struct. */
static size_t struct_bytes(const struct lh_connection *parent)
{
    return sizeof *parent + (parent ? sizeof *parent->onesided : 0);
}

/* Of what it has while it is idle, too, beside the QP's. */
static size_t own_bytes(const struct lh_connection *c)
{
    return struct_bytes(c->parent) + sizeof *c->requests;
}

static void free_memory(struct lh_connection *c)
{
    store_give(&c->store, c->warning, WARNING_MAX);
    if (c->small.tx) { /* else the parts were not made */
        small_messages_free(&c->small);
        matching_give_back(&c->small.matching);
    }
    store_give(&c->store, c->last, CONNECTION_LAST_MAX);
    store_give(&c->store, c->effects.reason, REASON_MAX);
    free(c->reliability);
    free(c->congestion);
    free(c->path_memory);
    explicit_bzero(c->sub_secret, sizeof c->sub_secret);
    blob_key_free(c->key);
    coder_destroy(c->coder);
    if (c->counted)
        store_forget(&c->store, own_bytes(c));
    if (c->engine && !c->parent)
        engine_leave(c->engine);
    free(c);
}

static int create_parts(struct lh_connection *c)
{
    struct store *store = &c->store;
    c->coder = coder_create(&c->engine->coders, store);
    if (!c->coder)
        return -LH_ENOMEM;
    sender_init(&c->tx, &c->attr, &c->path, c->coder, &c->parity, store);
    receiver_init(&c->rx, &c->attr, &c->choice, &c->path, c->coder, &c->parity, store);
    c->tx.effects = c->rx.effects = &c->effects;
    c->effects.store = store;
    if (c->onesided)
        onesided_init(c->onesided, c->parent, &c->effects, store);
    small_messages_init(&c->small, &c->tx, &c->rx);
    idle_init(&c->idle);
    c->stall.look_at = LH_TIME_NEVER;
    return 0;
}

static void bind_parts(struct lh_connection *c)
{
    c->parity.context = c->context;
    c->parity.store = &c->store;
    coder_bind(c->coder, c->context, c->qp);
    c->tx.qp = c->qp;
    c->rx.qp = c->qp;
    c->stats = c->tx.stats = c->rx.stats = sdr_qp_stats(c->qp);
}

static int join_engine(struct lh_connection *c)
{
    int error = 0;
    if (c->parent)
        c->engine = c->parent->engine;
    else
        error = engine_join(&c->attr, &c->engine);
    if (error)
        return error;
    c->context = c->engine->context;
    store_init_part(&c->store, sdr_context_store(c->context));
    c->counted = store_count(&c->store, own_bytes(c));
    if (!c->counted)
        return -LH_ENOMEM;
    c->attr.device = c->engine->device;
    c->attr.worker_cpus = NULL; /* the caller's array need not live on */
    return 0;
}

static int create_all(struct lh_connection *c)
{
    int error = join_engine(c);
    if (!error && c->key)
        error = fabric_device_check_encrypts(c->attr.device);
    if (!error)
        error = create_parts(c);
    if (!error)
        error = create_qp(c);
    if (error)
        return error;
    bind_parts(c);
    c->requests = request_table_create(c, c->engine, &c->store);
    if (c->requests)
        return 0;
    sdr_qp_destroy(c->qp);
    return lh_fail(LH_ENOMEM, "no memory for %u requests", LH_REQUESTS_MAX);
}

/* parent: NULL, or the connection is opened as the sub-connection of it. */
static int open_connection(const struct lh_attr *attr, struct lh_connection *parent,
                           struct lh_connection **connection)
{
    struct lh_connection *c = calloc(1, struct_bytes(parent));
    if (!c)
        return lh_fail(LH_ENOMEM, "no memory for a connection");
    if (parent)
        c->onesided = (struct onesided *)(void *)(c + 1);
    c->parent = parent;
    c->step = connection_step;
    int error = settle_attr(c, attr);
    if (!error)
        error = create_all(c);
    if (error) {
        free_memory(c);
        return error;
    }
    *connection = c;
    return 0;
}

int lh_open(const struct lh_attr *attr, struct lh_connection **connection)
{
    return open_connection(attr, NULL, connection);
}

int connection_open_sub(struct lh_connection *parent, struct lh_connection **sub)
{
    struct lh_attr attr = parent->attr;
    attr.engine = parent->engine;
    attr.channels = (uint32_t)lh_min(attr.channels, SUB_CHANNELS_MAX);
    attr.path_file = NULL;
    attr.match_tags = false;
    if (parent->choice.scheme->deadline) /* operations are done when all bytes are there */
        attr.reliability = "auto";
    int error = open_connection(&attr, parent, sub);
    if (error)
        return error;
    struct lh_connection *c = *sub;
    /* Of all that are opened one alone is ever attached, so its keys are used once. */
    if (parent->encrypted) {
        error = sdr_qp_secure(c->qp, parent->sub_secret, parent->connecting);
        if (error) {
            lh_close(c);
            return error;
        }
    }
    c->encrypted = parent->encrypted;
    c->rx.placed_first = true; /* a write that is done has placed its bytes */
    connection_peer_seen_at(c, parent->seen_family, parent->seen_address);
    if (parent->punched)
        connection_punch(c);
    c->requests->owner = parent;
    return 0;
}

void connection_peer_seen_at(struct lh_connection *c, uint8_t family, const uint8_t address[16])
{
    c->seen_family = family;
    memcpy(c->seen_address, address, sizeof c->seen_address);
}

bool connection_peer_has_sent(struct lh_connection *c)
{
    struct lh_stats stats;
    return lh_sdr_stats(c->qp, &stats) == 0 && stats.rx_control > 0;
}

void connection_punch(struct lh_connection *c)
{
    c->punched = true;
    sdr_qp_punch(c->qp);
}

int connection_check(const struct lh_connection *c)
{
    if (c->error)
        return lh_fail((enum lh_error) - c->error, "connection has ended: %s", effects_reason(&c->effects));
    if (!c->attached)
        return lh_fail(LH_ESTATE, "connection is not attached yet: lh_attach() first");
    return 0;
}

/* ---- close ------------------------------------------------------------------------------------------- */

/* What has arrived counts, even if the packets that announce it get lost: sent a few times, and by the
 * control connection. */
static void send_fin(struct lh_connection *c, uint8_t last[TRANSFER_BYTES_MAX], size_t *bytes)
{
    *bytes = c->last_bytes;
    if (c->last_bytes > 0)
        memcpy(last, c->last, c->last_bytes);
    if (!c->error)
        *bytes = effects_make_last(c, last);
    if (!c->attached || c->error)
        return;
    for (uint32_t i = 0; i < LAST_MESSAGES; i++) {
        lh_sdr_message_send(c->qp, last, TRANSFER_DONE_BYTES);
        if (*bytes > TRANSFER_DONE_BYTES)
            lh_sdr_message_send(c->qp, last + TRANSFER_DONE_BYTES, *bytes - TRANSFER_DONE_BYTES);
    }
}

/* No step runs any more. */
static void close_one(struct lh_connection *c)
{
    uint8_t last[TRANSFER_BYTES_MAX];
    size_t bytes;
    pthread_mutex_lock(&c->requests->lock);
    send_fin(c, last, &bytes);
    connection_end_all(c, -LH_ECLOSED);
    pthread_mutex_unlock(&c->requests->lock);
    if (c->keepalive.control_connection_ops)
        c->keepalive.control_connection_ops->close(c->keepalive.control_connection, last, bytes);
    request_table_close(c->requests);
    coder_destroy(c->coder);
    c->coder = NULL;
    if (c->attached)
        path_memory_save(c->path_memory, c->qp, c->path.rtt_minimum_ns);
    sdr_qp_destroy(c->qp);
    sender_close(&c->tx);
    receiver_close(&c->rx);
    parity_free_all(&c->parity);
    if (c->parent)
        onesided_free_sub(c);
    onesided_free_parent(c);
    free_memory(c);
}

void lh_close(struct lh_connection *connection)
{
    struct lh_connection *c = connection;
    if (!c || engine_is_inherited(c->engine))
        return;
    struct lh_connection *sub = c->onesided_parent.sub;
    sdr_qp_driver_set(c->qp, NULL, NULL);
    if (sub)
        sdr_qp_driver_set(sub->qp, NULL, NULL);
    if (sub)
        close_one(sub);
    c->onesided_parent.sub = NULL;
    close_one(c);
}

/* ---- what can be asked ------------------------------------------------------------------------------- */

const char *lh_peer_name(const struct lh_connection *connection)
{
    return connection->peer_name;
}

int lh_progress(struct lh_connection *connection, lh_time *next_ns)
{
    return lh_sdr_progress(connection->context, next_ns);
}

lh_time lh_now(struct lh_connection *connection)
{
    return lh_sdr_now(connection->context);
}

/* Adds the counters of the sub-connection. */
static int add_stats(struct lh_connection *sub, struct lh_stats *stats)
{
    struct lh_stats own;
    int error = lh_connection_stats(sub, &own);
#define ADD(field, meaning) stats->field += own.field;
    if (!error) {
        LH_STATS(ADD)
    }
#undef ADD
    return error;
}

int lh_connection_stats(struct lh_connection *connection, struct lh_stats *stats)
{
    pthread_mutex_lock(&connection->requests->lock); /* under which the parts count */
    int error = lh_sdr_stats(connection->qp, stats);
    struct lh_connection *sub = connection->onesided_parent.sub;
    pthread_mutex_unlock(&connection->requests->lock);
    return !error && sub ? add_stats(sub, stats) : error;
}

int lh_connection_path(struct lh_connection *connection, struct lh_path_view *path)
{
    struct lh_sdr_path measured;
    int error = lh_sdr_path(connection->qp, &measured);
    if (error)
        return error;
    *path = timing_path_view(&measured);
    return 0;
}

int lh_connection_congestion(struct lh_connection *connection, struct lh_congestion_report *report)
{
    return lh_sdr_congestion(connection->qp, report);
}

static uint64_t lower_rate(uint64_t one_bps, uint64_t other_bps)
{
    return other_bps == 0 || (one_bps != 0 && one_bps < other_bps) ? one_bps : other_bps;
}

static void fill_bottleneck(const struct lh_connection *c, const struct lh_congestion_report *report,
                            const struct lh_stats *stats, struct lh_bottleneck_report *out)
{
    uint64_t pace_bps = report->rate_bps != LH_RATE_NONE ? report->rate_bps : 0;
    uint64_t link_bps = c->attr.link.rate_bps;
    uint32_t workers = c->attr.workers != LH_NO_WORKERS ? c->attr.workers : 0;
    const struct bottleneck_facts facts = {
        .given = !report->feedback && (pace_bps != 0 || link_bps != 0),
        .at_most = report->feedback && c->attr.rate_max_bps != 0 && pace_bps >= c->attr.rate_max_bps,
        .emulated = link_bps != 0,
        .queue_known = report->feedback,
        .standing_ns = report->queueing_delay_min_ns,
        .receiver_slow = report->receiver_rate_bps != 0,
        .loss_known = report->tells_loss,
        .random_loss = report->random_loss,
    };
    const struct bottleneck_times times = bottleneck_times_of(report->limited_ns, &c->tx.waits);
    uint64_t own_bps = facts.at_most      ? c->attr.rate_max_bps
                       : report->feedback ? report->bandwidth_bps
                                          : pace_bps;
    *out = (struct lh_bottleneck_report){
        .rate_bps = lower_rate(own_bps, link_bps),
        .rtt_ns = report->feedback ? report->rtt_minimum_ns : c->path.rtt_minimum_ns,
        .queueing_ns = report->queueing_delay_ns,
        .window_bytes = c->attr.window_bytes,
        .slots = c->attr.slots,
        .slot_bytes = c->attr.slot_bytes,
        .retransmitted =
            stats->tx_bytes ? (double)stats->tx_retransmitted_bytes / (double)stats->tx_bytes : 0,
        .receiver_drops = report->dropped_packets,
        .coded = stats->parity_chunks_sent > 0,
        .policed_rate_bps = report->policed_rate_bps,
        .processor_left = sdr_processors() > workers + 1, /* the caller takes one */
    };
    out->rate_best_bps = lh_max(out->rate_bps, lh_max(report->remembered_rate_bps, report->best_rate_bps));
    bottleneck_decide(&times, &facts, out);
}

int lh_connection_bottleneck(struct lh_connection *connection, struct lh_bottleneck_report *out)
{
    struct lh_connection *c = connection;
    struct lh_congestion_report report;
    struct lh_stats stats;
    int error = lh_sdr_congestion(c->qp, &report);
    if (!error)
        error = lh_connection_stats(c, &stats);
    if (error)
        return error;
    pthread_mutex_lock(&c->requests->lock);
    fill_bottleneck(c, &report, &stats, out);
    pthread_mutex_unlock(&c->requests->lock);
    return 0;
}

int lh_connection_attr(struct lh_connection *connection, struct lh_attr *attr)
{
    *attr = connection->attr;
    return 0;
}

int lh_connection_error(struct lh_connection *connection)
{
    pthread_mutex_lock(&connection->requests->lock);
    int error = connection->error;
    if (error)
        lh_fail((enum lh_error) - error, "connection to %s has ended: %s", connection->peer_name,
                effects_reason(&connection->effects));
    pthread_mutex_unlock(&connection->requests->lock);
    return error;
}

int lh_connection_scheme(struct lh_connection *connection, struct lh_scheme_report *out)
{
    pthread_mutex_lock(&connection->requests->lock);
    *out = (struct lh_scheme_report){.rtt_ns = connection->path.rtt_ns};
    if (connection->choice.automatic)
        auto_scheme_report(&connection->rx, out);
    else
        snprintf(out->scheme, sizeof out->scheme, "%s", connection->attr.reliability);
    pthread_mutex_unlock(&connection->requests->lock);
    return 0;
}

const char *lh_connection_warning(struct lh_connection *connection)
{
    struct lh_connection *c = connection;
    const char *fabric = lh_sdr_warning(c->context);
    pthread_mutex_lock(&c->requests->lock);
    bool sends = c->tx.next != 0;
    if (sends && !c->warning)
        c->warning = store_take(&c->store, WARNING_MAX);
    const struct warning_facts facts = {fabric, c->path.rtt_minimum_ns, sdr_qp_packet_bytes(c->qp)};
    const char *warning = c->warning ? warning_format(&c->attr, &facts, c->warning) : fabric;
    pthread_mutex_unlock(&c->requests->lock);
    return warning;
}
