/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/open.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "device/registry.h"
#include "fabric/verbs/ops.h"

#define KINDS                                                                                              \
    "\"udp:<local address>\" (udp:[::1], udp:127.0.0.1), \"verbs:<device>\" (verbs:mlx5_0, verbs:rxe0, "   \
    "verbs) and \"sim:<world>/<host>\""

/* The fabric of liblonghaul-sim, whether it is registered or not. */
static bool is_sim(const char *kind, size_t bytes)
{
    return bytes == strlen("sim") && memcmp(kind, "sim", bytes) == 0;
}

/* "mlx5_0" or "rxe0": what RDMA devices are called. */
static bool may_be_verbs(const char *device)
{
    return isalpha((unsigned char)device[0]) && strpbrk(device, ":.[") == NULL &&
           fabric_named(device, strlen(device)) == NULL && !is_sim(device, strlen(device));
}

/* The kind of a device, and what its open takes for an address. */
static int pick(const char *device, const struct fabric_ops **ops, const char **address)
{
    if (device == NULL || device[0] == '\0')
        return lh_fail(LH_EDEVICE, "no device name was given; there are " KINDS);
    const char *colon = strchr(device, ':');
    bool any_verbs = strcmp(device, fabric_verbs_ops.name) == 0;
    if (any_verbs || may_be_verbs(device)) {
        *ops = &fabric_verbs_ops;
        *address = any_verbs ? "" : device;
        return 0;
    }
    if (colon == NULL)
        return lh_fail(LH_EDEVICE, "device \"%s\" has no kind before a colon; there are " KINDS, device);
    size_t kind_bytes = (size_t)(colon - device);
    *ops = fabric_named(device, kind_bytes);
    *address = colon + 1;
    if (*ops == NULL && is_sim(device, kind_bytes))
        return lh_fail(LH_EDEVICE,
                       "device \"%s\": no simulated world exists (link liblonghaul-sim and call "
                       "lh_sim_world_create() first)",
                       device);
    if (*ops == NULL)
        return lh_fail(LH_EDEVICE, "device \"%s\" is of an unknown kind; there are " KINDS, device);
    return 0;
}

int fabric_open(const char *device, uint64_t receive_buffer_bytes, struct fabric **fabric)
{
    struct fabric_attr attr = {.receive_buffer_bytes = receive_buffer_bytes};
    const struct fabric_ops *ops;
    int error = pick(device, &ops, &attr.address);
    return error != 0 ? error : ops->open(&attr, fabric);
}

int fabric_device_mtu(const char *device, uint32_t *mtu_bytes)
{
    struct fabric_attr attr = {0};
    const struct fabric_ops *ops;
    struct fabric *fabric;
    int error = pick(device, &ops, &attr.address);
    if (error != 0)
        return error;
    *mtu_bytes = 0;
    if (ops->mtu == NULL)
        return 0;
    error = ops->open(&attr, &fabric);
    if (error != 0)
        return error;
    *mtu_bytes = ops->mtu(fabric);
    ops->close(fabric);
    return 0;
}
