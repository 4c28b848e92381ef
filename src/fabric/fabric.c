/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/fabric.h"

#include <string.h>

#include "base/error.h"
#include "fabric/sim/sim.h"
#include "fabric/udp/udp.h"

const struct fabric_ops *const fabric_all[] = {
    &fabric_udp_ops,
    &fabric_sim_ops,
    NULL,
};

#define KINDS "\"udp:<local address>\" (udp:[::1], udp:127.0.0.1) and \"sim:<world>/<host>\""

static const struct fabric_ops *find_kind(const char *device, size_t length)
{
    for (size_t i = 0; fabric_all[i] != NULL; i++) {
        const char *name = fabric_all[i]->name;
        if (strlen(name) == length && memcmp(name, device, length) == 0)
            return fabric_all[i];
    }
    return NULL;
}

int fabric_open(const char *device, uint64_t receive_buffer_bytes, struct fabric **fabric)
{
    if (device == NULL || device[0] == '\0')
        return lh_fail(LH_EDEVICE, "no device name was given; there are " KINDS);
    const char *colon = strchr(device, ':');
    if (colon == NULL)
        return lh_fail(LH_EDEVICE, "device \"%s\" has no kind before a colon; there are " KINDS, device);
    const struct fabric_ops *ops = find_kind(device, (size_t)(colon - device));
    if (ops == NULL)
        return lh_fail(LH_EDEVICE, "device \"%s\" is of an unknown kind; there are " KINDS, device);
    struct fabric_attr attr = {.address = colon + 1, .receive_buffer_bytes = receive_buffer_bytes};
    return ops->open(&attr, fabric);
}
