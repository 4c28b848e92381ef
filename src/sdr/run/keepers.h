/*
 * keepers.h - one keepalive for each pair of contexts: of all QPs that lead to one peer's address, one is the
 * keeper, whose pings keep NAT and firewalls on the path open for all of them.
 *
 * Any thread may call: the table has a lock of its own, under which nothing else is taken.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_KEEPERS_H
#define LH_SDR_KEEPERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define KEEPERS_LISTS     256u
#define KEEPERS_KEY_BYTES 36u /* family, port, translated; the address of the peer, and where it is seen */

/* A QP that leads to a peer. Zeroed: it is in no table. */
struct keeper {
    struct keeper *next;
    struct keeper *previous;
    bool listed;
    _Atomic bool keeps; /* read by its worker without the lock */
    uint8_t key[KEEPERS_KEY_BYTES];
};

struct keepers {
    pthread_mutex_t lock;
    struct keeper *lists[KEEPERS_LISTS];
};

void keepers_init(struct keepers *keepers);
void keepers_destroy(struct keepers *keepers);
/* The first with its key becomes the keeper. */
void keepers_add(struct keepers *keepers, struct keeper *keeper, const uint8_t key[KEEPERS_KEY_BYTES]);
/* Another one with its key, if there is any, becomes the keeper in its place: that one, or NULL. No effect on
 * one that is in no table. */
struct keeper *keepers_remove(struct keepers *keepers, struct keeper *keeper);

#endif
