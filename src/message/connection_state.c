/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/blob.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "message/connection.h"
#include "message/path_memory.h"
#include "message/scheme/scheme_choice.h"
#include "sdr/driver.h"

#define BLOB_MAGIC   0x4C484331u /* "LHC1" */
#define BLOB_VERSION 1u

static_assert(BLOB_HEADER_BYTES + QP_INFO_BYTES_MAX <= LH_BLOB_MAX, "any blob fits");

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
    lh_put_be16(out + 6, (uint16_t)(BLOB_TAGS | BLOB_EAGER | BLOB_MATCH | BLOB_ONESIDED | BLOB_KEEPALIVE |
                                    BLOB_PARTS | scheme_announcements() |
                                    (connection->attr.match_tags ? BLOB_MATCHES : 0) |
                                    (sdr_qp_can_take_long(connection->qp) ? BLOB_LONG : 0) |
                                    (sdr_qp_can_take_pieces(connection->qp) ? BLOB_PIECES : 0)));
    sdr_qp_info_get(connection->qp, out + BLOB_HEADER_BYTES);
    *bytes = needed;
    return 0;
}

int blob_decode(const uint8_t *blob, size_t bytes, struct qp_info *info, uint16_t *flags)
{
    if (bytes <= BLOB_HEADER_BYTES || bytes > LH_BLOB_MAX || lh_get_be32(blob) != BLOB_MAGIC)
        return lh_fail(LH_EHANDSHAKE, "malformed connection blob of %zu bytes", bytes);
    if (lh_get_be16(blob + 4) != BLOB_VERSION)
        return lh_fail(LH_EVERSION, "peer's blob has version %u, this side %u: use the same Longhaul",
                       lh_get_be16(blob + 4), BLOB_VERSION);
    *flags = lh_get_be16(blob + 6);
    return qp_info_decode(blob + BLOB_HEADER_BYTES, bytes - BLOB_HEADER_BYTES, info);
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
    error = blob_decode(blob, bytes, &peer, &c->peer_flags);
    if (!error)
        error = check_scheme(c);
    if (!error)
        error = matching_start(c);
    if (error)
        return error;
    if (peer.slot_bytes != c->attr.slot_bytes)
        return lh_fail(LH_EHANDSHAKE, "peer has slots of %llu bytes, this side %llu: give both the same",
                       (unsigned long long)peer.slot_bytes, (unsigned long long)c->attr.slot_bytes);
    /* Behind NAT its own address is only what it says, and many have the same. */
    struct qp_info_endpoint known = peer.endpoint;
    if (c->seen_family == known.family && sdr_qp_peer_may_be_translated(c->qp, &known) &&
        memcmp(c->seen_address, known.address, sizeof known.address) != 0) {
        sdr_qp_peer_seen_at(c->qp, c->seen_address);
        memcpy(known.address, c->seen_address, sizeof known.address);
    }
    memcpy(copy, blob, bytes);
    path_memory_load(c, &known);
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
    small_messages_start(c);
    keepalive_start(&c->keepalive, c->qp, c->attr.peer_timeout_ns, lh_sdr_now(c->context));
    pthread_mutex_unlock(&c->requests->lock);
    return sdr_qp_driver_set(c->qp, c->step, c);
}
