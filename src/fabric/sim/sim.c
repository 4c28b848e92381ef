/*
 * sim.c - the simulated network as a fabric: opening a host of a world by its device name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/sim/sim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/sim/endpoint.h"
#include "fabric/sim/receive.h"
#include "fabric/sim/send.h"

/* "<world>/<host>", a host being one digit. SIM_HOSTS_MAX when it is anything else. */
static uint32_t parse_host(const char *address, size_t *name_bytes)
{
    const char *slash = strrchr(address, '/');
    if (slash == NULL || slash[1] < '0' || slash[1] >= (char)('0' + SIM_HOSTS_MAX) || slash[2] != '\0')
        return SIM_HOSTS_MAX;
    *name_bytes = (size_t)(slash - address);
    return (uint32_t)(slash[1] - '0');
}

static int sim_open(const struct fabric_attr *attr, struct fabric **out)
{
    size_t name_bytes = 0;
    uint32_t host = parse_host(attr->address, &name_bytes);
    if (host == SIM_HOSTS_MAX)
        return lh_fail(LH_EADDR, "simulated device '%s' is not <world>/<host number 0 to %u>",
                       attr->address, SIM_HOSTS_MAX - 1);
    struct sim_fabric *sim = calloc(1, sizeof(*sim));
    if (sim == NULL)
        return lh_fail(LH_ENOMEM, "no memory for simulated device '%s'", attr->address);
    sim->base.ops = &fabric_sim_ops;
    sim->host = host;
    sim->receive_buffer_bytes =
        attr->receive_buffer_bytes != 0 ? attr->receive_buffer_bytes : FABRIC_RECEIVE_BUFFER_DEFAULT;
    sim->world = sim_world_enter(attr->address, name_bytes);
    if (sim->world == NULL) {
        free(sim);
        return lh_fail(LH_EADDR,
                       "there is no simulated world '%.*s'; the program that simulates creates it first",
                       (int)name_bytes, attr->address);
    }
    *out = &sim->base;
    return 0;
}

static void sim_close(struct fabric *fabric)
{
    struct sim_fabric *sim = (struct sim_fabric *)fabric;
    sim_world_leave(sim->world);
    free(sim);
}

static lh_time sim_fabric_now(struct fabric *fabric)
{
    const struct sim_fabric *sim = (const struct sim_fabric *)fabric;
    return sim_host_now(sim->world, sim->host);
}

/* Nothing ever arrives but by sim_world_advance(). */
static uint32_t sim_poll_fds(struct fabric_endpoint *endpoint, uint32_t channel, int *fds)
{
    (void)endpoint;
    (void)channel;
    (void)fds;
    return 0;
}

const struct fabric_ops fabric_sim_ops = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .now = sim_fabric_now,
    .endpoint_create = sim_endpoint_create,
    .endpoint_destroy = sim_endpoint_destroy,
    .endpoint_info = sim_endpoint_info,
    .endpoint_connect = sim_endpoint_connect,
    .slot_bind = sim_slot_bind,
    .slot_unbind = sim_slot_unbind,
    .post_writes = sim_post_writes,
    .poll = sim_poll,
    .control_send = sim_control_send,
    .control_poll = sim_control_poll,
    .poll_fds = sim_poll_fds,
    .pump = sim_pump,
};
