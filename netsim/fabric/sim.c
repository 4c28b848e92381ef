/*
 * sim.c - the simulated network as a fabric: registering it, opening a host of a world by its device
 * name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/fabric/sim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/fabric.h>

#include "base/error.h"
#include "netsim/fabric/endpoint.h"
#include "netsim/fabric/receive.h"
#include "netsim/fabric/send.h"

/* "<world>/<host>", a host being a decimal number. SIM_HOSTS_MAX when it is anything else. */
static uint32_t parse_host(const char *address, size_t *name_bytes)
{
    const char *slash = strrchr(address, '/');
    uint32_t host = 0;
    if (slash == NULL || slash[1] == '\0' || (slash[1] == '0' && slash[2] != '\0'))
        return SIM_HOSTS_MAX;
    for (const char *digit = slash + 1; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || host >= SIM_HOSTS_MAX)
            return SIM_HOSTS_MAX;
        host = 10 * host + (uint32_t)(*digit - '0');
    }
    *name_bytes = (size_t)(slash - address);
    return host < SIM_HOSTS_MAX ? host : SIM_HOSTS_MAX;
}

static void sim_close(struct fabric *fabric)
{
    struct sim_fabric *sim = (struct sim_fabric *)fabric;
    sim_world_leave(sim->world);
    free(sim);
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
    uint32_t hosts = sim->world->hosts_count;
    if (host >= hosts) {
        sim_close(&sim->base);
        return lh_fail(LH_EADDR, "simulated device '%s': no such host (the world has hosts 0 to %u)",
                       attr->address, hosts - 1);
    }
    *out = &sim->base;
    return 0;
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
    return FABRIC_POLL_WAKES;
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
    .slots_rest = sim_slots_rest,
    .post_writes = sim_post_writes,
    .poll = sim_poll,
    .arrived = sim_arrived,
    .long_control = true,
    .takes_pieces = sim_takes_pieces,
    .control_send = sim_control_send,
    .control_poll = sim_control_poll,
    .poll_fds = sim_poll_fds,
    .pump = sim_pump,
};

int sim_world_open(const char *name, uint32_t hosts, uint64_t seed, const struct lh_link_spec *link,
                   struct sim_world **world)
{
    int result = lh_fabric_register(&fabric_sim_ops, FABRIC_INTERFACE_VERSION, sizeof fabric_sim_ops);
    return result != 0 ? result : sim_world_make(name, hosts, seed, link, world);
}

struct sim_world *sim_world_create(const char *name, uint64_t seed, const struct lh_link_spec *link)
{
    struct sim_world *world = NULL;
    return sim_world_open(name, SIM_HOSTS_FEW, seed, link, &world) == 0 ? world : NULL;
}
