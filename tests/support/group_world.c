/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/group_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "group/group.h"

/* The exchanges of lh_group_create(), rank by rank. */
static void connect_all(struct group_world *world, struct lh_group_attr *attrs)
{
    uint8_t cards[SIM_ENGINES_MAX][CREATE_CARD_BYTES];
    size_t stride = LINK_BLOB_MAX + 4, row = stride * world->size;
    uint8_t *blobs = calloc(world->size, row);
    uint32_t longest;
    assert_non_null(blobs);
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(create_group(&attrs[r], &world->groups[r], cards[r]), "create_group");
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(create_links(world->groups[r], &attrs[r], cards[0], &longest), "create_links");
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(create_blobs(world->groups[r], blobs + r * row, stride), "create_blobs");
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(create_attach(world->groups[r], blobs, stride), "create_attach");
    free(blobs);
}

void group_world_open(struct group_world *world, const char *name, uint64_t seed, const char *link,
                      uint32_t size, const struct lh_group_attr *attr, const char *const *sites)
{
    struct lh_group_attr attrs[SIM_ENGINES_MAX];
    *world = (struct group_world){.size = size};
    sim_engines_open(&world->net, name, seed, link, size, NULL);
    for (uint32_t r = 0; r < size; r++) {
        lh_group_attr_init(&attrs[r]);
        if (attr)
            attrs[r] = *attr;
        attrs[r].rank = r;
        attrs[r].size = size;
        attrs[r].site = sites ? sites[r] : NULL;
        attrs[r].engine = world->net.engines[r];
    }
    connect_all(world, attrs);
}

void group_world_close(struct group_world *world)
{
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(lh_group_destroy(world->groups[r]), "lh_group_destroy");
    sim_engines_close(&world->net);
}

void group_world_kill(struct group_world *world, uint32_t rank)
{
    world->dead[rank] = true;
}

lh_time group_world_now(const struct group_world *world)
{
    return sim_world_now(world->net.world);
}

void group_world_turn(struct group_world *world, lh_time limit)
{
    lh_time now = group_world_now(world), next = 0;
    while (next <= now) {
        next = sim_world_next_event(world->net.world);
        for (uint32_t r = 0; r < world->size; r++) {
            lh_time due = LH_TIME_NEVER;
            if (!world->dead[r])
                sim_engines_must(lh_group_progress(world->groups[r], &due), "lh_group_progress");
            next = due < next ? due : next;
        }
    }
    lh_time event = sim_world_next_event(world->net.world);
    next = event < next ? event : next;
    sim_world_advance(world->net.world, next < limit ? next : limit);
}

void group_world_leave(struct group_world *world, uint32_t rank)
{
    lh_time due;
    sim_engines_must(lh_group_destroy(world->groups[rank]), "lh_group_destroy");
    world->groups[rank] = NULL;
    world->dead[rank] = true;
    for (uint32_t i = 0; i < 100; i++) {
        sim_engines_must(lh_engine_progress(world->net.engines[rank], &due), "lh_engine_progress");
        group_world_turn(world, group_world_now(world) + LH_NS_PER_MS);
    }
}

static bool all_done(struct lh_collective *const *ops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (ops[i] && !lh_collective_test(ops[i], NULL))
            return false;
    return true;
}

bool group_world_run(struct group_world *world, struct lh_collective *const *ops, uint32_t count,
                     lh_time limit_ns)
{
    lh_time until = group_world_now(world) + limit_ns;
    while (!all_done(ops, count)) {
        if (group_world_now(world) >= until)
            return false;
        group_world_turn(world, until);
    }
    return true;
}
