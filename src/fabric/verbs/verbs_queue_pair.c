/*
 * binder.c - binding memory windows of type 1: a queue pair that is connected to itself, so that windows can
 * be bound before there is a peer, and a failed bind takes no traffic with it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/binder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "fabric/verbs/endpoint/queue_pair.h"

#define BINDS      16u
#define PAGE_BYTES 4096u
/* A bind takes microseconds; a device that does not answer for so long is gone. */
#define BIND_NS_MAX (2 * LH_NS_PER_S)

static lh_time now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

static int make_anchor(const struct verbs_fabric *fabric, struct verbs_binder *binder)
{
    binder->page = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
    if (binder->page == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a page");
    binder->anchor =
        ibv_reg_mr(fabric->pd, binder->page, PAGE_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    if (binder->anchor == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot register memory for windows: %s",
                       ibv_get_device_name(fabric->context->device), strerror(errno));
    return 0;
}

int verbs_binder_open(struct verbs_endpoint *endpoint)
{
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    struct verbs_binder *binder = &endpoint->binder;
    binder->fabric = fabric;
    int error = make_anchor(fabric, binder);
    if (error != 0)
        return error;
    binder->cq = ibv_create_cq(fabric->context, (int)BINDS, endpoint, NULL, 0);
    if (binder->cq == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a completion queue: %s",
                       ibv_get_device_name(fabric->context->device), strerror(errno));
    struct ibv_qp_init_attr attr = {
        .send_cq = binder->cq,
        .recv_cq = binder->cq,
        .cap = {.max_send_wr = BINDS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    error = verbs_qp_create(endpoint, &attr, &binder->qp);
    return error != 0 ? error : verbs_qp_connect(fabric, binder->qp, &fabric->gid, binder->qp->qp_num);
}

void verbs_binder_close(struct verbs_binder *binder)
{
    if (binder->qp != NULL)
        ibv_destroy_qp(binder->qp);
    if (binder->cq != NULL)
        ibv_destroy_cq(binder->cq);
    if (binder->anchor != NULL)
        ibv_dereg_mr(binder->anchor);
    free(binder->page);
    *binder = (struct verbs_binder){0};
}

int verbs_binder_wait(struct ibv_cq *cq, uint64_t wr_id, const char *what)
{
    struct ibv_wc completion;
    lh_time end = now() + BIND_NS_MAX;
    int count = 0;
    do { /* until the deadline */
        count = ibv_poll_cq(cq, 1, &completion);
        if (count > 0 && completion.wr_id != wr_id)
            count = 0;
    } while (count == 0 && now() < end);
    if (count <= 0)
        return lh_fail(LH_EDEVICE, "device timeout: cannot %s", what);
    if (completion.status != IBV_WC_SUCCESS)
        return lh_fail(LH_EDEVICE, "the device refuses to %s: %s", what,
                       ibv_wc_status_str(completion.status));
    return 0;
}

/* A bind that fails stops the queue pair; the slots that are bound still have to be closed through it. */
static void revive(struct verbs_binder *binder)
{
    struct verbs_fabric *fabric = binder->fabric;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    char reason[VERBS_REASON_MAX];
    snprintf(reason, sizeof reason, "%s", lh_last_error()); /* that is the reason for the caller */
    if (ibv_modify_qp(binder->qp, &attr, IBV_QP_STATE) == 0 && verbs_qp_init(fabric, binder->qp) == 0)
        verbs_qp_connect(fabric, binder->qp, &fabric->gid, binder->qp->qp_num);
    lh_fail(LH_EDEVICE, "%s", reason);
}

int verbs_binder_bind(struct verbs_binder *binder, struct ibv_mw *window, struct ibv_mr *mr,
                      uint64_t address, uint64_t bytes)
{
    struct ibv_mw_bind bind = {
        .wr_id = ++binder->binds,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info =
            {
                .mr = bytes > 0 ? mr : binder->anchor,
                .addr = bytes > 0 ? address : (uint64_t)(uintptr_t)binder->page,
                .length = bytes,
                .mw_access_flags = bytes > 0 ? (unsigned)IBV_ACCESS_REMOTE_WRITE : 0u,
            },
    };
    int error = ibv_bind_mw(binder->qp, window, &bind);
    if (error != 0)
        return lh_fail(LH_EDEVICE, "the device cannot bind a memory window: %s", strerror(error));
    error = verbs_binder_wait(binder->cq, binder->binds, "bind a memory window");
    if (error != 0)
        revive(binder);
    return error;
}
