/*
 * The blob: magic 4 ("LHC1") | version 2 | zero 2 | the QP's info.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/connection.h"

#include <assert.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "connection/attr.h"
#include "connection/auto_scheme.h"
#include "connection/done.h"
#include "connection/injector.h"
#include "connection/liveness.h"
#include "connection/receiver.h"
#include "connection/sender.h"
#include "connection/step.h"
#include "connection/tell.h"
#include "connection/verdict.h"
#include "sdr/driver.h"
#include "wire/qp_info.h"

#define BLOB_MAGIC        0x4C484331u /* "LHC1" */
#define BLOB_VERSION      1u
#define BLOB_HEADER_BYTES 8u
#define FIRST_REPEAT_NS   (100 * LH_NS_PER_MS) /* before the first round-trip sample */
#define BACKOFF_MAX       6u                   /* 2^6 */
#define LAST_WORDS        3u                   /* times: none is answered */

static_assert(BLOB_HEADER_BYTES + QP_INFO_BYTES_MAX <= LH_BLOB_MAX, "any blob fits");

/* ---- what its files share ---------------------------------------------------------------------------- */

lh_time connection_repeat_span(const struct lh_connection *c, uint32_t repeats)
{
    lh_time span = c->path.overdue_ns ? c->path.overdue_ns : FIRST_REPEAT_NS;
    return span << (repeats < BACKOFF_MAX ? repeats : BACKOFF_MAX);
}

struct lh_path_view connection_path_view(const struct lh_connection *c)
{
    return (struct lh_path_view){
        .rtt_ns = c->path.rtt_ns,
        .rtt_minimum_ns = c->path.rtt_minimum_ns,
        .overdue_ns = c->path.overdue_ns,
        .reorder_window_ns = c->path.reorder_window_ns,
    };
}

static void end_all(struct lh_connection *c, int error)
{
    lh_time now = lh_sdr_now(c->context);
    sender_end_all(c, error, now);
    receiver_end_all(c, error, now);
}

void connection_fail(struct lh_connection *c, enum lh_error error, const char *reason)
{
    if (c->error)
        return;
    c->error = -(int)error;
    snprintf(c->reason, sizeof c->reason, "%s", reason);
    c->last_word = done_last(c); /* afterwards what failed is over, like what arrived */
    end_all(c, c->error);
    if (lh_sdr_error(c->qp) == 0)
        lh_sdr_goodbye(c->qp, error);
}

void connection_cancel(struct lh_connection *c, struct lh_request *request)
{
    assert(c && !c->error);
    lh_time now = lh_sdr_now(c->context);
    if (request->sending)
        verdict_cancel(c, send_message_at(c, request->message), LH_ECANCELED, now);
    else
        verdict_refuse(c, recv_message_at(c, request->message), LH_ECANCELED, now);
    c->touched = true;
    sdr_qp_driver_kick(c->qp);
}

void connection_set_lifeline(struct lh_connection *c, const struct lifeline_ops *ops, void *lifeline,
                             const char *peer_name)
{
    pthread_mutex_lock(&c->requests->lock);
    c->liveness.lifeline_ops = ops;
    c->liveness.lifeline = lifeline;
    snprintf(c->peer_name, sizeof c->peer_name, "%s", peer_name);
    pthread_mutex_unlock(&c->requests->lock);
    sdr_qp_driver_kick(c->qp);
}

/* ---- open -------------------------------------------------------------------------------------------- */

static int keep_texts(struct lh_connection *c)
{
    const char *reliability = c->attr.reliability ? c->attr.reliability : c->choice.scheme->name;
    if (!c->attr.device)
        return lh_fail(LH_EDEVICE, "no device: name one, such as udp:127.0.0.1");
    if (strlen(c->attr.device) >= sizeof c->device || strlen(reliability) >= sizeof c->reliability)
        return lh_fail(LH_EINVAL, "device or reliability is longer than %u characters",
                       CONNECTION_TEXT_MAX - 1);
    snprintf(c->device, sizeof c->device, "%s", c->attr.device);
    snprintf(c->reliability, sizeof c->reliability, "%s", reliability);
    c->attr.device = c->device;
    c->attr.reliability = c->reliability;
    return 0;
}

static int settle_attr(struct lh_connection *c, const struct lh_attr *attr)
{
    int error = attr_check(attr, &c->attr);
    if (!error)
        error = attr_complete(&c->attr);
    if (!error)
        error = scheme_choose(&c->attr, &c->choice);
    return error ? error : keep_texts(c);
}

static int create_context(struct lh_connection *c)
{
    struct lh_context_attr attr = {
        .channels = c->attr.channels,
        .workers = c->attr.workers == LH_NO_WORKERS ? LH_SDR_NO_WORKERS : c->attr.workers,
        .worker_cpus = c->attr.worker_cpus,
        .receive_buffer_bytes = c->attr.receive_buffer_bytes,
        .link = c->attr.link,
    };
    c->attr.worker_cpus = NULL; /* the caller's array need not live on */
    return lh_sdr_context_create(c->device, &attr, &c->context);
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
    };
    return lh_sdr_qp_create(c->context, &attr, &more, &c->qp);
}

static void free_memory(struct lh_connection *c)
{
    sender_free(c);
    receiver_free(c);
    auto_scheme_free(c);
    coder_destroy(c->coder);
    free(c);
}

static int create_all(struct lh_connection *c)
{
    int error = sender_init(c);
    if (!error)
        error = auto_scheme_init(c);
    if (!error)
        error = receiver_init(c);
    if (error)
        return error;
    c->coder = coder_create(c);
    if (!c->coder)
        return lh_fail(LH_ENOMEM, "no memory to encode and decode");
    error = create_context(c);
    if (error)
        return error;
    error = create_qp(c);
    if (error)
        goto destroy_context;
    c->requests = request_table_create(c, c->attr.workers != LH_NO_WORKERS);
    if (c->requests)
        return 0;
    error = lh_fail(LH_ENOMEM, "no memory for %u requests", LH_REQUESTS_MAX);
    sdr_qp_destroy(c->qp);
destroy_context:
    sdr_context_destroy(c->context);
    return error;
}

int lh_open(const struct lh_attr *attr, struct lh_connection **connection)
{
    struct lh_connection *c = calloc(1, sizeof *c);
    if (!c)
        return lh_fail(LH_ENOMEM, "no memory for a connection");
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

/* ---- blobs ------------------------------------------------------------------------------------------- */

int lh_blob(struct lh_connection *connection, void *blob, size_t *bytes)
{
    size_t info_bytes;
    sdr_qp_info_size_get(connection->qp, &info_bytes);
    size_t needed = BLOB_HEADER_BYTES + info_bytes;
    if (*bytes < needed)
        return lh_fail(LH_ERANGE, "blob of %zu bytes does not fit %zu: LH_BLOB_MAX always is enough",
                       needed, *bytes);
    uint8_t *out = blob;
    lh_put_be32(out, BLOB_MAGIC);
    lh_put_be16(out + 4, BLOB_VERSION);
    lh_put_be16(out + 6, 0);
    sdr_qp_info_get(connection->qp, out + BLOB_HEADER_BYTES);
    *bytes = needed;
    return 0;
}

static int decode_blob(const uint8_t *blob, size_t bytes, struct qp_info *info)
{
    if (bytes <= BLOB_HEADER_BYTES || bytes > LH_BLOB_MAX || lh_get_be32(blob) != BLOB_MAGIC)
        return lh_fail(LH_EHANDSHAKE, "%zu bytes are no blob of lh_blob()", bytes);
    if (lh_get_be16(blob + 4) != BLOB_VERSION)
        return lh_fail(LH_EVERSION, "peer's blob has version %u, this side %u: use the same Longhaul",
                       lh_get_be16(blob + 4), BLOB_VERSION);
    return qp_info_decode(blob + BLOB_HEADER_BYTES, bytes - BLOB_HEADER_BYTES, info);
}

static void name_peer(struct lh_connection *c, const struct qp_info_endpoint *peer)
{
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(peer->family == 4 ? AF_INET : AF_INET6, peer->address, text, sizeof text);
    snprintf(c->peer_name, sizeof c->peer_name, peer->family == 4 ? "%s:%u" : "[%s]:%u", text,
             peer->control_port);
}

int lh_attach(struct lh_connection *connection, const void *blob, size_t bytes)
{
    struct lh_connection *c = connection;
    struct qp_info peer;
    uint8_t copy[LH_BLOB_MAX];
    if (c->attached)
        return lh_fail(LH_ESTATE, "connection is attached already");
    int error = decode_blob(blob, bytes, &peer);
    if (error)
        return error;
    if (peer.slot_bytes != c->attr.slot_bytes)
        return lh_fail(LH_EHANDSHAKE, "peer has slots of %llu bytes, this side %llu: give both the same",
                       (unsigned long long)peer.slot_bytes, (unsigned long long)c->attr.slot_bytes);
    memcpy(copy, blob, bytes);
    error = lh_sdr_qp_connect(c->qp, copy + BLOB_HEADER_BYTES);
    if (error)
        return error;
    pthread_mutex_lock(&c->requests->lock);
    name_peer(c, &peer.endpoint);
    c->attached = true;
    liveness_start(c, lh_sdr_now(c->context));
    pthread_mutex_unlock(&c->requests->lock);
    return sdr_qp_driver_set(c->qp, connection_step, c);
}

/* ---- close ------------------------------------------------------------------------------------------- */

/* What has arrived counts, even if the packets that say so get lost: said a few times, and by the lifeline.
 */
static void say_goodbye(struct lh_connection *c, uint8_t last[TRANSFER_BYTES_MAX], size_t *bytes)
{
    struct transfer_message message = c->error ? c->last_word : done_last(c);
    *bytes = transfer_encode(&message, last);
    if (!c->attached || c->error)
        return;
    for (uint32_t i = 0; i < LAST_WORDS; i++)
        tell(c, &message);
}

void lh_close(struct lh_connection *connection)
{
    struct lh_connection *c = connection;
    uint8_t last[TRANSFER_BYTES_MAX];
    size_t bytes;
    if (!c)
        return;
    sdr_qp_driver_set(c->qp, NULL, NULL);
    pthread_mutex_lock(&c->requests->lock);
    say_goodbye(c, last, &bytes);
    end_all(c, -LH_ECLOSED);
    pthread_mutex_unlock(&c->requests->lock);
    if (c->liveness.lifeline_ops)
        c->liveness.lifeline_ops->close(c->liveness.lifeline, last, bytes);
    request_table_close(c->requests);
    coder_destroy(c->coder); /* its threads wake the queue pair's worker */
    c->coder = NULL;
    sdr_qp_destroy(c->qp);
    injector_close(c);
    parity_free_all(c);
    memory_free_all(c);
    sdr_context_destroy(c->context);
    free_memory(c);
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

int lh_connection_stats(struct lh_connection *connection, struct lh_stats *stats)
{
    int error = lh_sdr_stats(connection->qp, stats);
    if (error)
        return error;
    pthread_mutex_lock(&connection->requests->lock);
#define ADD_OWN(field, meaning) stats->field += connection->stats.field;
    LH_STATS(ADD_OWN)
#undef ADD_OWN
    pthread_mutex_unlock(&connection->requests->lock);
    return 0;
}

int lh_connection_path(struct lh_connection *connection, struct lh_path_view *path)
{
    struct lh_sdr_path measured;
    int error = lh_sdr_path(connection->qp, &measured);
    if (error)
        return error;
    *path = (struct lh_path_view){
        .rtt_ns = measured.rtt_ns,
        .rtt_minimum_ns = measured.rtt_minimum_ns,
        .overdue_ns = measured.overdue_ns,
        .reorder_window_ns = measured.reorder_window_ns,
    };
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
                connection->reason);
    pthread_mutex_unlock(&connection->requests->lock);
    return error;
}

const char *lh_connection_warning(struct lh_connection *connection)
{
    return lh_sdr_warning(connection->context);
}
