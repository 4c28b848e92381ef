/*
 * name.h - what a verbs device name asks for. Pure.
 *
 * [DEVICE][/PORT][/gid=INDEX][/ip=4|6][/protect=indirect|window|mr][/srq=yes|no], all parts optional but in
 * this order only for DEVICE and PORT: "", "rxe0", "mlx5_0/1", "mlx5_0/1/gid=3", "rxe0/protect=mr".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_NAME_H
#define LH_FABRIC_VERBS_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define VERBS_DEVICE_NAME_MAX 64u /* with the final zero; the kernel's own limit */

/* How packets that come after their receive was completed are kept out of its buffer; best first. */
enum verbs_protection {
    VERBS_PROTECT_ANY = 0,  /* the best that the device has */
    VERBS_PROTECT_INDIRECT, /* mlx5: the slot's indirect key is pointed elsewhere; never chosen by itself */
    VERBS_PROTECT_WINDOW,   /* a memory window of type 1 is bound again for each receive */
    VERBS_PROTECT_MR,       /* each receive registers its memory, and its end takes that back */
    VERBS_PROTECTIONS
};

struct verbs_name {
    char device[VERBS_DEVICE_NAME_MAX]; /* "": the first that can be used */
    uint32_t port;                      /* 0: the first that can be used */
    int32_t gid_index;                  /* -1: the best */
    uint32_t family;                    /* 4 or 6; 0: any */
    enum verbs_protection protection;
    bool own_queues; /* no shared receive queue even where the device has them */
};

/* -LH_EDEVICE names the part that cannot be read, and what would be right. */
int verbs_name_parse(const char *text, struct verbs_name *name);
/* "indirect", "window", "mr", "any". */
const char *verbs_protection_name(enum verbs_protection protection);

#endif
