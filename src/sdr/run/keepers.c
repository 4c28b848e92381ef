/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/keepers.h"

#include <assert.h>
#include <string.h>

void keepers_init(struct keepers *keepers)
{
    *keepers = (struct keepers){0};
    pthread_mutex_init(&keepers->lock, NULL);
}

void keepers_destroy(struct keepers *keepers)
{
    pthread_mutex_destroy(&keepers->lock);
}

/* Peers name their own addresses: they can fill a list, which costs whoever looks through it, and no more. */
static struct keeper **list_of(struct keepers *keepers, const uint8_t key[KEEPERS_KEY_BYTES])
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < KEEPERS_KEY_BYTES; i++)
        hash = (hash ^ key[i]) * UINT64_C(0x100000001B3);
    return &keepers->lists[(hash ^ hash >> 32) % KEEPERS_LISTS];
}

static bool same_peer(const struct keeper *one, const struct keeper *other)
{
    return memcmp(one->key, other->key, sizeof one->key) == 0;
}

/* Those of one peer follow their keeper. */
void keepers_add(struct keepers *keepers, struct keeper *keeper, const uint8_t key[KEEPERS_KEY_BYTES])
{
    assert(!keeper->listed);
    memcpy(keeper->key, key, sizeof keeper->key);
    pthread_mutex_lock(&keepers->lock);
    struct keeper **list = list_of(keepers, key);
    struct keeper *before = *list;
    while (before && !(atomic_load(&before->keeps) && same_peer(before, keeper))) /* bounded by the QPs */
        before = before->next;
    keeper->previous = before;
    keeper->next = before ? before->next : *list;
    if (keeper->next)
        keeper->next->previous = keeper;
    if (before)
        before->next = keeper;
    else
        *list = keeper;
    keeper->listed = true;
    atomic_store(&keeper->keeps, before == NULL);
    pthread_mutex_unlock(&keepers->lock);
}

struct keeper *keepers_remove(struct keepers *keepers, struct keeper *keeper)
{
    struct keeper *heir = NULL;
    pthread_mutex_lock(&keepers->lock);
    if (keeper->listed) {
        if (keeper->previous)
            keeper->previous->next = keeper->next;
        else
            *list_of(keepers, keeper->key) = keeper->next;
        if (keeper->next)
            keeper->next->previous = keeper->previous;
        if (atomic_load(&keeper->keeps) && keeper->next && same_peer(keeper->next, keeper))
            heir = keeper->next;
        keeper->listed = false;
        atomic_store(&keeper->keeps, false);
        if (heir)
            atomic_store(&heir->keeps, true);
    }
    pthread_mutex_unlock(&keepers->lock);
    return heir;
}
