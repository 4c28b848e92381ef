/*
 * test_mesh.c - messages that a rank must not send, and what the others learn of it, over a simulated
 * network: who fails at whom, with which words, and what is kept or dropped of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "group/mesh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/collective_case.h"

#define RANKS    3u
#define MS       LH_NS_PER_MS
#define LIMIT_NS (10 * LH_NS_PER_S)

static struct group_world world;

static void run_for(lh_time span_ns)
{
    lh_time until = group_world_now(&world) + span_ns;
    while (group_world_now(&world) < until)
        group_world_turn(&world, until);
}

static int set_up(void **state)
{
    struct lh_group_attr attr;
    (void)state;
    lh_group_attr_init(&attr);
    attr.block_bytes = 16384;
    attr.buffer_bytes = 131072;
    attr.peer_timeout_ns = LH_NS_PER_S;
    group_world_open(&world, "mesh", 5, "delay=1ms,rate=10Gbit", RANKS, &attr, NULL);
    run_for(20 * MS); /* they have met */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    group_world_close(&world);
    return 0;
}

static struct link *link_of(uint32_t rank, uint32_t peer)
{
    return &world.groups[rank]->mesh->links[peer];
}

static void send(uint32_t from, uint32_t to, struct tag tag, const void *body, size_t bytes)
{
    sim_engines_must(link_send_control(link_of(from, to), &tag, body, bytes), "link_send_control");
    run_for(10 * MS);
}

static void send_notice(uint32_t from, uint32_t to, uint32_t about, int error)
{
    const struct notice notice = {.error = error, .rank = about};
    uint8_t body[NOTICE_BYTES_MAX];
    size_t bytes = notice_encode(&notice, body);
    send(from, to, (struct tag){.kind = TAG_FAILED}, body, bytes);
}

/* By rank and peer: 0, but for these. */
static void expect_errors(const int errors[RANKS][RANKS])
{
    for (uint32_t r = 0; r < RANKS; r++)
        for (uint32_t peer = 0; peer < RANKS; peer++)
            if (lh_group_error(world.groups[r], peer) != errors[r][peer])
                fail_msg("rank %u has error %d of rank %u, not %d", r,
                         lh_group_error(world.groups[r], peer), peer, errors[r][peer]);
}

static const int none[RANKS][RANKS];
/* Rank 1 has failed for all; it knows only that rank 0 has nothing to do with it. */
static const int of_rank_1[RANKS][RANKS] = {
    {0, -LH_EPROTOCOL, 0}, {-LH_EPEER, 0, -LH_EPEER}, {0, -LH_EPROTOCOL, 0}};

static struct lh_collective *barrier(uint32_t rank)
{
    struct lh_collective *op;
    sim_engines_must(lh_barrier(world.groups[rank], NULL, &op), "lh_barrier");
    return op;
}

static void expect_failed(struct lh_collective *op, int error, uint32_t rank, const char *text)
{
    struct lh_collective_result result;
    assert_true(group_world_run(&world, &op, 1, LIMIT_NS));
    assert_int_equal(lh_collective_test(op, &result), 1);
    assert_int_equal(result.error, error);
    assert_int_equal(result.failed_rank, rank);
    assert_string_equal(result.message, text);
}

/* What waits at ranks 0 and 2 ends, and the next call is refused. */
static void expect_rank_1_failed(struct lh_collective *const ops[RANKS])
{
    char text[200];
    struct lh_collective *op;
    expect_errors(of_rank_1);
    for (uint32_t r = 0; r < RANKS; r += 2) {
        snprintf(text, sizeof text, "%s: rank 1 has failed: %s", ops[r]->schedule->name,
                 lh_strerror(-LH_EPROTOCOL));
        expect_failed(ops[r], -LH_EPROTOCOL, 1, text);
        assert_int_equal(lh_barrier(world.groups[r], NULL, &op), -LH_EPROTOCOL);
        snprintf(text, sizeof text, "barrier: rank 1 has failed: %s", lh_strerror(-LH_EPROTOCOL));
        assert_string_equal(lh_last_error(), text);
        lh_collective_free(ops[r]);
    }
}

/* ---- messages that are none -------------------------------------------------------------------------- */

static void fail_by(struct tag tag, const void *body, size_t bytes)
{
    struct lh_collective *ops[RANKS] = {barrier(0), NULL, barrier(2)};
    run_for(10 * MS);
    expect_errors(none);
    send(1, 0, tag, body, bytes);
    run_for(10 * MS);
    expect_rank_1_failed(ops);
    /* What it sends from now on is dropped, and nothing waits for it. */
    send(1, 0, (struct tag){.group = 9, .kind = TAG_SIGNATURE}, body, 1);
    assert_int_equal(link_of(0, 1)->kept_bytes, 0);
    assert_null(link_of(0, 1)->backlog);
}

static const uint8_t rubbish[SIGNATURE_BYTES + 40] = {0xff, 0xff, 0xff, 0xff, 0xff};

static void test_no_kind(void **state)
{
    (void)state;
    fail_by((struct tag){.kind = TAG_KINDS}, rubbish, 10);
}

static void test_no_notice(void **state)
{
    (void)state;
    fail_by((struct tag){.kind = TAG_FAILED}, rubbish, 3);
}

static void test_no_signature(void **state)
{
    (void)state;
    fail_by((struct tag){.kind = TAG_SIGNATURE}, rubbish, SIGNATURE_BYTES - 1);
}

static void test_no_report(void **state)
{
    (void)state;
    fail_by((struct tag){.kind = TAG_AGREE, .operation = TAG_NO_OPERATION}, rubbish, 10);
}

static void test_no_proposal(void **state)
{
    (void)state;
    fail_by((struct tag){.kind = TAG_TIMEOUT, .operation = TAG_NO_OPERATION, .piece = COLLECTIVES}, rubbish,
            LH_TIMEOUT_PROPOSAL_BYTES);
}

/* Of an operation that is over. */
static void test_no_late_signature(void **state)
{
    struct lh_collective *ops[RANKS];
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        ops[r] = barrier(r);
    assert_true(group_world_run(&world, ops, RANKS, LIMIT_NS));
    for (uint32_t r = 0; r < RANKS; r++)
        lh_collective_free(ops[r]);
    fail_by((struct tag){.kind = TAG_SIGNATURE}, rubbish, SIGNATURE_BYTES - 1);
}

/* ---- notices ----------------------------------------------------------------------------------------- */

/* Who is told that it has failed for a rank tells no other. */
static void test_told_of_itself(void **state)
{
    static const int errors[RANKS][RANKS] = {{0, -LH_EPEER, 0}, {-LH_EPEER, 0, 0}, {0}};
    (void)state;
    send_notice(1, 0, 0, -LH_ETIMEDOUT);
    run_for(10 * MS);
    expect_errors(errors);
}

static void test_told_of_another(void **state)
{
    static const int errors[RANKS][RANKS] = {
        {0, 0, -LH_ENOMEM}, {0, 0, -LH_ENOMEM}, {-LH_EPEER, -LH_EPEER, 0}};
    (void)state;
    send_notice(1, 0, 2, -LH_ENOMEM);
    run_for(10 * MS);
    expect_errors(errors);
}

static struct lh_collective *chain(uint32_t rank, uint8_t *buffer)
{
    struct lh_collective *op;
    struct lh_collective_options options;
    lh_collective_options_init(&options);
    options.schedule = "chain";
    sim_engines_must(lh_broadcast(world.groups[rank], buffer, 100, LH_U8, 0, &options, &op),
                     "lh_broadcast");
    return op;
}

/* Who has failed fails also what does not need it: another one may. */
static void test_a_rank_that_is_not_needed(void **state)
{
    uint8_t buffer[100];
    char text[200];
    struct lh_collective *op = chain(0, buffer);
    (void)state;
    run_for(10 * MS);
    assert_false(lh_collective_test(op, NULL)); /* rank 1 has not begun */
    send_notice(1, 0, 2, -LH_EPEER);
    snprintf(text, sizeof text, "chain: rank 2 has failed: %s", lh_strerror(-LH_EPEER));
    expect_failed(op, -LH_EPEER, 2, text);
    lh_collective_free(op);
}

static void test_told_of_nobody(void **state)
{
    (void)state;
    send_notice(1, 0, RANKS, -LH_EPEER);
    send_notice(1, 0, LH_NO_RANK, -LH_EPEER);
    expect_errors(none);
}

/* ---- one operation ----------------------------------------------------------------------------------- */

#define COUNT 60000u

static uint8_t in[COUNT], outs[RANKS][RANKS * COUNT];

static struct lh_collective *gather(uint32_t rank, size_t count, lh_time deadline_ns)
{
    struct lh_collective *op;
    struct lh_collective_options options;
    lh_collective_options_init(&options);
    options.schedule = "ring";
    options.deadline_ns = deadline_ns;
    sim_engines_must(lh_allgather(world.groups[rank], in, outs[rank], count, LH_U8, &options, &op),
                     "gather");
    return op;
}

/* Only the operation fails, everywhere. */
static void fail_operation(struct tag tag, const void *body, size_t bytes, const char *text)
{
    struct lh_collective *ops[RANKS] = {gather(0, COUNT, 0), NULL, gather(2, COUNT, 0)};
    run_for(20 * MS);
    send(2, 0, tag, body, bytes);
    ops[1] = gather(1, COUNT, 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        expect_failed(ops[r], -LH_EPROTOCOL, 2, text);
        lh_collective_free(ops[r]);
    }
    expect_errors(none);
    for (uint32_t r = 0; r < RANKS; r++)
        ops[r] = gather(r, COUNT, 0);
    assert_true(group_world_run(&world, ops, RANKS, LIMIT_NS));
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(ops[r]->result.error, 0);
        lh_collective_free(ops[r]);
    }
}

static void test_no_such_piece(void **state)
{
    (void)state;
    fail_operation((struct tag){.kind = TAG_PIECE, .piece = 99}, rubbish, 10,
                   "rank 2 sent a piece 99 of 8");
}

static void test_no_such_counts(void **state)
{
    (void)state;
    fail_operation((struct tag){.kind = TAG_COUNTS}, rubbish, 10,
                   "rank 2 sent contributions of another length");
}

static void test_no_such_end(void **state)
{
    (void)state;
    fail_operation((struct tag){.kind = TAG_OVER}, rubbish, 8,
                   "rank 2 sent a malformed end of an operation");
}

static void test_disagreement(void **state)
{
    struct lh_collective *ops[2];
    (void)state;
    ops[0] = gather(0, 50, 0);
    ops[1] = gather(1, 60, 0);
    for (uint32_t r = 0; r < 2; r++) {
        struct lh_collective_result result;
        assert_true(group_world_run(&world, &ops[r], 1, LIMIT_NS));
        assert_int_equal(lh_collective_test(ops[r], &result), 1);
        assert_int_equal(result.error, -LH_EPROTOCOL);
        assert_string_equal(result.message,
                            "ranks disagree: count 50 at rank 0, 60 at rank 1 (all ranks make the same "
                            "calls in the same order)");
        lh_collective_free(ops[r]);
    }
}

/* Rank 2 has begun, and waits for rank 1, so rank 0 lacks what comes through it. */
static void test_deadline(void **state)
{
    struct lh_collective *ops[2];
    lh_time due;
    (void)state;
    ops[0] = gather(0, 100, 50 * MS);
    lh_time begun = group_world_now(&world);
    ops[1] = gather(2, 100, 0);
    run_for(20 * MS);
    sim_engines_must(lh_group_progress(world.groups[0], &due), "lh_group_progress");
    assert_true(due <= begun + 50 * MS);
    assert_int_equal(mesh_next_deadline(world.groups[0]->mesh), begun + 50 * MS);
    assert_int_equal(mesh_next_deadline(world.groups[2]->mesh), LH_TIME_NEVER);
    assert_int_equal(mesh_awaited(ops[0]), 2);
    assert_int_equal(mesh_awaited(ops[1]), 1);
    const char *text = "ring: deadline passed at rank 0: 1 blocks of rank 2 missing, which has begun";
    expect_failed(ops[0], -LH_ETIMEDOUT, 2, text);
    assert_true(ops[0]->result.ended_ns >= begun + 50 * MS && ops[0]->result.ended_ns < begun + 52 * MS);
    expect_failed(ops[1], -LH_ETIMEDOUT, 2, text);
    assert_int_equal(mesh_next_deadline(world.groups[0]->mesh), LH_TIME_NEVER);
    lh_collective_free(ops[0]);
    lh_collective_free(ops[1]);
}

/* ---- early messages ---------------------------------------------------------------------------------- */

/* Of a group that this rank had, nothing is kept; of one that it may get, all. */
static void test_groups_that_are_not_there(void **state)
{
    const struct tag tag = {.group = 7, .kind = TAG_SIGNATURE};
    (void)state;
    world.groups[0]->mesh->next_group = 8;
    send(1, 0, tag, rubbish, 10);
    assert_int_equal(link_of(0, 1)->kept_bytes, 0);
    world.groups[0]->mesh->next_group = 7;
    send(1, 0, tag, rubbish, 10);
    assert_int_equal(link_of(0, 1)->kept_bytes, ahead_cost(10));
    expect_errors(none);
}

/* Of an operation that has failed at the peer that is all that is kept. */
static void test_early_failure(void **state)
{
    struct lh_collective *op = gather(1, COUNT, 0), *late;
    (void)state;
    run_for(20 * MS);
    struct link *link = link_of(2, 1);
    assert_true(link->kept_bytes > COUNT / 2);
    assert_int_equal(lh_collective_cancel(op), 0);
    run_for(20 * MS);
    size_t kept = link->kept_bytes;
    assert_true(kept > 0 && kept <= ahead_cost(NOTICE_BYTES_MAX));
    send(1, 2, (struct tag){.kind = TAG_PIECE}, rubbish, 10);
    send(1, 2, (struct tag){.kind = TAG_ABORT}, rubbish, 10);
    assert_int_equal(link->kept_bytes, kept);
    late = gather(2, COUNT, 0);
    expect_failed(late, -LH_ECANCELED, 1, "canceled");
    assert_int_equal(link->kept_bytes, 0);
    lh_collective_free(late);
    late = gather(0, COUNT, 0);
    expect_failed(late, -LH_ECANCELED, 1, "canceled");
    lh_collective_free(late);
    lh_collective_free(op);
    expect_errors(none);
}

/* Pieces that come before their sender's signature wait for it. */
static void test_piece_before_signature(void **state)
{
    struct lh_collective *ops[RANKS] = {gather(0, 100, 0), NULL, NULL};
    uint8_t piece[100];
    (void)state;
    memset(piece, 0x77, sizeof piece);
    send(2, 0, (struct tag){.kind = TAG_PIECE, .piece = 0}, piece, sizeof piece);
    assert_int_equal(link_of(0, 2)->kept_bytes, ahead_cost(sizeof piece));
    assert_int_equal(ops[0]->peers[2].left, 2);
    uint8_t signature[SIGNATURE_BYTES];
    signature_encode(&ops[0]->signature, signature);
    send(2, 0, (struct tag){.kind = TAG_SIGNATURE}, signature, sizeof signature);
    assert_int_equal(link_of(0, 2)->kept_bytes, 0);
    assert_int_equal(ops[0]->peers[2].left, 1);
    assert_memory_equal(outs[0] + 200, piece, sizeof piece);
    /* What is kept for an operation ends with it. */
    send(1, 0, (struct tag){.kind = TAG_PIECE, .piece = 0}, piece, sizeof piece);
    assert_int_equal(link_of(0, 1)->kept_bytes, ahead_cost(sizeof piece));
    lh_collective_free(ops[0]);
    assert_int_equal(link_of(0, 1)->kept_bytes, 0);
}

/* Also those that come before the operation begins, whose signature comes before or after that. */
static void early_piece(bool is_signed)
{
    const struct tag signs = {.kind = TAG_SIGNATURE};
    uint8_t signature[SIGNATURE_BYTES], piece[100];
    struct lh_collective *op = gather(1, 100, 0);
    memset(piece, 0x66, sizeof piece);
    signature_encode(&op->signature, signature);
    send(2, 0, (struct tag){.kind = TAG_PIECE, .piece = 0}, piece, sizeof piece);
    if (is_signed)
        send(2, 0, signs, signature, sizeof signature);
    struct lh_collective *late = gather(0, 100, 0);
    assert_int_equal(late->peers[2].left, is_signed ? 1 : 2);
    assert_int_equal(link_of(0, 2)->kept_bytes, is_signed ? 0 : ahead_cost(sizeof piece));
    if (!is_signed)
        send(2, 0, signs, signature, sizeof signature);
    assert_int_equal(late->peers[2].left, 1);
    assert_int_equal(link_of(0, 2)->kept_bytes, 0);
    assert_memory_equal(outs[0] + 200, piece, sizeof piece);
    lh_collective_free(late);
    lh_collective_free(op);
}

static void test_signed_before_it_begins(void **state)
{
    (void)state;
    early_piece(true);
}

static void test_signed_after_it_has_begun(void **state)
{
    (void)state;
    early_piece(false);
}

/* ---- leaving ----------------------------------------------------------------------------------------- */

/* Rank 2 needs nothing of rank 0, which leaves; it learns of it by rank 1, which does. */
static void test_left(void **state)
{
    char text[200];
    uint8_t buffers[RANKS][100];
    struct lh_collective *ops[RANKS] = {NULL};
    (void)state;
    for (uint32_t r = 1; r < RANKS; r++)
        ops[r] = chain(r, buffers[r]);
    run_for(20 * MS);
    sim_engines_must(lh_group_destroy(world.groups[0]), "lh_group_destroy");
    world.groups[0] = NULL;
    world.dead[0] = true;
    lh_time until = group_world_now(&world) + 100 * MS;
    while (group_world_now(&world) < until) {
        sim_engines_must(lh_engine_progress(world.net.engines[0], NULL), "lh_engine_progress");
        group_world_turn(&world, group_world_now(&world) + MS);
    }
    snprintf(text, sizeof text, "chain: rank 0 has left the group: %s", lh_strerror(-LH_ECLOSED));
    for (uint32_t r = 1; r < RANKS; r++) {
        assert_int_equal(lh_group_error(world.groups[r], 0), -LH_ECLOSED);
        assert_int_equal(lh_group_error(world.groups[r], 3 - r), 0);
        expect_failed(ops[r], -LH_ECLOSED, 0, text);
        lh_collective_free(ops[r]);
    }
    ops[1] = chain(1, buffers[1]); /* it is known to have left */
    assert_true(lh_collective_test(ops[1], NULL) == 1);
    expect_failed(ops[1], -LH_ECLOSED, 0, text);
    lh_collective_free(ops[1]);
    /* It left in order: what others say of it then is worth more, */
    send_notice(1, 2, 0, -LH_ENOMEM);
    assert_int_equal(lh_group_error(world.groups[2], 0), -LH_ENOMEM);
    /* and the first word stays. */
    send_notice(1, 2, 0, -LH_EPEER);
    assert_int_equal(lh_group_error(world.groups[2], 0), -LH_ENOMEM);
}

/* ---- waiting ----------------------------------------------------------------------------------------- */

/* A thread that polls until 5 s is woken for what is due before, and for nothing else. */
static void test_who_is_woken(void **state)
{
    struct mesh *mesh = world.groups[0]->mesh;
    struct lh_completion entry;
    (void)state;
    while (lh_poll(mesh->queue, &entry, 1) > 0)
        continue;
    mesh->polls_until_ns = 5 * LH_NS_PER_S;
    waiting_wake_before(mesh, 0); /* nobody polls */
    mesh->polling = true;
    waiting_wake_before(mesh, LH_TIME_NEVER);
    waiting_wake_before(mesh, 5 * LH_NS_PER_S);
    assert_false(mesh->woken);
    assert_int_equal(lh_poll(mesh->queue, &entry, 1), 0);
    waiting_wake_before(mesh, 5 * LH_NS_PER_S - 1);
    waiting_wake_before(mesh, 1); /* once */
    assert_true(mesh->woken);
    assert_int_equal(lh_poll(mesh->queue, &entry, 1), 1);
    assert_int_equal(entry.operation, LH_OPERATION_COLLECTIVE);
    assert_int_equal(lh_poll(mesh->queue, &entry, 1), 0);
    mesh->polling = mesh->woken = false;
}

#define MESH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MESH_TEST(test_no_kind),
        MESH_TEST(test_no_notice),
        MESH_TEST(test_no_signature),
        MESH_TEST(test_no_report),
        MESH_TEST(test_no_proposal),
        MESH_TEST(test_no_late_signature),
        MESH_TEST(test_told_of_itself),
        MESH_TEST(test_told_of_another),
        MESH_TEST(test_told_of_nobody),
        MESH_TEST(test_no_such_piece),
        MESH_TEST(test_no_such_counts),
        MESH_TEST(test_no_such_end),
        MESH_TEST(test_disagreement),
        MESH_TEST(test_deadline),
        MESH_TEST(test_groups_that_are_not_there),
        MESH_TEST(test_early_failure),
        MESH_TEST(test_piece_before_signature),
        MESH_TEST(test_signed_before_it_begins),
        MESH_TEST(test_signed_after_it_has_begun),
        MESH_TEST(test_a_rank_that_is_not_needed),
        MESH_TEST(test_left),
        MESH_TEST(test_who_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
