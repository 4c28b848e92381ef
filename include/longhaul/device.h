/*
 * device.h - what this machine can send and receive with.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_DEVICE_H
#define LONGHAUL_DEVICE_H

#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One local address that packets can leave from, or something that cannot be used and why. Texts that are
 * not known, or mean nothing here, are empty. */
struct lh_device {
    char name[96];         /* for lh_attr.device: "udp:192.0.2.7", "verbs:mlx5_0/1/gid=3" */
    char fabric[16];       /* "udp", "verbs" */
    char interface[64];    /* "eth0", "mlx5_0/1": device and port */
    char address[64];      /* "192.0.2.7", "[2001:db8::7]" */
    uint32_t mtu_bytes;    /* payload of the largest RoCE packet; 0: not known */
    uint64_t rate_bps;     /* of the port; 0: not known */
    char features[64];     /* words, a space between them */
    char late_packets[16]; /* how they are kept out: slot table, window, mr */
    char trouble[256];     /* "": it can be used; else why it cannot, and what to do */
};

/* All there are, the best of each port first, for lh_devices_free(). -LH_ENOMEM, -LH_ESYSTEM */
LH_API int lh_devices(struct lh_device **devices, size_t *count);
LH_API void lh_devices_free(struct lh_device *devices);

#ifdef __cplusplus
}
#endif
#endif
