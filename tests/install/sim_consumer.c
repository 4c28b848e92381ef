/*
 * sim_consumer.c - what a user of the installed simulator writes first: a host of a simulated world is opened
 * by the transport's library, and an error of the simulator is read there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/sim.h>

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, lh_last_error());
    return 1;
}

int main(void)
{
    struct lh_connection *connection;
    struct lh_sim_world *world;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.device = "sim:here/0";
    attr.workers = LH_NO_WORKERS;
    if (lh_open(&attr, &connection) != -LH_EDEVICE || strstr(lh_last_error(), "liblonghaul-sim") == NULL)
        return failed("without a world");
    if (lh_sim_world_create(&(struct lh_sim_attr){.name = "in/valid"}, &world) != -LH_EINVAL ||
        strstr(lh_last_error(), "in/valid") == NULL)
        return failed("an invalid name");
    if (lh_sim_world_create(&(struct lh_sim_attr){.name = "here"}, &world) != 0)
        return failed("lh_sim_world_create");
    if (lh_open(&attr, &connection) != 0)
        return failed("lh_open");
    lh_close(connection);
    lh_sim_world_destroy(world);
    return 0;
}
