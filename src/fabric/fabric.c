/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/fabric.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "fabric/sim/sim.h"
#include "fabric/udp/udp.h"
#include "fabric/verbs/ops.h"

const struct fabric_ops *const fabric_all[] = {
    &fabric_udp_ops,
    &fabric_verbs_ops,
    &fabric_sim_ops,
    NULL,
};

#define KINDS                                                                                              \
    "\"udp:<local address>\" (udp:[::1], udp:127.0.0.1), \"verbs:<device>\" (verbs:mlx5_0, verbs:rxe0, "   \
    "verbs) and \"sim:<world>/<host>\""

static const struct fabric_ops *find_kind(const char *device, size_t length)
{
    for (size_t i = 0; fabric_all[i] != NULL; i++) {
        const char *name = fabric_all[i]->name;
        if (strlen(name) == length && memcmp(name, device, length) == 0)
            return fabric_all[i];
    }
    return NULL;
}

/* "mlx5_0" or "rxe0": what RDMA devices are called. */
static bool may_be_verbs(const char *device)
{
    return isalpha((unsigned char)device[0]) && strpbrk(device, ":.[") == NULL &&
           find_kind(device, strlen(device)) == NULL;
}

int fabric_open(const char *device, uint64_t receive_buffer_bytes, struct fabric **fabric)
{
    if (device == NULL || device[0] == '\0')
        return lh_fail(LH_EDEVICE, "no device name was given; there are " KINDS);
    const char *colon = strchr(device, ':');
    struct fabric_attr attr = {.address = "", .receive_buffer_bytes = receive_buffer_bytes};
    if (strcmp(device, fabric_verbs_ops.name) == 0)
        return fabric_verbs_ops.open(&attr, fabric);
    if (may_be_verbs(device)) {
        attr.address = device;
        return fabric_verbs_ops.open(&attr, fabric);
    }
    if (colon == NULL)
        return lh_fail(LH_EDEVICE, "device \"%s\" has no kind before a colon; there are " KINDS, device);
    const struct fabric_ops *ops = find_kind(device, (size_t)(colon - device));
    if (ops == NULL)
        return lh_fail(LH_EDEVICE, "device \"%s\" is of an unknown kind; there are " KINDS, device);
    attr.address = colon + 1;
    return ops->open(&attr, fabric);
}
