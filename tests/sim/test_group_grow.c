/*
 * test_group_grow.c - groups that grow, over a simulated network: what is kept, newcomers that die at each
 * step, members that come and go, cards that lie, and an exchange that does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "group/group.h"
#include "support/group_world.h"

#define HOSTS           6u
#define MS              LH_NS_PER_MS
#define PEER_TIMEOUT_NS (200 * MS)
#define LINK            "delay=1ms,rate=10Gbit,loss=1e-3"
#define LIMIT_NS        (60 * LH_NS_PER_S)
#define STRIDE          (LINK_BLOB_MAX + 4)
#define COUNT           9000u
#define GROWTH_AT       (CREATE_CARD_BYTES - SECURITY_CARD_BYTES - GROWTH_CARD_BYTES)
#define NUMBER_AT       (GROWTH_AT + KEYS_DIGEST_BYTES)

/* After which step the last rank dies. */
enum step { CARD, LINKS, BLOBS, ATTACHED, GATHERS, LIVES };

/* One growth: its ranks are hosts. */
struct growth {
    struct group_world *world;
    uint32_t size;
    uint8_t hosts[HOSTS];
    enum step last;                                                      /* of the last rank */
    void (*lie)(struct growth *growth, uint32_t reader, uint8_t *cards); /* of the exchange; NULL: none */
    bool refuses; /* the last member gives up when the others have the group */
    /* set */
    int errors[HOSTS]; /* by rank */
    struct lh_group *made[HOSTS];
};

/* ---- the world --------------------------------------------------------------------------------------- */

static void attr_of(const struct growth *growth, uint32_t rank, struct lh_group_attr *attr)
{
    lh_group_attr_init(attr);
    attr->block_bytes = 16384;
    attr->buffer_bytes = 131072;
    attr->peer_timeout_ns = PEER_TIMEOUT_NS;
    attr->rank = rank;
    attr->size = growth->size;
    attr->exchange = (lh_exchange_fn)(uintptr_t)1; /* is not called */
    attr->engine = growth->world->net.engines[growth->hosts[rank]];
}

static bool is_member(const struct growth *growth, uint32_t rank)
{
    return growth->world->groups[growth->hosts[rank]] != NULL;
}

static bool is_dead(const struct growth *growth, uint32_t rank, enum step before)
{
    return rank == growth->size - 1 && growth->last < before;
}

static void make(struct growth *growth, uint8_t *cards)
{
    for (uint32_t r = 0; r < growth->size; r++) {
        struct lh_group_attr attr;
        attr_of(growth, r, &attr);
        growth->made[r] = NULL;
        growth->errors[r] = is_member(growth, r)
                                ? grow_group(growth->world->groups[growth->hosts[r]], &attr, NULL,
                                             &growth->made[r], cards + r * CREATE_CARD_BYTES)
                                : create_group(&attr, &growth->made[r], cards + r * CREATE_CARD_BYTES);
        sim_engines_must(growth->errors[r], "a card");
        growth->made[r]->mesh->encryption = LH_ENCRYPTION_OFF;
    }
}

static void open_links(struct growth *growth, const uint8_t *cards)
{
    for (uint32_t r = 0; r < growth->size; r++) {
        struct lh_group_attr attr;
        uint32_t longest;
        uint8_t *own = malloc(growth->size * CREATE_CARD_BYTES);
        assert_non_null(own);
        memcpy(own, cards, growth->size * CREATE_CARD_BYTES);
        if (growth->lie)
            growth->lie(growth, r, own);
        attr_of(growth, r, &attr);
        if (growth->last == CARD)
            growth->errors[r] = -LH_ETIMEDOUT;
        else
            growth->errors[r] = create_links(growth->made[r], &attr, own, &longest);
        free(own);
    }
}

static void attach(struct growth *growth)
{
    size_t row = STRIDE * growth->size;
    uint8_t *blobs = calloc(growth->size, row);
    assert_non_null(blobs);
    for (uint32_t r = 0; r < growth->size; r++)
        if (!growth->errors[r] && growth->last >= BLOBS)
            growth->errors[r] = create_blobs(growth->made[r], blobs + r * row, STRIDE);
        else if (!growth->errors[r])
            growth->errors[r] = -LH_ETIMEDOUT;
    for (uint32_t r = 0; r < growth->size; r++)
        if (!growth->errors[r] && !is_dead(growth, r, ATTACHED))
            growth->errors[r] = create_attach(growth->made[r], blobs, STRIDE);
    free(blobs);
}

/* Who has the new group makes progress through it, and through its old one. */
static void enter(struct growth *growth)
{
    for (uint32_t r = 0; r < growth->size; r++) {
        uint8_t host = growth->hosts[r];
        if (is_member(growth, r) || growth->errors[r])
            continue;
        growth->world->groups[host] = growth->made[r];
        growth->world->dead[host] = is_dead(growth, r, GATHERS);
    }
}

static void gather(struct growth *growth)
{
    static uint8_t all[HOSTS][HOSTS][KEYS_DIGEST_BYTES];
    struct lh_collective *ops[HOSTS] = {NULL};
    for (uint32_t r = 0; r < growth->size; r++)
        if (!growth->errors[r] && !is_dead(growth, r, GATHERS))
            growth->errors[r] = gather_begin(growth->made[r], growth->made[r]->identity, KEYS_DIGEST_BYTES,
                                             all[r], &ops[r]);
    if (growth->last == GATHERS)
        growth->world->dead[growth->hosts[growth->size - 1]] = true;
    for (uint32_t r = 0; r < growth->size; r++) {
        struct lh_collective *one[1] = {ops[r]};
        if (!ops[r] || is_dead(growth, r, LIVES))
            continue;
        assert_true(group_world_run(growth->world, one, 1, LIMIT_NS));
        growth->errors[r] = gather_end(ops[r], 0);
        if (!growth->errors[r])
            growth->errors[r] = growth_compare(growth->made[r], all[r]);
        ops[r] = NULL;
    }
    if (ops[growth->size - 1])
        lh_collective_free(ops[growth->size - 1]);
}

/* Members have the new group in place of the old one, where it is made. */
static void end(struct growth *growth, const bool *members)
{
    for (uint32_t r = 0; r < growth->size; r++) {
        struct lh_group **group = &growth->world->groups[growth->hosts[r]], *old = *group;
        int error = growth->errors[r];
        if (is_dead(growth, r, LIVES)) {
            growth->world->dead[growth->hosts[r]] = true;
            *group = growth->made[r];
            continue;
        }
        if (!error && growth->refuses && r == growth->size - 2)
            error = lh_fail(LH_ETIMEDOUT, "too late");
        if (members[r])
            error = growth->errors[r] = grow_end(growth->made[r], error);
        else if (error)
            create_undo(growth->made[r]);
        if (error && !members[r])
            *group = NULL;
        growth->world->dead[growth->hosts[r]] = *group == NULL;
        if (error || !members[r])
            continue;
        *group = growth->made[r];
        sim_engines_must(lh_group_destroy(old), "lh_group_destroy");
    }
}

static void grow(struct growth *growth)
{
    uint8_t cards[HOSTS * CREATE_CARD_BYTES];
    bool members[HOSTS];
    for (uint32_t r = 0; r < growth->size; r++)
        members[r] = is_member(growth, r);
    make(growth, cards);
    open_links(growth, cards);
    attach(growth);
    enter(growth);
    gather(growth);
    end(growth, members);
}

static struct growth growth_of(struct group_world *world, uint32_t size)
{
    struct growth growth = {.world = world, .size = size, .last = LIVES};
    for (uint32_t r = 0; r < size; r++)
        growth.hosts[r] = (uint8_t)r;
    return growth;
}

static void must_grow(struct group_world *world, uint32_t size)
{
    struct growth growth = growth_of(world, size);
    grow(&growth);
    for (uint32_t r = 0; r < size; r++)
        sim_engines_must(growth.errors[r], "growth");
}

static void open_world(struct group_world *world, uint32_t size)
{
    *world = (struct group_world){.size = HOSTS};
    sim_engines_open(&world->net, "grow", 1, LINK, HOSTS, NULL);
    for (uint32_t host = 0; host < HOSTS; host++)
        world->dead[host] = true;
    must_grow(world, size); /* all are newcomers */
}

/* A host is there no more: its peers have noticed, then it ends. */
static void bury(struct group_world *world, uint32_t host)
{
    sim_engines_must(lh_group_destroy(world->groups[host]), "lh_group_destroy");
    world->groups[host] = NULL;
    world->dead[host] = true;
}

static void pass(struct group_world *world, lh_time span)
{
    lh_time until = group_world_now(world) + span;
    while (group_world_now(world) < until)
        group_world_turn(world, until);
}

/* All with a group add their bits. Returns an error, the same at all. */
static int sum(struct group_world *world)
{
    static int32_t in[HOSTS][COUNT], out[HOSTS][COUNT];
    struct lh_collective *ops[HOSTS] = {NULL};
    int32_t expected = 0;
    int error = 0;
    for (uint32_t host = 0; host < HOSTS; host++) {
        if (world->dead[host])
            continue;
        for (uint32_t i = 0; i < COUNT; i++)
            in[host][i] = 1 << host;
        expected += 1 << host;
        sim_engines_must(
            lh_allreduce(world->groups[host], in[host], out[host], COUNT, LH_I32, LH_SUM, NULL, &ops[host]),
            "lh_allreduce");
    }
    assert_true(group_world_run(world, ops, HOSTS, LIMIT_NS));
    for (uint32_t host = 0; host < HOSTS; host++) {
        struct lh_collective_result result;
        if (!ops[host])
            continue;
        assert_int_equal(lh_collective_test(ops[host], &result), 1);
        error = result.error ? result.error : error;
        for (uint32_t i = 0; i < COUNT && !result.error; i++)
            assert_int_equal(out[host][i], expected);
        lh_collective_free(ops[host]);
    }
    return error;
}

static void close_world(struct group_world *world)
{
    group_world_close(world);
}

static const struct link *link_between(const struct group_world *world, uint32_t host, uint32_t rank)
{
    return member_link(&world->groups[host]->members, rank);
}

/* ---- growing ----------------------------------------------------------------------------------------- */

/* One newcomer after another; connections between members are the ones that they had. */
static void test_one_after_another(void **state)
{
    struct group_world world;
    struct lh_connection *first;
    (void)state;
    open_world(&world, 1);
    must_grow(&world, 2);
    first = link_between(&world, 0, 1)->lanes[LANE_BULK].connection;
    for (uint32_t size = 2; size <= HOSTS; size++) {
        if (size > 2)
            must_grow(&world, size);
        assert_int_equal(sum(&world), 0);
        assert_ptr_equal(link_between(&world, 0, 1)->lanes[LANE_BULK].connection, first);
        assert_int_equal(world.groups[0]->mesh->groups, 1);
        for (uint32_t host = 0; host < size; host++) {
            assert_int_equal(lh_group_rank(world.groups[host]), host);
            assert_int_equal(lh_group_size(world.groups[host]), size);
            assert_memory_equal(world.groups[host]->mesh->identity, world.groups[0]->mesh->identity,
                                KEYS_DIGEST_BYTES);
        }
    }
    close_world(&world);
}

/* Members get other ranks, and newcomers are in between. */
static void test_ranks_change(void **state)
{
    struct group_world world;
    struct growth growth = {.world = &world, .size = 5, .hosts = {4, 2, 3, 0, 1}, .last = LIVES};
    (void)state;
    open_world(&world, 3);
    grow(&growth);
    for (uint32_t r = 0; r < growth.size; r++) {
        sim_engines_must(growth.errors[r], "growth");
        assert_int_equal(lh_group_rank(world.groups[growth.hosts[r]]), r);
    }
    assert_int_equal(sum(&world), 0);
    close_world(&world);
}

/* What runs in the old group goes on, and ends, while the new one is made and used. */
static void test_pending_operation(void **state)
{
    static int32_t in[2], out[2];
    struct group_world world;
    struct lh_group *old;
    struct lh_collective *op, *late[1];
    struct growth growth;
    struct lh_group_attr attr;
    (void)state;
    open_world(&world, 2);
    growth = growth_of(&world, 2);
    old = world.groups[0];
    attr_of(&growth, 0, &attr);
    sim_engines_must(lh_allreduce(old, &in[0], &out[0], 1, LH_I32, LH_SUM, NULL, &op), "lh_allreduce");
    assert_int_equal(lh_group_grow(old, &attr, &growth.made[0]), -LH_ESTATE); /* no workers */
    pass(&world, 10 * MS);
    assert_int_equal(lh_collective_test(op, NULL), 0);
    in[0] = in[1] = 1;
    sim_engines_must(lh_allreduce(world.groups[1], &in[1], &out[1], 1, LH_I32, LH_SUM, NULL, &late[0]),
                     "lh_allreduce");
    assert_true(group_world_run(&world, late, 1, LIMIT_NS));
    lh_collective_free(late[0]);
    lh_collective_free(op);
    close_world(&world);
}

/* Members die and come back, 20 times: connections between the others stay, and nothing piles up. */
static void test_come_and_go(void **state)
{
    struct group_world world;
    struct lh_connection *kept;
    (void)state;
    open_world(&world, 4);
    kept = link_between(&world, 0, 1)->lanes[LANE_SMALL].connection;
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t host = 2 + i % 2;
        struct growth growth = growth_of(&world, 4);
        world.dead[host] = true;
        assert_true(sum(&world) < 0);
        bury(&world, host);
        grow(&growth);
        for (uint32_t r = 0; r < growth.size; r++)
            sim_engines_must(growth.errors[r], "growth");
        assert_int_equal(sum(&world), 0);
        assert_ptr_equal(link_between(&world, 0, 1)->lanes[LANE_SMALL].connection, kept);
        assert_true(world.groups[0]->mesh->size <= 6);
    }
    close_world(&world);
}

/* Who does not take part counts as failed, though it lives, and may join again. */
static void test_left_out(void **state)
{
    struct group_world world;
    struct growth growth = {.world = &world, .size = 3, .hosts = {0, 1, 3}, .last = LIVES};
    struct lh_group *out;
    (void)state;
    open_world(&world, 3);
    out = world.groups[2];
    grow(&growth);
    for (uint32_t r = 0; r < growth.size; r++)
        sim_engines_must(growth.errors[r], "growth");
    pass(&world, 100 * MS);
    assert_true(lh_group_error(out, 0) < 0); /* it has learned it */
    world.dead[2] = true;
    assert_int_equal(sum(&world), 0);
    growth = (struct growth){.world = &world, .size = 4, .hosts = {0, 1, 3, 2}, .last = LIVES};
    grow(&growth); /* as a member that it is not any more */
    assert_int_equal(growth.errors[0], -LH_EHANDSHAKE);
    world.dead[2] = false;
    assert_int_equal(growth.errors[3], -LH_EHANDSHAKE);
    bury(&world, 2);
    growth = (struct growth){.world = &world, .size = 4, .hosts = {0, 1, 3, 2}, .last = LIVES};
    grow(&growth);
    for (uint32_t r = 0; r < growth.size; r++)
        sim_engines_must(growth.errors[r], "growth");
    assert_int_equal(sum(&world), 0);
    close_world(&world);
}

static bool is_agreed(struct group_world *world, const uint32_t *hosts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!agreement_is_reached(&world->groups[hosts[i]]->agreement))
            return false;
    return true;
}

/* The survivors shrink, then grow. */
static void test_shrink_then_grow(void **state)
{
    static const uint32_t left[] = {0, 2};
    struct group_world world;
    struct growth growth = {.world = &world, .size = 4, .hosts = {0, 2, 3, 1}, .last = LIVES};
    (void)state;
    open_world(&world, 3);
    world.dead[1] = true;
    assert_true(sum(&world) < 0);
    for (uint32_t i = 0; i < 2; i++)
        subgroup_begin_shrink(world.groups[left[i]]);
    while (!is_agreed(&world, left, 2))
        group_world_turn(&world, group_world_now(&world) + MS);
    for (uint32_t i = 0; i < 2; i++) {
        struct lh_group *smaller, **group = &world.groups[left[i]];
        sim_engines_must(subgroup_finish_shrink(*group, &smaller), "shrink");
        sim_engines_must(lh_group_destroy(*group), "lh_group_destroy");
        *group = smaller;
    }
    bury(&world, 1);
    grow(&growth);
    for (uint32_t r = 0; r < growth.size; r++)
        sim_engines_must(growth.errors[r], "growth");
    assert_int_equal(sum(&world), 0);
    close_world(&world);
}

/* A part of a group does not grow: the others would not know its newcomers. */
static void test_part(void **state)
{
    struct group_world world;
    struct subgroup_split splits[3];
    struct lh_collective *ops[3];
    struct lh_group *parts[3];
    struct lh_group_attr attr;
    uint8_t card[CREATE_CARD_BYTES];
    (void)state;
    open_world(&world, 3);
    for (uint32_t r = 0; r < 3; r++) {
        sim_engines_must(subgroup_begin_split(world.groups[r], r / 2, 0, &splits[r]), "split");
        ops[r] = splits[r].op;
    }
    assert_true(group_world_run(&world, ops, 3, LIMIT_NS));
    for (uint32_t r = 0; r < 3; r++)
        sim_engines_must(subgroup_finish_split(world.groups[r], &splits[r], 0, &parts[r]), "split");
    struct growth growth = growth_of(&world, 3);
    attr_of(&growth, 0, &attr);
    assert_int_equal(grow_group(parts[0], &attr, NULL, &growth.made[0], card), -LH_ESTATE);
    assert_non_null(strstr(lh_last_error(), "part of another"));
    for (uint32_t r = 0; r < 3; r++)
        sim_engines_must(lh_group_destroy(parts[r]), "lh_group_destroy");
    must_grow(&world, 4);
    assert_int_equal(sum(&world), 0);
    close_world(&world);
}

/* ---- newcomers that die ------------------------------------------------------------------------------ */

/* At each step: all members have an error, the old group works, and grows the next time. */
static void test_newcomer_dies(void **state)
{
    (void)state;
    for (enum step last = CARD; last < LIVES; last++) {
        struct group_world world;
        open_world(&world, 3);
        struct growth growth = growth_of(&world, 4);
        growth.last = last;
        struct mesh *mesh = world.groups[0]->mesh;
        lh_time timeout_ns = mesh->timeout_ns;
        uint32_t payload_max = mesh->payload_max;
        mesh->timeout_ns = 2 * timeout_ns; /* of an attribute that the growth does not have */
        mesh->payload_max = UINT16_MAX;    /* that of the newcomer is lower */
        grow(&growth);
        assert_int_equal(mesh->timeout_ns, 2 * timeout_ns);
        assert_int_equal(mesh->payload_max, UINT16_MAX);
        mesh->timeout_ns = timeout_ns;
        mesh->payload_max = payload_max;
        for (uint32_t r = 0; r < 3; r++)
            if (growth.errors[r] == 0)
                fail_msg("step %d: rank %u has the group", (int)last, r);
        assert_int_equal(sum(&world), 0);
        bury(&world, 3);
        for (uint32_t r = 0; r < 3; r++)
            assert_int_equal(world.groups[r]->mesh->groups, 1);
        must_grow(&world, 4);
        assert_int_equal(sum(&world), 0);
        close_world(&world);
    }
}

/* A newcomer that does not reach a member says so to the others: members do not fail by that. */
static void test_newcomer_accuses(void **state)
{
    struct group_world world;
    struct growth growth;
    uint8_t cards[HOSTS * CREATE_CARD_BYTES];
    (void)state;
    open_world(&world, 2);
    growth = growth_of(&world, 3);
    make(&growth, cards);
    open_links(&growth, cards);
    attach(&growth);
    enter(&growth);
    const struct notice notice = {.error = -LH_EPEER, .rank = 1}; /* by number */
    const struct tag tag = {.kind = TAG_FAILED};
    uint8_t body[NOTICE_BYTES_MAX];
    size_t bytes = notice_encode(&notice, body);
    sim_engines_must(link_send_control(member_link(&growth.made[2]->members, 0), &tag, body, bytes),
                     "link_send_control");
    pass(&world, 20 * MS);
    for (uint32_t r = 0; r < 2; r++)
        assert_int_equal(grow_end(growth.made[r], lh_fail(LH_ETIMEDOUT, "late")), -LH_ETIMEDOUT);
    world.dead[2] = true;
    assert_int_equal(sum(&world), 0);
    close_world(&world);
}

/* The link to a rank that has left is closed, and waits for its end; then another says that the rank has
 * failed. */
static void test_notice_of_closed(void **state)
{
    struct group_world world;
    struct growth growth;
    (void)state;
    open_world(&world, 3);
    bury(&world, 2);
    pass(&world, 20 * MS);
    assert_int_equal(lh_group_error(world.groups[0], 2), -LH_ECLOSED);
    growth = growth_of(&world, 2);
    struct mesh *mesh = world.groups[0]->mesh;
    mesh->polling = true; /* as by a thread, which may have entries of it */
    grow(&growth);
    assert_int_equal(growth.errors[0], 0);
    assert_int_equal(mesh->closed_links, 1);
    const struct notice notice = {.error = -LH_EPEER, .rank = 2, .text = "caf\xc3\xa9"};
    const struct tag tag = {.kind = TAG_FAILED};
    uint8_t body[NOTICE_BYTES_MAX];
    size_t bytes = notice_encode(&notice, body);
    sim_engines_must(link_send_control(member_link(&world.groups[1]->members, 0), &tag, body, bytes),
                     "link_send_control");
    pass(&world, 20 * MS);
    assert_int_equal(mesh->links[2].error, -LH_EPEER); /* it has come */
    assert_int_equal(lh_group_error(world.groups[0], 1), 0);
    mesh->polling = mesh->woken = false;
    assert_int_equal(sum(&world), 0);
    assert_int_equal(mesh->closed_links, 0);
    close_world(&world);
}

/* A rank that gives up when the others have the group: their next call says so. */
static void test_one_gives_up(void **state)
{
    struct group_world world;
    struct growth growth;
    (void)state;
    open_world(&world, 3);
    growth = growth_of(&world, 4);
    growth.refuses = true;
    grow(&growth);
    assert_int_equal(growth.errors[0], 0);
    assert_int_equal(growth.errors[2], -LH_ETIMEDOUT);
    pass(&world, 20 * MS);
    world.dead[2] = true; /* its old group makes no calls */
    struct lh_collective *op[1];
    struct lh_collective_result result;
    sim_engines_must(lh_barrier(world.groups[0], NULL, &op[0]), "lh_barrier");
    assert_int_equal(lh_collective_test(op[0], &result), 1);
    assert_int_equal(result.error, -LH_ETIMEDOUT);
    assert_string_equal(result.message, "group: rank 2 is not in it: too late");
    lh_collective_free(op[0]);
    close_world(&world);
}

/* ---- lies -------------------------------------------------------------------------------------------- */

static uint8_t *growth_card(uint8_t *cards, uint32_t rank)
{
    return cards + rank * CREATE_CARD_BYTES + GROWTH_AT;
}

static void claims_member(struct growth *growth, uint32_t reader, uint8_t *cards)
{
    if (reader < growth->size - 1)
        memcpy(growth_card(cards, growth->size - 1), growth_card(cards, 0), GROWTH_CARD_BYTES);
}

/* A member that is not in the exchange, and whose number nobody else has. */
static void claims_absent(struct growth *growth, uint32_t reader, uint8_t *cards)
{
    claims_member(growth, reader, cards);
    if (reader < growth->size - 1)
        lh_put_be32(cards + (growth->size - 1) * CREATE_CARD_BYTES + NUMBER_AT, 2);
}

static void claims_numbers(struct growth *growth, uint32_t reader, uint8_t *cards)
{
    (void)growth;
    if (reader != 1)
        lh_put_be32(growth_card(cards, 1) + KEYS_DIGEST_BYTES + 4, UINT32_MAX - 1);
}

static void claims_groups(struct growth *growth, uint32_t reader, uint8_t *cards)
{
    (void)growth;
    if (reader != 1)
        lh_put_be32(growth_card(cards, 1) + KEYS_DIGEST_BYTES + 8, UINT32_MAX);
}

static void hides_groups(struct growth *growth, uint32_t reader, uint8_t *cards)
{
    (void)reader;
    for (uint32_t r = 0; r < growth->size - 1; r++)
        lh_put_be32(growth_card(cards, r) + KEYS_DIGEST_BYTES + 8, 0);
}

static void claims_identity(struct growth *growth, uint32_t reader, uint8_t *cards)
{
    (void)growth;
    if (reader != 1)
        growth_card(cards, 1)[0] ^= 1;
}

static void claims_youth(struct growth *growth, uint32_t reader, uint8_t *cards)
{
    (void)growth;
    if (reader == 1)
        lh_put_be32(growth_card(cards, 1) + KEYS_DIGEST_BYTES, UINT32_MAX);
}

/* What nothing reads is changed: only the comparison finds it. */
static void differs(struct growth *growth, uint32_t reader, uint8_t *cards)
{
    if (reader == 0)
        memcpy(growth_card(cards, growth->size - 1), "other", 5);
}

static void lie(void (*how)(struct growth *growth, uint32_t reader, uint8_t *cards), const char *words)
{
    struct group_world world;
    struct growth growth;
    bool found = false;
    open_world(&world, 2);
    growth = growth_of(&world, 3);
    growth.lie = how;
    growth.last = how == claims_absent ? ATTACHED : LIVES;
    uint8_t cards[HOSTS * CREATE_CARD_BYTES];
    make(&growth, cards);
    for (uint32_t r = 0; r < growth.size; r++) {
        struct lh_group_attr attr;
        uint32_t longest;
        uint8_t own[HOSTS * CREATE_CARD_BYTES];
        memcpy(own, cards, sizeof own);
        how(&growth, r, own);
        attr_of(&growth, r, &attr);
        growth.errors[r] = create_links(growth.made[r], &attr, own, &longest);
        found |= growth.errors[r] && strstr(lh_last_error(), words);
    }
    if (how == differs) {
        attach(&growth);
        enter(&growth);
        gather(&growth);
        found = strstr(lh_last_error(), words);
    }
    if (!found)
        fail_msg("\"%s\" is not in \"%s\"", words, lh_last_error());
    for (uint32_t r = 0; r < 2; r++)
        assert_true(grow_end(growth.made[r], growth.errors[r] ? growth.errors[r] : -LH_ETIMEDOUT) < 0);
    create_undo(growth.made[2]);
    world.groups[2] = NULL;
    world.dead[2] = true;
    assert_int_equal(sum(&world), 0); /* of the old group */
    must_grow(&world, 3);
    assert_int_equal(sum(&world), 0);
    close_world(&world);
}

static void test_lies(void **state)
{
    (void)state;
    lie(claims_member, "ranks 0 and 2 are the same member");
    lie(claims_absent, "malformed card of rank 2"); /* no such number was given */
    lie(claims_numbers, "malformed card of rank 1");
    lie(claims_groups, "malformed card of rank 1");
    lie(hides_groups, "a number of groups below its own");
    lie(claims_identity, "have been in different groups");
    lie(claims_youth, "the exchange has changed the card of rank 1");
    lie(differs, "different cards");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_another),
        cmocka_unit_test(test_ranks_change),
        cmocka_unit_test(test_pending_operation),
        cmocka_unit_test(test_come_and_go),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_shrink_then_grow),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_newcomer_dies),
        cmocka_unit_test(test_newcomer_accuses),
        cmocka_unit_test(test_notice_of_closed),
        cmocka_unit_test(test_one_gives_up),
        cmocka_unit_test(test_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
