/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/devices.h"

#include <stdio.h>
#include <stdlib.h>

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
