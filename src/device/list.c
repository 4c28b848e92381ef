/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/device.h>

#include <stdlib.h>

#include "base/error.h"
#include "device/registry.h"
#include "fabric/devices.h"

int lh_devices(struct lh_device **devices, size_t *count)
{
    struct fabric_device_list list = {0};
    int error = 0;
    const struct fabric_ops *ops;
    for (size_t i = 0; error == 0 && (ops = fabric_at(i)) != NULL; i++)
        if (ops->devices != NULL)
            error = ops->devices(&list);
    if (error == 0 && list.failed)
        error = lh_fail(LH_ENOMEM, "no memory for a list of %zu devices", list.count + 1);
    if (error != 0) {
        free(list.devices);
        return error;
    }
    *devices = list.devices;
    *count = list.count;
    return 0;
}

void lh_devices_free(struct lh_device *devices)
{
    free(devices);
}
