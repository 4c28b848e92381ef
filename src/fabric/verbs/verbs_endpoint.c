/*
 * protect.c - late packets: what comes for a receive that is over must not change a byte of its buffer
 * (paper section 3.3). The device must refuse it, by itself, from the moment that slot_unbind returns.
 *
 *   window  a memory window of type 1 for each slot, bound to the buffer for each receive and to nothing at
 *           its end; each bind gives another key. Microseconds.
 *   mr      a registration for each receive, taken back at its end. Works everywhere, and costs what
 *           pinning pages costs.
 *   indirect  an indirect key of mlx5 for each slot and generation, pointed at the buffer, and at
 *           its end at the null key (indirect_mlx5.c). Only when it is asked for: unproven.
 *
 * What a device cannot refuse is that a packet of an earlier receive is still reported (its completion
 * waits): the SDR layer recognises it by the generation of its queue pair.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/protect.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/verbs/endpoint/binder.h"
#include "fabric/verbs/endpoint/failure.h"
#include "fabric/verbs/endpoint/indirect.h"
#include "fabric/verbs/endpoint/rx.h"

/* Of 256 keys of a window. A repeated one would let a packet in that is late by that number of receives. */
#define WINDOW_BINDS_MAX 250u

static int open_windows(struct verbs_endpoint *endpoint)
{
    const struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    if (!fabric->memory.windows)
        return lh_fail(LH_EDEVICE, "device %s has no memory windows of type 1; use protect=mr",
                       ibv_get_device_name(fabric->context->device));
    int error = verbs_binder_open(endpoint);
    if (error != 0)
        verbs_binder_close(&endpoint->binder);
    return error;
}

int verbs_protect_open(struct verbs_endpoint *endpoint)
{
    enum verbs_protection wanted = verbs_fabric_of(endpoint)->name.protection;
    endpoint->guards = calloc(endpoint->attr.slots, sizeof *endpoint->guards);
    if (endpoint->guards == NULL)
        return lh_fail(LH_ENOMEM, "no memory for %u message slots", endpoint->attr.slots);
    if (wanted == VERBS_PROTECT_INDIRECT) {
        endpoint->protection = VERBS_PROTECT_INDIRECT;
        return verbs_indirect_open(endpoint);
    }
    endpoint->protection = VERBS_PROTECT_MR;
    if (wanted == VERBS_PROTECT_MR)
        return 0;
    int error = open_windows(endpoint);
    if (error == 0)
        endpoint->protection = VERBS_PROTECT_WINDOW;
    return wanted == VERBS_PROTECT_ANY ? 0 : error;
}

void verbs_protect_close(struct verbs_endpoint *endpoint)
{
    for (uint32_t i = 0; endpoint->guards != NULL && i < endpoint->attr.slots; i++) {
        if (endpoint->guards[i].window != NULL)
            ibv_dealloc_mw(endpoint->guards[i].window);
        if (endpoint->guards[i].mr != NULL)
            ibv_dereg_mr(endpoint->guards[i].mr);
    }
    free(endpoint->guards);
    verbs_binder_close(&endpoint->binder);
    verbs_indirect_close(endpoint->indirect);
}

static int bind_window(struct verbs_endpoint *endpoint, struct verbs_guard *guard,
                       const struct fabric_slot *what, struct ibv_mr *mr, struct fabric_slot_key *key)
{
    if (guard->window == NULL)
        guard->window = ibv_alloc_mw(verbs_fabric_of(endpoint)->pd, IBV_MW_TYPE_1);
    if (guard->window == NULL)
        return lh_fail(LH_EDEVICE, "the device has no memory window left: %s", strerror(errno));
    key->base = (uint64_t)(uintptr_t)what->base;
    guard->binds++;
    int error = verbs_binder_bind(&endpoint->binder, guard->window, mr, key->base, what->length_bytes);
    key->rkey = guard->window->rkey;
    return error;
}

static int bind_registration(struct verbs_endpoint *endpoint, struct verbs_guard *guard,
                             const struct fabric_slot *what, struct fabric_slot_key *key)
{
    guard->mr = ibv_reg_mr(verbs_fabric_of(endpoint)->pd, what->base, what->length_bytes,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (guard->mr == NULL)
        return lh_fail(LH_EDEVICE, "the device cannot register a receive of %llu bytes: %s",
                       (unsigned long long)what->length_bytes, strerror(errno));
    key->base = (uint64_t)(uintptr_t)what->base;
    key->rkey = guard->mr->rkey;
    return 0;
}

/* What came for an earlier receive of this slot and generation must have been read: it would count for this
 * one. With polls that find an end now and then it has been, long ago. */
static void forget_earlier(struct verbs_endpoint *endpoint, const struct verbs_guard *guard,
                           uint8_t generation)
{
    for (uint32_t i = 0; i < endpoint->attr.channels; i++)
        if (endpoint->channels[i]->drained < guard->ended[generation])
            verbs_drain(endpoint->channels[i]);
}

static int bind_slot(struct verbs_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                     struct ibv_mr *mr, struct fabric_slot_key *key)
{
    struct verbs_guard *guard = &endpoint->guards[slot];
    switch (endpoint->protection) {
    case VERBS_PROTECT_INDIRECT:
        return verbs_indirect_bind(endpoint->indirect, slot, what, mr, key);
    case VERBS_PROTECT_WINDOW:
        return bind_window(endpoint, guard, what, mr, key);
    default:
        return bind_registration(endpoint, guard, what, key);
    }
}

int verbs_slot_bind(struct fabric_endpoint *base, uint32_t slot, const struct fabric_slot *what,
                    struct fabric_slot_key *key)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_guard *guard = &endpoint->guards[slot];
    assert(slot < endpoint->attr.slots && !guard->bound);
    int error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    forget_earlier(endpoint, guard, what->generation);
    error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    guard->generation = what->generation;
    /* An empty receive has no memory; packets for it are empty, and devices do not check their key. */
    *key = (struct fabric_slot_key){0};
    if (what->length_bytes == 0)
        return 0;
    const struct verbs_region *region = verbs_memory_find(&verbs_fabric_of(endpoint)->memory, what->lkey);
    if (region == NULL || !region->writable)
        return lh_fail(LH_EKEY, "lkey %u: memory %s", what->lkey,
                       region == NULL ? "not registered with the device" : "not writable");
    error = bind_slot(endpoint, slot, what, region->mr, key);
    guard->bound = error == 0;
    return error;
}

void verbs_slot_unbind(struct fabric_endpoint *base, uint32_t slot)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_guard *guard = &endpoint->guards[slot];
    guard->ended[guard->generation] = ++endpoint->binds;
    if (!guard->bound)
        return;
    guard->bound = false;
    int error = 0;
    if (guard->mr != NULL) {
        error = ibv_dereg_mr(guard->mr);
        guard->mr = NULL;
    } else if (endpoint->protection == VERBS_PROTECT_INDIRECT) {
        error = verbs_indirect_unbind(endpoint->indirect, slot);
    } else if (guard->binds >= WINDOW_BINDS_MAX) {
        error = ibv_dealloc_mw(guard->window); /* the next receive makes another, which has other keys */
        guard->window = NULL;
        guard->binds = 0;
    } else {
        guard->binds++;
        error = verbs_binder_bind(&endpoint->binder, guard->window, NULL, 0, 0);
    }
    /* A buffer that packets may still enter must not be used: the endpoint is over, and with it its keys.
     */
    if (error != 0)
        verbs_endpoint_fail(endpoint, "slot %u cannot be closed to late packets", slot);
}
