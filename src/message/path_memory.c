/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/path_memory.h"

/* This side's address, as it is in the blob for the peer. */
static bool local_endpoint(const struct lh_connection *c, struct qp_info_endpoint *local)
{
    uint8_t bytes[QP_INFO_BYTES_MAX];
    struct qp_info info;
    size_t size;
    sdr_qp_info_size_get(c->qp, &size);
    if (size > sizeof bytes)
        return false;
    sdr_qp_info_get(c->qp, bytes);
    if (qp_info_decode(bytes, size, &info) != 0)
        return false;
    *local = info.endpoint;
    return true;
}

void path_memory_load(struct lh_connection *c, const struct qp_info_endpoint *peer)
{
    struct qp_info_endpoint local;
    struct path_record found;
    if (!c->attr.path_file || !local_endpoint(c, &local))
        return;
    path_file_address(c->remembered.peer, peer->family, peer->address);
    path_file_address(c->remembered.local, local.family, local.address);
    if (path_file_read(c->path_file, c->remembered.peer, c->remembered.local, &found,
                       &c->remembered_age_ns))
        c->remembered = found;
}
