/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/devices.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "fabric/fabric.h"

#define FIRST_ROOM 16u

struct lh_device *fabric_device_add(struct fabric_device_list *list, const char *fabric)
{
    if (list->count == list->room) {
        size_t room = list->room == 0 ? FIRST_ROOM : 2 * list->room;
        struct lh_device *more = realloc(list->devices, room * sizeof *more);
        if (more == NULL) {
            list->failed = true;
            return NULL;
        }
        list->devices = more;
        list->room = room;
    }
    struct lh_device *device = &list->devices[list->count++];
    *device = (struct lh_device){0};
    snprintf(device->fabric, sizeof device->fabric, "%s", fabric);
    return device;
}

int lh_devices(struct lh_device **devices, size_t *count)
{
    struct fabric_device_list list = {0};
    int error = 0;
    for (size_t i = 0; fabric_all[i] != NULL && error == 0; i++)
        if (fabric_all[i]->devices != NULL)
            error = fabric_all[i]->devices(&list);
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
