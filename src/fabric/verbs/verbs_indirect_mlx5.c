/*
 * verbs_indirect_mlx5.c - late packets are kept out by indirect keys of libmlx5 (paper section 3.3, its first
 * stage). No such NIC could be tried: this was written from rdma-core's documentation and source, and is
 * taken only when it is asked for (docs/fabrics.md, "Unproven: indirect keys").
 *
 * A key of a slot is an indirect mkey: a list of entries that map its bytes. A bind points them at
 * the buffer; an unbind points them at the null key, as many bytes of it, so that what comes late is a good
 * packet that lands nowhere. Its completion is reported like any other, and the SDR layer drops it.
 *
 * An mkey keeps its number when it is pointed elsewhere. So that a late packet cannot enter the slot's *next*
 * buffer, a slot has an mkey for each generation, made at its first use: one of generation g stays null until
 * the slot is in generation g again.
 *
 * The mkeys are zero-based: their first byte has address 0, whatever the buffer's is.
 *
 * They are configured by work requests, which libmlx5 takes on RC queue pairs only; this one is connected to
 * itself and carries nothing else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/verbs_queue_pair.h"

#include <assert.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define REQUESTS     4u
#define ENTRIES_MAX  4u /* what one work request holds without more inline space: mlx5dv_wr_mr_list(3) */
#define ENTRY_BYTES  (UINT64_C(1) << 30) /* a length has 32 bits, and entries need not be filled */
#define ENTRY_INLINE 16u /* bytes of an entry in a work request (struct mlx5_wqe_data_seg) */
#define RNR_TIMER    12u /* 0.64 ms; like the timeout (67 ms) and the retries, never used: */
#define RC_TIMEOUT   14u /* nothing of this queue pair is sent to anybody */
#define RC_RETRIES   7u
#define INSTEAD      "use protect=window or protect=mr"

struct indirect_slot {
    struct mlx5dv_mkey *keys[QP_INFO_GENERATIONS_MAX]; /* NULL: not used yet */
    struct mlx5dv_mkey *bound;
    uint64_t bytes; /* of what is bound */
};

struct verbs_indirect {
    struct verbs_fabric *fabric;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *null;
    uint64_t requests; /* ever; the number of the last one */
    bool failed;       /* a request failed: the queue pair is stopped, and no slot can be closed any more */
    uint32_t count;
    struct indirect_slot slots[];
};

static const char *device_of(const struct verbs_fabric *fabric)
{
    return ibv_get_device_name(fabric->context->device);
}

bool verbs_indirect_possible(struct ibv_device *device)
{
    return mlx5dv_is_supported(device);
}

static int make_queue_pair(struct verbs_indirect *indirect)
{
    struct verbs_fabric *fabric = indirect->fabric;
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = indirect->cq,
        .recv_cq = indirect->cq,
        .cap = {.max_send_wr = REQUESTS,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = ENTRIES_MAX * ENTRY_INLINE},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = fabric->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct mlx5dv_qp_init_attr more = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
        .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST,
    };
    indirect->qp = mlx5dv_create_qp(fabric->context, &attr, &more);
    if (indirect->qp == NULL)
        return lh_fail(LH_EDEVICE,
                       "device %s cannot make a queue pair that configures indirect keys: %s; " INSTEAD,
                       device_of(fabric), strerror(errno));
    return 0;
}

static int connect_to_itself(struct verbs_fabric *fabric, struct ibv_qp *qp)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = fabric->port};
    struct ibv_qp_attr receive = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = fabric->path_mtu,
        .dest_qp_num = qp->qp_num,
        .min_rnr_timer = RNR_TIMER,
        .ah_attr =
            {
                .grh = {.dgid = fabric->gid, .sgid_index = fabric->gid_index, .hop_limit = 1},
                .is_global = 1,
                .port_num = fabric->port,
            },
    };
    struct ibv_qp_attr send = {
        .qp_state = IBV_QPS_RTS, .timeout = RC_TIMEOUT, .retry_cnt = RC_RETRIES, .rnr_retry = RC_RETRIES};
    int error =
        ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error == 0)
        error = ibv_modify_qp(qp, &receive,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error == 0)
        error = ibv_modify_qp(qp, &send,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (error != 0)
        return lh_fail(
            LH_EDEVICE,
            "device %s cannot connect the queue pair that configures indirect keys: %s; " INSTEAD,
            device_of(fabric), strerror(error));
    return 0;
}

static int fill(struct verbs_indirect *indirect)
{
    struct verbs_fabric *fabric = indirect->fabric;
    indirect->null = ibv_alloc_null_mr(fabric->pd);
    if (indirect->null == NULL)
        return lh_fail(LH_EDEVICE, "device %s has no null key: %s; " INSTEAD, device_of(fabric),
                       strerror(errno));
    indirect->cq = ibv_create_cq(fabric->context, (int)REQUESTS, NULL, NULL, 0);
    if (indirect->cq == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a completion queue: %s", device_of(fabric),
                       strerror(errno));
    int error = make_queue_pair(indirect);
    return error != 0 ? error : connect_to_itself(fabric, indirect->qp);
}

int verbs_indirect_open(struct verbs_endpoint *endpoint)
{
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    if (!mlx5dv_is_supported(fabric->context->device))
        return lh_fail(LH_EDEVICE,
                       "device %s: no indirect keys (only NICs of the driver mlx5 have them); " INSTEAD,
                       device_of(fabric));
    struct verbs_indirect *indirect =
        calloc(1, sizeof *indirect + endpoint->attr.slots * sizeof indirect->slots[0]);
    if (indirect == NULL)
        return lh_fail(LH_ENOMEM, "no memory for the keys of %u message slots", endpoint->attr.slots);
    indirect->fabric = fabric;
    indirect->count = endpoint->attr.slots;
    int error = fill(indirect);
    if (error != 0) {
        verbs_indirect_close(indirect);
        return error;
    }
    endpoint->indirect = indirect;
    return 0;
}

void verbs_indirect_close(struct verbs_indirect *indirect)
{
    if (indirect == NULL)
        return;
    if (indirect->qp != NULL)
        ibv_destroy_qp(indirect->qp);
    for (uint32_t i = 0; i < indirect->count; i++)
        for (uint32_t k = 0; k < QP_INFO_GENERATIONS_MAX; k++)
            if (indirect->slots[i].keys[k] != NULL)
                mlx5dv_destroy_mkey(indirect->slots[i].keys[k]);
    if (indirect->cq != NULL)
        ibv_destroy_cq(indirect->cq);
    if (indirect->null != NULL)
        ibv_dereg_mr(indirect->null);
    free(indirect);
}

/* Bytes from that address of a registration, as entries; returns their number. */
static uint16_t make_entries(const struct verbs_indirect *indirect, uint32_t lkey, uint64_t address,
                             uint64_t bytes, struct ibv_sge *entries)
{
    uint16_t count = 0;
    assert(bytes > 0 && bytes <= ENTRIES_MAX * ENTRY_BYTES);
    for (uint64_t done = 0; done < bytes; count++) { /* ENTRIES_MAX at most */
        uint64_t length = bytes - done < ENTRY_BYTES ? bytes - done : ENTRY_BYTES;
        /* The null key has no bytes of its own: each of its entries begins at 0. */
        uint64_t from = lkey == indirect->null->lkey ? 0 : address + done;
        entries[count] = (struct ibv_sge){.addr = from, .length = (uint32_t)length, .lkey = lkey};
        done += length;
    }
    return count;
}

/* Points the key there; it holds when this returns. */
static int point(struct verbs_indirect *indirect, struct mlx5dv_mkey *key, uint32_t lkey, uint64_t address,
                 uint64_t bytes)
{
    struct ibv_sge entries[ENTRIES_MAX];
    uint16_t count = make_entries(indirect, lkey, address, bytes, entries);
    if (indirect->failed)
        return lh_fail(LH_EDEVICE, "device %s failed to configure an indirect key before; " INSTEAD,
                       device_of(indirect->fabric));
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(indirect->qp);
    ibv_wr_start(qp);
    qp->wr_id = ++indirect->requests;
    qp->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    /* Not invalidated in between: a late packet would find a key that is not valid. */
    mlx5dv_wr_mr_list(mlx5dv_qp_ex_from_ibv_qp_ex(qp), key,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, count, entries);
    int error = ibv_wr_complete(qp);
    if (error != 0)
        error = lh_fail(LH_EDEVICE, "device %s cannot configure an indirect key: %s; " INSTEAD,
                        device_of(indirect->fabric), strerror(error));
    else
        error = verbs_binder_wait(indirect->cq, qp->wr_id, "configure an indirect key (" INSTEAD ")");
    indirect->failed = error != 0;
    return error;
}

/* NULL: lh_last_error() has the reason. */
static struct mlx5dv_mkey *make_key(struct verbs_indirect *indirect)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = indirect->fabric->pd,
        .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
        .max_entries = ENTRIES_MAX,
    };
    struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);
    if (key == NULL)
        lh_fail(LH_EDEVICE,
                "device %s makes no indirect key: %s (it needs DEVX of the driver mlx5_ib); " INSTEAD,
                device_of(indirect->fabric), strerror(errno));
    return key;
}

int verbs_indirect_bind(struct verbs_indirect *indirect, uint32_t index, const struct fabric_slot *what,
                        const struct ibv_mr *mr, struct fabric_slot_key *key)
{
    struct indirect_slot *slot = &indirect->slots[index];
    assert(index < indirect->count && slot->bound == NULL && what->generation < QP_INFO_GENERATIONS_MAX);
    if (what->length_bytes > ENTRIES_MAX * ENTRY_BYTES)
        return lh_fail(LH_EDEVICE, "indirect key of %llu bytes: below the receive, %llu; " INSTEAD,
                       (unsigned long long)(ENTRIES_MAX * ENTRY_BYTES),
                       (unsigned long long)what->length_bytes);
    struct mlx5dv_mkey **kept = &slot->keys[what->generation];
    struct mlx5dv_mkey *mkey = *kept != NULL ? *kept : make_key(indirect);
    *kept = mkey;
    if (mkey == NULL)
        return -LH_EDEVICE;
    int error = point(indirect, mkey, mr->lkey, (uint64_t)(uintptr_t)what->base, what->length_bytes);
    if (error != 0) {
        /* Where it points is not known. */
        mlx5dv_destroy_mkey(mkey);
        *kept = NULL;
        return error;
    }
    slot->bound = mkey;
    slot->bytes = what->length_bytes;
    *key = (struct fabric_slot_key){.rkey = mkey->rkey, .base = 0};
    return 0;
}

int verbs_indirect_unbind(struct verbs_indirect *indirect, uint32_t index)
{
    struct indirect_slot *slot = &indirect->slots[index];
    assert(index < indirect->count && slot->bound != NULL);
    int error = point(indirect, slot->bound, indirect->null->lkey, 0, slot->bytes);
    slot->bound = NULL;
    return error;
}
