/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/path_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "history/known_paths.h"
#include "message/connection.h"
#include "sdr/driver.h"

int path_memory_create(struct lh_attr *attr, struct path_memory **memory)
{
    if (!attr->path_file)
        return 0;
    size_t bytes = strlen(attr->path_file) + 1;
    *memory = calloc(1, sizeof **memory + bytes);
    if (!*memory)
        return lh_fail(LH_ENOMEM, "no memory for the name of a path file");
    attr->path_file = memcpy((*memory)->file, attr->path_file, bytes);
    return 0;
}

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
    struct path_memory *memory = c->path_memory;
    if (!memory || !local_endpoint(c, &local))
        return;
    path_file_address(memory->record.peer, peer->family, peer->address);
    path_file_address(memory->record.local, local.family, local.address);
    lh_time age_ns;
    if (!path_file_read(memory->file, memory->record.peer, memory->record.local, &found, &age_ns))
        return;
    memory->record = found;
    sdr_qp_remember(c->qp, found.rate_bps, found.rtt_ns, age_ns);
}

void path_memory_save(struct lh_connection *c)
{
    struct lh_congestion_report report;
    struct path_memory *memory = c->path_memory;
    if (!memory || !c->attached || lh_sdr_congestion(c->qp, &report) != 0 ||
        !known_paths_is_learned(&report))
        return;
    memory->record.rate_bps = report.bandwidth_bps;
    memory->record.rtt_ns = c->path.rtt_minimum_ns;
    path_file_write(memory->file, &memory->record);
}
