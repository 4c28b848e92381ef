/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/verbs_device.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/verbs/verbs_sizes.h"
#include "wire/control_messages.h"

/* ---- memory ---------------------------------------------------------------------------------------- */

void verbs_memory_open(struct verbs_memory *memory, struct ibv_pd *pd, bool windows)
{
    pthread_mutex_init(&memory->lock, NULL);
    memory->pd = pd;
    memory->windows = windows;
}

void verbs_memory_close(struct verbs_memory *memory)
{
    for (uint32_t i = 0; i < VERBS_MEMORY_BUCKETS; i++)
        while (memory->buckets[i] != NULL)
            verbs_memory_remove(memory, memory->buckets[i]);
    pthread_mutex_destroy(&memory->lock);
}

static struct verbs_region **bucket_of(struct verbs_memory *memory, uint32_t lkey)
{
    /* Keys differ in their upper bits, and some devices count in the lowest byte. */
    return &memory->buckets[(lkey ^ lkey >> 8) & (VERBS_MEMORY_BUCKETS - 1)];
}

/* Nobody may write by the region's own key: packets come in through a window or a registration of their
 * receive's own. */
static struct ibv_mr *register_region(const struct verbs_memory *memory, void *address, size_t bytes,
                                      bool *writable)
{
    unsigned access = IBV_ACCESS_LOCAL_WRITE | (memory->windows ? IBV_ACCESS_MW_BIND : 0u);
    struct ibv_mr *mr = ibv_reg_mr(memory->pd, address, bytes, access);
    *writable = mr != NULL;
    if (mr == NULL && (errno == EFAULT || errno == EACCES || errno == EPERM))
        mr = ibv_reg_mr(memory->pd, address, bytes, 0);
    return mr;
}

static int fail_register(const void *address, size_t bytes, int error)
{
    if (error == ENOMEM)
        return lh_fail(LH_ENOMEM,
                       "the device cannot hold %zu bytes at %p in memory: raise the limit of locked "
                       "memory (ulimit -l unlimited)",
                       bytes, address);
    if (error == EFAULT)
        return lh_fail(LH_EKEY, "%zu bytes at %p: not fully mapped", bytes, address);
    return lh_fail(LH_EDEVICE, "the device cannot register %zu bytes at %p: %s", bytes, address,
                   strerror(error));
}

int verbs_memory_add(struct verbs_memory *memory, void *address, size_t bytes, struct verbs_region **out)
{
    struct verbs_region *region = calloc(1, sizeof *region);
    if (region == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a registration");
    if (bytes > 0) {
        region->mr = register_region(memory, address, bytes, &region->writable);
        if (region->mr == NULL) {
            int error = errno;
            free(region);
            return fail_register(address, bytes, error);
        }
    }
    pthread_mutex_lock(&memory->lock);
    struct verbs_region **bucket = bucket_of(memory, region->mr != NULL ? region->mr->lkey : 0);
    region->next = *bucket;
    *bucket = region;
    pthread_mutex_unlock(&memory->lock);
    *out = region;
    return 0;
}

void verbs_memory_remove(struct verbs_memory *memory, struct verbs_region *region)
{
    pthread_mutex_lock(&memory->lock);
    struct verbs_region **at = bucket_of(memory, region->mr != NULL ? region->mr->lkey : 0);
    while (*at != NULL && *at != region)
        at = &(*at)->next;
    if (*at != NULL)
        *at = region->next;
    pthread_mutex_unlock(&memory->lock);
    /* It fails only while a receive is posted there, against the rules; then the process keeps it. */
    if (region->mr != NULL)
        ibv_dereg_mr(region->mr);
    free(region);
}

const struct verbs_region *verbs_memory_find(struct verbs_memory *memory, uint32_t lkey)
{
    pthread_mutex_lock(&memory->lock);
    const struct verbs_region *region = *bucket_of(memory, lkey);
    while (region != NULL && (region->mr == NULL || region->mr->lkey != lkey))
        region = region->next;
    pthread_mutex_unlock(&memory->lock);
    return region;
}

/* ---- device ---------------------------------------------------------------------------------------- */

/*
 * Which device, port and address to use, by name or by search.
 *
 * Candidates that cannot be used, and why, are collected for the error when none is left.
 */

#define SEEN_MAX 192u

/* Candidates that cannot be used. */
struct seen {
    char text[SEEN_MAX];
    size_t length;
};

static void see(struct seen *seen, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void see(struct seen *seen, const char *format, ...)
{
    size_t room = sizeof seen->text - seen->length;
    int wrote = snprintf(seen->text + seen->length, room, "%s", seen->length > 0 ? "; " : "");
    seen->length += wrote > 0 && (size_t)wrote < room ? (size_t)wrote : 0;
    room = sizeof seen->text - seen->length;
    va_list arguments;
    va_start(arguments, format);
    wrote = vsnprintf(seen->text + seen->length, room, format, arguments);
    va_end(arguments);
    if (wrote > 0)
        seen->length = (size_t)wrote < room ? seen->length + (size_t)wrote : sizeof seen->text - 1;
}

uint32_t verbs_mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << (uint32_t)mtu : 0;
}

uint32_t verbs_device_gids(struct ibv_context *context, uint8_t port, struct verbs_gid *gids)
{
    struct ibv_gid_entry entries[VERBS_GIDS_MAX];
    ssize_t found = ibv_query_gid_table(context, entries, VERBS_GIDS_MAX, 0);
    uint32_t count = 0;
    for (ssize_t i = 0; i < found; i++) {
        if (entries[i].port_num != port)
            continue;
        gids[count].index = entries[i].gid_index;
        gids[count].roce_v2 = entries[i].gid_type == IBV_GID_TYPE_ROCE_V2;
        memcpy(gids[count].bytes, entries[i].gid.raw, sizeof gids[count].bytes);
        count++;
    }
    return count;
}

/* Takes the GID and the port, when there is one of use. */
static bool take_port(struct verbs_fabric *fabric, uint8_t port, struct seen *seen)
{
    const char *name = ibv_get_device_name(fabric->context->device);
    struct ibv_port_attr attr;
    if (ibv_query_port(fabric->context, port, &attr) != 0) {
        see(seen, "%s has no port %u", name, port);
        return false;
    }
    if (attr.link_layer != IBV_LINK_LAYER_ETHERNET) {
        see(seen, "%s/%u is not an Ethernet port", name, port);
        return false;
    }
    if (attr.state != IBV_PORT_ACTIVE) {
        see(seen, "%s/%u is %s", name, port, ibv_port_state_str(attr.state));
        return false;
    }
    if (verbs_mtu_bytes(attr.active_mtu) < CONTROL_MESSAGE_MAX) {
        see(seen, "%s/%u has a RoCE MTU of %u, below the minimum %u (an interface MTU of 1500)", name, port,
            verbs_mtu_bytes(attr.active_mtu), CONTROL_MESSAGE_MAX);
        return false;
    }
    struct verbs_gid gids[VERBS_GIDS_MAX];
    uint32_t count = verbs_device_gids(fabric->context, port, gids);
    int chosen = verbs_gid_choose(gids, count, fabric->name.gid_index, fabric->name.family);
    if (chosen < 0 || gids[chosen].index > UINT8_MAX) {
        see(seen, "none of the %u GIDs of %s/%u is a usable RoCE v2 address", count, name, port);
        return false;
    }
    fabric->port = port;
    fabric->gid_index = (uint8_t)gids[chosen].index;
    memcpy(fabric->gid.raw, gids[chosen].bytes, sizeof fabric->gid.raw);
    fabric->path_mtu = attr.active_mtu;
    fabric->mtu_bytes = verbs_mtu_bytes(attr.active_mtu);
    return true;
}

/* Opens the device and finds a port; closes it again when there is none. */
static bool take_device(struct verbs_fabric *fabric, struct ibv_device *device, struct seen *seen)
{
    const char *name = ibv_get_device_name(device);
    fabric->context = ibv_open_device(device);
    if (fabric->context == NULL) {
        see(seen, "%s cannot be opened: %s", name, strerror(errno));
        return false;
    }
    if (ibv_query_device(fabric->context, &fabric->device) != 0) {
        see(seen, "%s does not answer", name);
    } else if (fabric->name.port != 0) {
        if (fabric->name.port > fabric->device.phys_port_cnt)
            see(seen, "%s has %u ports", name, fabric->device.phys_port_cnt);
        else if (take_port(fabric, (uint8_t)fabric->name.port, seen))
            return true;
    } else {
        for (uint32_t port = 1; port <= fabric->device.phys_port_cnt; port++)
            if (take_port(fabric, (uint8_t)port, seen))
                return true;
    }
    ibv_close_device(fabric->context);
    fabric->context = NULL;
    return false;
}

static int fail_without_devices(const char *wanted)
{
    return lh_fail(LH_EDEVICE, "device \"verbs:%s\": " VERBS_NO_DEVICE, wanted);
}

int verbs_device_open(struct verbs_fabric *fabric)
{
    int count = 0;
    const char *wanted = fabric->name.device;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (list == NULL || count == 0) {
        if (list != NULL)
            ibv_free_device_list(list);
        return fail_without_devices(wanted);
    }
    struct seen seen = {.length = 0};
    bool taken = false;
    for (int i = 0; i < count && !taken; i++) {
        const char *name = ibv_get_device_name(list[i]);
        if (wanted[0] == '\0' || strcmp(name, wanted) == 0)
            taken = take_device(fabric, list[i], &seen);
        else
            see(&seen, "there is %s", name);
    }
    ibv_free_device_list(list);
    if (!taken)
        return lh_fail(LH_EDEVICE, "device \"verbs:%s\" cannot be used: %s ('longhaul devices' lists all)",
                       wanted, seen.text);
    int flags = fcntl(fabric->context->async_fd, F_GETFL);
    if (flags < 0 || fcntl(fabric->context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return lh_fail(LH_ESYSTEM, "the events of %s cannot be read without waiting: %s",
                       ibv_get_device_name(fabric->context->device), strerror(errno));
    return 0;
}
