/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/device_registry.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/device.h>
#include <longhaul/fabric.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/udp/udp_state.h"
#include "fabric/verbs/verbs_parts.h"
#include "fabric/xdp/xdp_fabric.h"

/* ---- registry -------------------------------------------------------------------------------------- */

static const struct fabric_ops *const built_in[] = {&fabric_udp_ops, &fabric_verbs_ops, &fabric_xdp_ops};

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

/* ---- list ------------------------------------------------------------------------------------------ */

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

/* ---- open ------------------------------------------------------------------------------------------ */

#define KINDS                                                                                              \
    "\"udp:<local address>\" (udp:[::1], udp:127.0.0.1), \"xdp:<interface>\" (xdp:eth0), "                 \
    "\"verbs:<device>\" (verbs:mlx5_0, verbs:rxe0, verbs) and \"sim:<world>/<host>\""

/* The fabric of liblonghaul-sim, whether it is registered or not. */
static bool is_sim(const char *kind, size_t bytes)
{
    return bytes == strlen("sim") && memcmp(kind, "sim", bytes) == 0;
}

/* "mlx5_0" or "rxe0": what RDMA devices are called. */
static bool may_be_verbs(const char *device)
{
    return isalpha((unsigned char)device[0]) && strpbrk(device, ":.[") == NULL &&
           fabric_named(device, strlen(device)) == NULL && !is_sim(device, strlen(device));
}

/* The kind of a device, and what its open takes for an address. */
static int pick(const char *device, const struct fabric_ops **ops, const char **address)
{
    if (device == NULL || device[0] == '\0')
        return lh_fail(LH_EDEVICE, "no device name (devices: " KINDS ")");
    const char *colon = strchr(device, ':');
    bool any_verbs = strcmp(device, fabric_verbs_ops.name) == 0;
    if (any_verbs || may_be_verbs(device)) {
        *ops = &fabric_verbs_ops;
        *address = any_verbs ? "" : device;
        return 0;
    }
    if (colon == NULL)
        return lh_fail(LH_EDEVICE, "device \"%s\": no fabric before a colon (devices: " KINDS ")", device);
    size_t kind_bytes = (size_t)(colon - device);
    *ops = fabric_named(device, kind_bytes);
    *address = colon + 1;
    if (*ops == NULL && is_sim(device, kind_bytes))
        return lh_fail(LH_EDEVICE,
                       "device \"%s\": no simulated world exists (link liblonghaul-sim and call "
                       "lh_sim_world_create() first)",
                       device);
    if (*ops == NULL)
        return lh_fail(LH_EDEVICE, "device \"%s\": unknown fabric (devices: " KINDS ")", device);
    return 0;
}

int fabric_open(const char *device, uint64_t receive_buffer_bytes, struct fabric **fabric)
{
    struct fabric_attr attr = {.receive_buffer_bytes = receive_buffer_bytes};
    const struct fabric_ops *ops;
    int error = pick(device, &ops, &attr.address);
    return error != 0 ? error : ops->open(&attr, fabric);
}

static bool encrypts(const char *device)
{
    const struct fabric_ops *ops;
    const char *address;
    return device == NULL || pick(device, &ops, &address) != 0 || ops->secure != NULL ||
           ops->endpoint_create == NULL;
}

int fabric_device_check_encrypts(const char *device)
{
    if (encrypts(device))
        return 0;
    return lh_fail(LH_EUNSUPPORTED,
                   "device %s does not encrypt data: use udp:, or --encryption auth where the network "
                   "encrypts",
                   device);
}

int fabric_device_mtu(const char *device, uint32_t *mtu_bytes)
{
    struct fabric_attr attr = {0};
    const struct fabric_ops *ops;
    struct fabric *fabric;
    int error = pick(device, &ops, &attr.address);
    if (error != 0)
        return error;
    *mtu_bytes = 0;
    if (ops->mtu == NULL)
        return 0;
    error = ops->open(&attr, &fabric);
    if (error != 0)
        return error;
    *mtu_bytes = ops->mtu(fabric);
    ops->close(fabric);
    return 0;
}
