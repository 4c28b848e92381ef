/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/registry.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "fabric/udp/udp.h"
#include "fabric/verbs/ops.h"

static const struct fabric_ops *const built_in[] = {&fabric_udp_ops, &fabric_verbs_ops};

#define BUILT_IN (sizeof built_in / sizeof built_in[0])

/* Filled from the front under the lock; read without it. */
static const struct fabric_ops *_Atomic registered[LH_FABRICS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct fabric_ops *fabric_at(size_t index)
{
    if (index < BUILT_IN)
        return built_in[index];
    index -= BUILT_IN;
    return index < LH_FABRICS_MAX ? atomic_load_explicit(&registered[index], memory_order_acquire) : NULL;
}

const struct fabric_ops *fabric_named(const char *name, size_t bytes)
{
    const struct fabric_ops *ops;
    for (size_t i = 0; (ops = fabric_at(i)) != NULL; i++)
        if (strlen(ops->name) == bytes && memcmp(ops->name, name, bytes) == 0)
            return ops;
    return NULL;
}

static int add(const struct fabric_ops *ops)
{
    const struct fabric_ops *same_name = fabric_named(ops->name, strlen(ops->name));
    if (same_name == ops)
        return 0;
    if (same_name != NULL)
        return lh_fail(LH_EINVAL, "fabric \"%s\": name in use (choose another)", ops->name);
    for (size_t i = 0; i < LH_FABRICS_MAX; i++) {
        if (registered[i] == NULL) {
            atomic_store_explicit(&registered[i], ops, memory_order_release);
            return 0;
        }
    }
    return lh_fail(LH_ENOMEM, "fabric \"%s\": limit of %u registered fabrics reached", ops->name,
                   LH_FABRICS_MAX);
}

int lh_fabric_register(const struct fabric_ops *ops, uint32_t interface_version, size_t ops_bytes)
{
    /* Nothing of ops is read before: its layout may be another. */
    if (interface_version != FABRIC_INTERFACE_VERSION || ops_bytes != sizeof *ops)
        return lh_fail(
            LH_EVERSION,
            "fabric interface: version %u with %zu bytes (liblonghaul has version %u with %zu bytes; "
            "use libraries of the same version)",
            interface_version, ops_bytes, FABRIC_INTERFACE_VERSION, sizeof *ops);
    pthread_mutex_lock(&lock);
    int result = add(ops);
    pthread_mutex_unlock(&lock);
    return result;
}
