/*
 * devices.h - the list of devices, as each fabric adds its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_DEVICES_H
#define LH_FABRIC_DEVICES_H

#include <longhaul/device.h>

struct fabric_device_list {
    struct lh_device *devices;
    size_t count;
    size_t room;
    bool failed; /* there was no memory for one */
};

/* Adds one of that fabric. All else is zero, for the caller to set. NULL when there is no memory. */
struct lh_device *fabric_device_add(struct fabric_device_list *list, const char *fabric);

#endif
