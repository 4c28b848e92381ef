/*
 * device.h - the devices of this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_DEVICE_H
#define LONGHAUL_DEVICE_H

#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A local address for connections, or an unusable device with its reason. Unknown texts are empty. */
struct lh_device {
    char name[96];         /* for lh_attr.device: "udp:192.0.2.7", "xdp:eth0", "verbs:mlx5_0/1/gid=3" */
    char fabric[16];       /* "udp", "verbs", "xdp" */
    char interface[64];    /* "eth0", "mlx5_0/1": device and port */
    char address[64];      /* "192.0.2.7", "[2001:db8::7]" */
    uint32_t mtu_bytes;    /* payload of the largest packet; 0: unknown */
    uint64_t rate_bps;     /* of the port; 0: unknown */
    char features[64];     /* names, separated by spaces */
    char late_packets[16]; /* protection against late packets: slot table, window, mr */
    char congestion[24];   /* congestion control without a given rate: by longhaul, by the device, none */
    char trouble[256];     /* "": usable; else the reason and the remedy */
};

/* Lists all devices, the best one of each port first. The caller frees the list with lh_devices_free().
 * -LH_ENOMEM, -LH_ESYSTEM. */
LH_API int lh_devices(struct lh_device **devices, size_t *count);
LH_API void lh_devices_free(struct lh_device *devices);

#ifdef __cplusplus
}
#endif
#endif
