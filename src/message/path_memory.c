/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/path_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
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

/* A path is known once the sender was as fast as path and host allow for a round trip, and what the path
 * holds has arrived; before, what the application sent is all that was measured. */
static bool has_learned(const struct lh_congestion_report *report)
{
    const lh_time *ns = report->limited_ns;
    lh_time busy_ns = ns[LH_LIMIT_HOST] + ns[LH_LIMIT_RATE] + ns[LH_LIMIT_WINDOW] + ns[LH_LIMIT_CREDIT] +
                      ns[LH_LIMIT_FABRIC];
    double holds = (double)report->bandwidth_bps / 8 * (double)report->rtt_minimum_ns / (double)LH_NS_PER_S;
    return report->feedback && report->bandwidth_bps > 0 && report->rtt_minimum_ns > 0 &&
           busy_ns >= report->rtt_minimum_ns && (double)report->arrived_bytes >= holds;
}

void path_memory_save(struct lh_connection *c)
{
    struct lh_congestion_report report;
    struct path_memory *memory = c->path_memory;
    if (!memory || !c->attached || lh_sdr_congestion(c->qp, &report) != 0 || !has_learned(&report))
        return;
    memory->record.rate_bps = report.bandwidth_bps;
    memory->record.rtt_ns = c->path.rtt_minimum_ns;
    path_file_write(memory->file, &memory->record);
}
