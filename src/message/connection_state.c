/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/connection_state.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/types.h>
#include <sdr.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/min_max.h"
#include "control/message_control.h"
#include "keys/pair_keys.h"
#include "message/attributes.h"
#include "message/engine.h"
#include "message/matching.h"
#include "message/onesided_operations.h"
#include "message/parity_coding.h"
#include "message/requests.h"
#include "message/rx_messages.h"
#include "message/rx_receiver.h"
#include "message/rx_state.h"
#include "message/small_messages.h"
#include "message/tx_sender.h"
#include "message/tx_state.h"
#include "sdr/sdr_driver.h"
#include "store/store.h"
#include "wire/qp_info.h"

/* ---- effects --------------------------------------------------------------------------------------- */

static void finish_requests(struct lh_connection *c)
{
    struct message_request *finished = c->effects.finished;
    if (!finished)
        return;
    c->effects.finished = NULL;
    if (c->parent)
        finished = onesided_on_done(c->onesided, finished);
    requests_finish(finished);
    idle_note(&c->idle);
}

void connection_end_all(struct lh_connection *c, int error)
{
    lh_time now = lh_sdr_now(c->context);
    sender_end_all(&c->tx, error, now);
    receiver_end_all(&c->rx, error, now);
    matching_end_all(&c->small.matching, error, now);
    if (c->parent)
        onesided_end_all(c->onesided, error, now);
    finish_requests(c);
}

size_t effects_make_last(struct lh_connection *c, uint8_t last[CONNECTION_LAST_MAX])
{
    const struct transfer_message done = done_last(&c->rx);
    size_t bytes = transfer_encode(&done, last);
    return bytes + small_messages_last(&c->small, last + bytes);
}

/* Afterwards what failed is over, like what arrived. Without memory the peer learns nothing new. */
static void keep_last(struct lh_connection *c)
{
    c->last = store_try(&c->store, CONNECTION_LAST_MAX);
    if (c->last)
        c->last_bytes = effects_make_last(c, c->last);
}

static void fail_one(struct lh_connection *c, enum lh_error error, const char *reason)
{
    if (c->error)
        return;
    effects_fail(&c->effects, error, reason);
    c->error = -c->effects.failure;
    keep_last(c);
    connection_end_all(c, c->error);
    small_messages_free(&c->small);
    idle_note(&c->idle); /* what is still held is given back when nothing reads it any more */
    if (lh_sdr_error(c->qp) == 0)
        lh_sdr_goodbye(c->qp, error);
}

void connection_fail(struct lh_connection *c, enum lh_error error, const char *reason)
{
    struct lh_connection *sub = c->onesided_parent.sub;
    fail_one(c, error, reason);
    if (!sub)
        return;
    pthread_mutex_lock(&sub->requests->lock);
    fail_one(sub, error, reason);
    pthread_mutex_unlock(&sub->requests->lock);
}

static void carry_out_failure(struct lh_connection *c, const struct effects *effects)
{
    const struct keepalive *keepalive = &c->keepalive;
    /* First by the stream: the packets of a close carry no reason. */
    if (effects->failure == LH_EPATH && keepalive->control_connection_ops)
        keepalive->control_connection_ops->refuse(keepalive->control_connection, effects_reason(effects));
    connection_fail(c, (enum lh_error)effects->failure, effects_reason(effects));
}

void effects_carry_out(struct lh_connection *c)
{
    finish_requests(c);
    if (c->effects.failure && !c->error)
        carry_out_failure(c, &c->effects);
}

/* ---- storage --------------------------------------------------------------------------------------- */

int storage_hold_send(struct lh_connection *c, uint32_t count)
{
    idle_note(&c->idle);
    return sender_hold(&c->tx, count);
}

int storage_hold_recv(struct lh_connection *c, uint32_t count)
{
    idle_note(&c->idle);
    int error = matching_hold(&c->small.matching);
    return error ? error : receiver_hold(&c->rx, count);
}

void storage_on_request_free(struct lh_connection *c)
{
    bool at_rest = c->idle.at == LH_TIME_NEVER;
    idle_note(&c->idle);
    if (!at_rest)
        return; /* a step is due in any case */
    c->needs_step = true;
    sdr_qp_driver_kick(c->qp);
}

static void give_back(struct lh_connection *c)
{
    sender_give_back(&c->tx);
    if (c->small.matching.waiting.count == 0)
        receiver_give_back(&c->rx);
    coder_give_back(c->coder);
    parity_give_back(&c->parity);
    requests_give_back(c->requests);
    small_messages_give_back(&c->small);
    matching_give_back(&c->small.matching);
}

static lh_time give_back_idle(struct lh_connection *c, lh_time now)
{
    if (!idle_is_over(&c->idle, now))
        return c->idle.at;
    give_back(c);
    /* What ends without a request: sends that were aborted, refusals. */
    if (c->requests->pending == 0 && (c->tx.segments || c->rx.segments))
        idle_note(&c->idle);
    return c->idle.at;
}

static uint64_t refusals_of(const struct lh_connection *c)
{
    return atomic_load_explicit(&c->store.refusals, memory_order_relaxed);
}

/* What is repeated does not count. */
static uint64_t moved_by(const struct lh_connection *c)
{
    return sdr_qp_rx_new_packets(c->qp) + (c->tx.posted_bytes - c->stats->tx_retransmitted_bytes) +
           c->stats->messages_sent + c->stats->messages_received + c->stats->messages_failed;
}

static void look_at_stall(struct lh_connection *c, lh_time now)
{
    struct store *whole = c->store.whole;
    struct storage_stall before = c->stall;
    c->stall = (struct storage_stall){
        .look_at = LH_TIME_NEVER,
        .refusals = refusals_of(c),
        .yields = atomic_load_explicit(&whole->yields, memory_order_relaxed),
        .moved = moved_by(c),
    };
    if (c->stall.refusals == before.refusals || c->requests->pending == 0)
        return;
    c->stall.look_at = now + c->attr.peer_timeout_ns;
    if (before.look_at == LH_TIME_NEVER || c->stall.yields != before.yields ||
        c->stall.moved != before.moved)
        return;
    atomic_fetch_add_explicit(&whole->yields, 1, memory_order_relaxed);
    connection_fail(c, LH_ENOMEM,
                    "no memory for its messages, and other connections released none (raise "
                    "lh_engine_attr.memory_bytes, or open fewer connections)");
}

lh_time storage_step(struct lh_connection *c, lh_time now)
{
    lh_time next = give_back_idle(c, now);
    bool watched = c->stall.look_at != LH_TIME_NEVER;
    if (c->error || c->attr.peer_timeout_ns == LH_TIME_NEVER)
        return next;
    if (watched ? c->stall.look_at <= now : refusals_of(c) != c->stall.refusals)
        look_at_stall(c, now);
    lh_keep_earlier(&next, c->stall.look_at);
    return next;
}

/* Messages of the peer and its clear-to-sends are of no use any more: as many as the queue and its window
 * hold. */
static void drop_unread(struct lh_connection *c)
{
    size_t bytes;
    uint32_t unread = 0;
    while (sdr_qp_message_peek(c->qp, unread, &bytes))
        unread++;
    sdr_qp_messages_drop(c->qp, unread);
    while (lh_sdr_cts_skip(c->qp) == 0)
        ;
}

lh_time storage_step_ended(struct lh_connection *c, lh_time now)
{
    drop_unread(c);
    sender_quiesce(&c->tx);
    receiver_quiesce(&c->rx);
    give_back(c);
    return storage_step(c, now);
}

/* ---- blob ------------------------------------------------------------------------------------------ */

#define BLOB_HEADER_BYTES 8u

#define BLOB_MAGIC   0x4C484331u /* "LHC1" */
#define BLOB_VERSION 1u

static_assert(BLOB_HEADER_BYTES + QP_INFO_BYTES_MAX + BLOB_KEY_BYTES <= LH_BLOB_MAX, "any blob fits");

static size_t blob_bytes(const struct lh_connection *c)
{
    size_t info_bytes;
    sdr_qp_info_size_get(c->qp, &info_bytes);
    return BLOB_HEADER_BYTES + info_bytes + (c->key ? BLOB_KEY_BYTES : 0);
}

static void blob_encode(const struct lh_connection *c, uint8_t *out)
{
    unsigned flags = BLOB_TAGS | BLOB_EAGER | BLOB_MATCH | BLOB_ONESIDED | BLOB_KEEPALIVE | BLOB_PARTS;
    flags |= scheme_announcements();
    flags |= c->attr.match_tags ? BLOB_MATCHES : 0;
    flags |= sdr_qp_can_take_long(c->qp) ? BLOB_LONG : 0;
    flags |= sdr_qp_can_take_pieces(c->qp) ? BLOB_PIECES : 0;
    flags |= c->key ? BLOB_SECURED : 0;
    flags |= c->loopback_only ? BLOB_LOCAL : 0;
    lh_put_be32(out, BLOB_MAGIC);
    lh_put_be16(out + 4, BLOB_VERSION);
    lh_put_be16(out + 6, (uint16_t)flags);
    sdr_qp_info_get(c->qp, out + BLOB_HEADER_BYTES);
    if (c->key)
        memcpy(out + blob_bytes(c) - BLOB_KEY_BYTES, blob_key_part(c->key), BLOB_KEY_BYTES);
}

/* The blob of an endpoint with a key, which stays the same. */
static int secured_blob(struct lh_connection *c, const uint8_t **blob)
{
    uint8_t made[LH_BLOB_MAX];
    size_t bytes;
    *blob = blob_key_given(c->key, &bytes);
    if (bytes > 0)
        return 0;
    blob_encode(c, made);
    return blob_key_give(c->key, made, blob_bytes(c));
}

int lh_blob(struct lh_connection *connection, void *blob, size_t *bytes)
{
    size_t needed = blob_bytes(connection);
    const uint8_t *given = NULL;
    if (*bytes < needed)
        return lh_fail(LH_ERANGE, "blob of %zu bytes: exceeds the buffer of %zu (use LH_BLOB_MAX)", needed,
                       *bytes);
    int error = connection->key ? secured_blob(connection, &given) : 0;
    if (error)
        return error;
    if (given)
        memcpy(blob, given, needed);
    else
        blob_encode(connection, blob);
    *bytes = needed;
    return 0;
}

/* flags: those of the peer, with any that this side does not know. -LH_EHANDSHAKE, -LH_EVERSION. */
static int blob_decode(const uint8_t *blob, size_t bytes, struct qp_info *info, uint16_t *flags)
{
    if (bytes <= BLOB_HEADER_BYTES || bytes > LH_BLOB_MAX || lh_get_be32(blob) != BLOB_MAGIC)
        return lh_fail(LH_EHANDSHAKE, "malformed connection blob of %zu bytes", bytes);
    if (lh_get_be16(blob + 4) != BLOB_VERSION)
        return lh_fail(LH_EVERSION, "peer's blob has version %u, this side %u (use the same Longhaul)",
                       lh_get_be16(blob + 4), BLOB_VERSION);
    *flags = lh_get_be16(blob + 6);
    size_t ends = *flags & BLOB_SECURED ? BLOB_KEY_BYTES : 0;
    if (bytes <= BLOB_HEADER_BYTES + ends)
        return lh_fail(LH_EHANDSHAKE, "malformed connection blob of %zu bytes", bytes);
    return qp_info_decode(blob + BLOB_HEADER_BYTES, bytes - BLOB_HEADER_BYTES - ends, info);
}

/* ---- attach ------------------------------------------------------------------------------------------ */

static void name_peer(struct lh_connection *c, const struct qp_info_endpoint *peer)
{
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(peer->family == 4 ? AF_INET : AF_INET6, peer->address, text, sizeof text);
    snprintf(c->peer_name, sizeof c->peer_name, peer->family == 4 ? "%s:%u" : "[%s]:%u", text,
             peer->control_port);
}

/* Messages to this side come by its scheme. */
static int check_scheme(struct lh_connection *c)
{
    c->rx.peer_announced = c->peer_flags & scheme_announcements();
    if (scheme_is_known(&c->choice, c->rx.peer_announced))
        return 0;
    return lh_fail(
        LH_EVERSION,
        "reliability scheme %s: unknown to the peer (use another one, or the same Longhaul at both "
        "ends)",
        c->choice.scheme->name);
}

/* On this host: with a loopback address, or this side's own. */
static bool is_local(const struct lh_connection *c, const struct qp_info_endpoint *peer)
{
    struct qp_info own;
    uint8_t encoded[QP_INFO_BYTES_MAX];
    size_t bytes;
    if (peer->family == 4 ? peer->address[0] == IN_LOOPBACKNET
                          : !memcmp(peer->address, &in6addr_loopback, sizeof peer->address))
        return true;
    sdr_qp_info_size_get(c->qp, &bytes);
    sdr_qp_info_get(c->qp, encoded);
    return qp_info_decode(encoded, bytes, &own) == 0 && own.endpoint.family == peer->family &&
           !memcmp(own.endpoint.address, peer->address, sizeof peer->address);
}

static int check_security(const struct lh_connection *c, const struct qp_info_endpoint *peer)
{
    bool secured = c->peer_flags & BLOB_SECURED;
    if (!c->key != !secured)
        return lh_fail(LH_EHANDSHAKE, "%s encrypts, %s does not (give both sides the same key)",
                       secured ? "the peer" : "this side", secured ? "this side" : "the peer");
    /* If the peer alone refuses, it never answers: this side says why. */
    if (secured || !(c->loopback_only || (c->peer_flags & BLOB_LOCAL)) || is_local(c, peer))
        return 0;
    return lh_fail(LH_EHANDSHAKE,
                   "not encrypted: peers on other hosts are refused%s (give both sides the same key, or "
                   "set security.loopback_only to false: --insecure)",
                   c->loopback_only ? "" : " by the peer");
}

int connection_encrypt(struct lh_connection *c, const uint8_t secret[SDR_SECRET_BYTES], bool connecting)
{
    int error = sdr_secret_derive(secret, "lh sub", c->sub_secret);
    if (!error)
        error = sdr_qp_secure(c->qp, secret, connecting);
    c->encrypted = !error;
    c->connecting = connecting;
    return error;
}

/* Both sides compute the secret. */
static int meet(struct lh_connection *c, const void *blob, size_t bytes)
{
    uint8_t secret[PAIR_SECRET_BYTES];
    const uint8_t *own;
    int error = secured_blob(c, &own);
    if (error)
        return error;
    int rank = blob_key_meet(c->key, blob, bytes, secret);
    if (rank < 0)
        return rank;
    error = connection_encrypt(c, secret, rank == 0);
    explicit_bzero(secret, sizeof secret);
    return error;
}

int lh_attach(struct lh_connection *connection, const void *blob, size_t bytes)
{
    struct lh_connection *c = connection;
    struct qp_info peer;
    uint8_t copy[LH_BLOB_MAX];
    int error = engine_check_process(c->engine);
    if (error)
        return error;
    if (c->attached)
        return lh_fail(LH_ESTATE, "connection is attached already");
    if (c->key && blob_key_has_met(c->key)) /* its secret is for one peer */
        return lh_fail(LH_ESTATE, "connection could not be attached before (open another)");
    error = blob_decode(blob, bytes, &peer, &c->peer_flags);
    if (!error)
        error = check_security(c, &peer.endpoint);
    if (!error)
        error = check_scheme(c);
    if (!error)
        error = matching_start(&c->small.matching, c->peer_flags & BLOB_MATCH);
    if (error)
        return error;
    c->tx.outgoing.matched = c->peer_flags & BLOB_MATCHES;
    if (peer.slot_bytes != c->attr.slot_bytes)
        return lh_fail(LH_EHANDSHAKE,
                       "slot size mismatch: peer %llu bytes, this side %llu (use the same on both)",
                       (unsigned long long)peer.slot_bytes, (unsigned long long)c->attr.slot_bytes);
    error = c->key ? meet(c, blob, bytes) : 0;
    if (error)
        return error; /* what is not authentic leaves nothing behind */
    /* Behind NAT its own address is only what it says, and many have the same. */
    struct qp_info_endpoint known = peer.endpoint;
    if (c->seen_family == known.family && sdr_qp_peer_may_be_translated(c->qp, &known) &&
        memcmp(c->seen_address, known.address, sizeof known.address) != 0) {
        sdr_qp_peer_seen_at(c->qp, c->seen_address);
        memcpy(known.address, c->seen_address, sizeof known.address);
    }
    memcpy(copy, blob, bytes);
    path_memory_load(c->path_memory, c->qp, &known);
    if (c->peer_flags & BLOB_KEEPALIVE)
        sdr_qp_keepalive_asked_for(c->qp);
    if (c->peer_flags & BLOB_PARTS)
        sdr_qp_takes_parts(c->qp);
    if ((c->peer_flags & BLOB_PIECES) && sdr_qp_can_take_pieces(c->qp))
        sdr_qp_takes_pieces(c->qp);
    c->small.packet_max = eager_packet_max(c->attr.mtu_bytes);
    if ((c->peer_flags & BLOB_LONG) && sdr_qp_can_take_long(c->qp))
        c->small.packet_max = sdr_qp_takes_long(c->qp);
    error = lh_sdr_qp_connect(c->qp, copy + BLOB_HEADER_BYTES);
    if (error)
        return error;
    pthread_mutex_lock(&c->requests->lock);
    name_peer(c, &peer.endpoint);
    c->attached = true;
    small_messages_start(&c->small, c->peer_flags & BLOB_EAGER);
    keepalive_start(&c->keepalive, c->qp, c->attr.peer_timeout_ns, lh_sdr_now(c->context));
    pthread_mutex_unlock(&c->requests->lock);
    return sdr_qp_driver_set(c->qp, c->step, c);
}
