/*
 * test_bounded_operation.c - one operation at one rank, over links that the test plays: its messages, what it
 * waits for and how long, what is given up, what peers are told, and what is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "group/bounded_operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "collective/schedules.h"
#include "group/group_operation.h"
#include "sdr/sdr_state.h"
#include "support/op_request.h"

#define RANKS    3u
#define RANK     1u
#define MS       LH_NS_PER_MS
#define START    (7 * MS)
#define DEADLINE (60 * MS)
#define RTT      (10 * MS)
#define BLOCK    4096u
#define PART     6000u /* two blocks of 3000 bytes, so of 3 granules each, the last of 952 */
#define HALF     3000u
#define MESSAGES 64u

struct control_sent {
    uint32_t rank;
    struct tag tag;
    uint8_t body[64];
    size_t bytes;
};

static struct link links[RANKS];
static struct control_sent controls[MESSAGES];
static uint32_t control_count, reposted;
static struct tag sent_tags[MESSAGES];
static uint32_t sent_ranks[MESSAGES], sent_count;
static lh_time sent_until[MESSAGES];
static bool sent_copied[MESSAGES];
static lh_time now_ns;
static bool full, is_short;
static int control_error;

static uint32_t rank_of(const struct link *link)
{
    return (uint32_t)(link - links);
}

lh_time link_rtt_ns(struct link *link)
{
    return rank_of(link) == RANK ? 0 : RTT;
}

enum lane link_lane_of(const struct link *link, size_t bytes, bool bounded)
{
    assert_true(bytes <= BLOCK);
    return bounded && link->lanes[LANE_BOUNDED].connection ? LANE_BOUNDED : LANE_BULK;
}

bool link_may_send(const struct link *link, enum lane lane)
{
    assert_true(rank_of(link) != RANK && lane != LANE_SMALL);
    return !full;
}

bool link_copies(struct link *link, enum lane lane, size_t bytes)
{
    (void)link;
    (void)bytes;
    return lane == LANE_BOUNDED;
}

int link_send(struct link *link, enum lane lane, const struct link_message *message)
{
    (void)lane;
    sent_ranks[sent_count] = rank_of(link);
    sent_tags[sent_count] = message->tag;
    sent_until[sent_count] = message->until;
    sent_copied[sent_count] = message->owner == NULL;
    sent_count++;
    return 0;
}

int link_send_control(struct link *link, const struct tag *tag, const void *body, size_t bytes)
{
    struct control_sent *sent = &controls[control_count++];
    *sent = (struct control_sent){.rank = rank_of(link), .tag = *tag, .bytes = bytes};
    memcpy(sent->body, body, bytes < sizeof sent->body ? bytes : sizeof sent->body);
    return control_error ? lh_fail((enum lh_error) - control_error, "refused") : 0;
}

int link_repost(struct bounce *bounce)
{
    assert_non_null(bounce);
    reposted++;
    return 0;
}

bool link_is_short(const struct link *link, enum lane lane)
{
    (void)link;
    (void)lane;
    return is_short;
}

static uint64_t asked_tag;
static uint32_t asked, ended;

void link_end_receives(struct link *link, deadline_ends *ends, const void *context)
{
    (void)link;
    asked++;
    ended += ends(context, asked_tag);
}

static lh_time clock_now(struct fabric *fabric)
{
    (void)fabric;
    return now_ns;
}

/* ---- an operation ------------------------------------------------------------------------------------ */

struct fixture {
    uint32_t of_mesh[RANKS];
    struct members members;
    struct group_paths paths;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct op_context context;
    struct lh_collective *op;
    uint8_t in[PART], out[RANKS * PART];
};

static struct fixture f;
static struct fabric_ops clock_ops;
static struct fabric clock_fabric;
static struct sdr_context clock_context;

static int set_up(void **state)
{
    static const uint32_t sites[RANKS] = {0};
    (void)state;
    f = (struct fixture){
        .of_mesh = {0, 1, 2}, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    memset(links, 0, sizeof links);
    memset(f.in, 0x11, sizeof f.in);
    memset(f.out, 0xee, sizeof f.out);
    control_count = sent_count = reposted = asked = ended = 0;
    full = is_short = false;
    control_error = 0;
    now_ns = START;
    for (uint32_t r = 0; r < RANKS; r++) {
        links[r].rank = r;
        links[r].deadline_ns = DEADLINE;
        links[r].lanes[LANE_BULK].places = links[r].lanes[LANE_BOUNDED].places = 64;
        links[r].lanes[LANE_BOUNDED].connection = (struct lh_connection *)(void *)&links[r];
    }
    f.members =
        (struct members){.id = 4, .rank = RANK, .size = RANKS, .of_mesh = f.of_mesh, .links = links};
    f.paths = (struct group_paths){.members = &f.members, .block_bytes = BLOCK, .lock = &f.lock};
    f.paths.order = group_order_create(sites, NULL, RANKS);
    assert_non_null(f.paths.order);
    clock_ops.now = clock_now;
    clock_fabric.ops = &clock_ops;
    clock_context.fabric = &clock_fabric;
    f.context = (struct op_context){.members = &f.members,
                                    .paths = &f.paths,
                                    .block_bytes = BLOCK,
                                    .bounded = {true, true},
                                    .peer_timeout_ns = LH_NS_PER_S,
                                    .clock = &clock_context,
                                    .changed = &f.changed};
    return 0;
}

static int tear_down(void **state)
{
    static const struct notice over = {.error = -LH_ECANCELED, .rank = LH_NO_RANK, .text = "over"};
    (void)state;
    if (f.op && f.op->state == OP_RUNNING)
        op_fail(f.op, now_ns, &over); /* frees what has arrived */
    if (f.op)
        op_destroy(f.op);
    if (f.context.work)
        munmap(f.context.work, f.context.work_bytes);
    group_order_release(f.paths.order);
    return 0;
}

static struct lh_collective *begin(enum collective collective, const char *schedule)
{
    uint32_t rank;
    struct op_request request = op_request_of(collective, f.in, f.out, LH_U8, PART);
    if (collective == COLLECTIVE_BROADCAST)
        request.in = request.out;
    assert_int_equal(op_create(&f.context, &request, schedule_find(collective, schedule), &f.op), 0);
    f.op->number = 9;
    assert_int_equal(op_begin(f.op, START, &rank), 0);
    return f.op;
}

static void agree(uint32_t rank)
{
    char text[200];
    assert_int_equal(op_on_signature(f.op, rank, &f.op->signature, text, sizeof text), 0);
}

static void run(void)
{
    uint32_t rank;
    assert_int_equal(op_run(f.op, now_ns, &rank), 0);
}

/* A piece that is copied, of contributions that its tag tells. */
static int bring(uint32_t rank, uint32_t number, uint32_t contributions, size_t bytes, struct loss *loss)
{
    static uint8_t data[BLOCK + 1];
    memset(data, (int)(0x20 + rank), sizeof data);
    struct op_piece piece = {
        .piece = number | contributions << BOUNDED_NUMBER_BITS, .data = data, .bytes = bytes, .loss = loss};
    int error = op_on_piece(f.op, rank, &piece);
    assert_true(error || !loss || !piece.loss || f.op->arrivals[0].given_up);
    return error;
}

static struct loss *loss_at(uint64_t offset, uint64_t bytes)
{
    struct loss *loss = malloc(sizeof *loss + sizeof *loss->ranges);
    assert_non_null(loss);
    loss->count = 1;
    loss->ranges[0] = (struct lh_range){.offset = offset, .bytes = bytes};
    return loss;
}

static void expire(lh_time after_start)
{
    now_ns = START + after_start;
    assert_int_equal(bounded_on_expired(f.op, now_ns), 0);
}

/* ---- messages ---------------------------------------------------------------------------------------- */

static void test_what_is_sent(void **state)
{
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    assert_int_equal(control_count, 2); /* signatures */
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(controls[i].tag.kind, TAG_SIGNATURE);
        assert_int_equal(controls[i].tag.group, 4);
        assert_int_equal(controls[i].tag.operation, 9);
    }
    full = true;
    run();
    assert_int_equal(sent_count, 0);
    assert_true(op_needs(f.op, 2)); /* it has something for it */
    full = false;
    run();
    assert_int_equal(sent_count, 2); /* its own part */
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(sent_ranks[i], 2);
        assert_int_equal(sent_tags[i].kind, TAG_PIECE);
        assert_int_equal(sent_tags[i].piece, i | 1u << BOUNDED_NUMBER_BITS);
        assert_true(sent_until[i] == START + DEADLINE);
        assert_true(sent_copied[i]);
    }
    assert_int_equal(links[2].early[LANE_BOUNDED], 2);
    assert_int_equal(f.op->result.bytes_sent, PART);
    agree(2);
    assert_int_equal(links[2].early[LANE_BOUNDED], 0);
    assert_int_equal(f.op->unsigned_peers, 1);
    agree(0);
    agree(0);
    assert_int_equal(f.op->unsigned_peers, 0);
}

/* A peer that has not begun gets half of its places. */
static void test_bound_of_early_pieces(void **state)
{
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    links[2].early[LANE_BOUNDED] = 31;
    run();
    assert_int_equal(sent_count, 1);
    agree(2);
    run();
    assert_int_equal(sent_count, 2);
}

/* Granules that lack something are told apart in a message behind the piece. */
static void test_counts_are_told(void **state)
{
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    agree(2);
    run();
    assert_int_equal(links[2].early[LANE_BOUNDED], 0); /* it has begun */
    control_count = sent_count = 0;
    assert_int_equal(bring(0, 0, 1, HALF, loss_at(1024, 1)), 0);
    run();
    assert_int_equal(sent_count, 1); /* passed on */
    assert_int_equal(sent_tags[0].piece, 2);
    assert_int_equal(control_count, 1);
    assert_int_equal(controls[0].rank, 2);
    assert_int_equal(controls[0].tag.kind, TAG_COUNTS);
    assert_int_equal(controls[0].tag.piece, 2);
    assert_int_equal(controls[0].bytes, 6);
    assert_int_equal(lh_get_be16(controls[0].body), 1);
    assert_int_equal(lh_get_be16(controls[0].body + 2), 0);
    assert_int_equal(lh_get_be16(controls[0].body + 4), 1);
    assert_int_equal(f.op->result.bytes_received, HALF - 1024);
    assert_int_equal(f.op->bounded->missing[0], 1024);
    for (uint32_t i = 0; i < HALF; i++)
        assert_int_equal(f.out[i], i >= 1024 && i < 2048 ? 0 : 0x20);
}

/* ---- arrivals ---------------------------------------------------------------------------------------- */

static void expect_protocol(int error, const char *text)
{
    assert_int_equal(error, -LH_EPROTOCOL);
    assert_string_equal(lh_last_error(), text);
}

static void test_pieces_that_are_none(void **state)
{
    uint8_t counts[8] = {0};
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    agree(2);
    expect_protocol(bring(0, 4, 1, HALF, NULL), "rank 0 sent a piece 4 of 4");
    expect_protocol(bring(2, 0, 1, HALF, NULL), "rank 2 sent a piece 0 of 0");
    expect_protocol(bring(0, 3, 1, HALF + 1, NULL), "rank 0 sent piece 3 in another length");
    expect_protocol(bring(0, 3, 1, HALF - 1, NULL), "rank 0 sent piece 3 in another length");
    assert_int_equal(bring(0, 3, 1, HALF, NULL), 0);
    expect_protocol(bring(0, 3, 1, HALF, NULL), "rank 0 sent piece 3 twice");
    assert_int_equal(f.op->peers[0].left, 3);
    assert_int_equal(bring(0, 2, 1, HALF - 1, loss_of_all()), 0); /* so its length is not known */
    struct op_piece piece = {.piece = 1, .data = counts, .bytes = 8};
    expect_protocol(op_on_counts(f.op, 0, &piece), "rank 0 sent contributions of another length");
    piece.piece = 4;
    expect_protocol(op_on_counts(f.op, 0, &piece), "rank 0 sent a piece 4 of 4");
}

/* A piece whose tag has no contributions waits for them, or they for it. */
static void test_counts_arrive(void **state)
{
    uint8_t counts[6] = {0, 1, 0, 0, 0, 1};
    struct op_piece piece = {.piece = 0, .data = counts, .bytes = sizeof counts};
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    agree(2);
    run();
    sent_count = control_count = 0;
    assert_int_equal(bring(0, 0, 0, HALF, NULL), 0);
    assert_false(f.op->arrivals[f.op->receives_of[f.op->peers[0].first_receive]].complete);
    run();
    assert_int_equal(sent_count, 0);
    assert_int_equal(op_on_counts(f.op, 0, &piece), 0);
    assert_int_equal(op_on_counts(f.op, 0, &piece), 0); /* again: no matter */
    run();
    assert_int_equal(sent_count, 1);
    assert_memory_equal(controls[0].body, counts, sizeof counts);
    piece.piece = 1;
    assert_int_equal(op_on_counts(f.op, 0, &piece), 0);
    run();
    assert_int_equal(sent_count, 1);
    assert_int_equal(bring(0, 1, 0, HALF, NULL), 0);
    run();
    assert_int_equal(sent_count, 2);
}

/* A buffer that waits is given back when buffers are few, or when it is small. */
static void test_unloading(void **state)
{
    static uint8_t memory[BLOCK];
    struct bounce bounce = {.link = &links[0], .memory = memory, .lane = LANE_BOUNDED};
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    struct op_piece piece = {
        .piece = 3 | 1u << BOUNDED_NUMBER_BITS, .data = memory, .bytes = HALF, .bounce = &bounce};
    assert_int_equal(op_on_piece(f.op, 0, &piece), 0);
    assert_null(piece.bounce); /* it is the operation's */
    assert_int_equal(op_unload(f.op, 0, piece.piece), 0);
    assert_int_equal(reposted, 0);
    is_short = true;
    assert_int_equal(op_unload(f.op, 0, piece.piece), 0);
    assert_int_equal(reposted, 1);
    assert_int_equal(op_unload(f.op, 0, piece.piece), 0);
    assert_int_equal(reposted, 1);
    is_short = false;
    bounce.lane = LANE_SMALL;
    piece.bounce = &bounce;
    piece.piece = 2 | 1u << BOUNDED_NUMBER_BITS;
    assert_int_equal(op_on_piece(f.op, 0, &piece), 0);
    assert_int_equal(op_unload(f.op, 0, piece.piece), 0);
    assert_int_equal(reposted, 2);
}

/* ---- what is needed of a rank ------------------------------------------------------------------------ */

static void test_needs(void **state)
{
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    run();
    assert_false(op_needs(f.op, RANK));
    assert_true(op_needs(f.op, 0));
    assert_true(op_needs(f.op, 2)); /* its signature */
    agree(0);
    agree(2);
    assert_true(op_needs(f.op, 0)); /* its pieces */
    assert_true(op_needs(f.op, 2)); /* has pieces for it, which have not come yet */
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(f.op->state, OP_RUNNING);
        assert_int_equal(bring(0, i, 1, HALF, NULL), 0);
    }
    assert_false(op_needs(f.op, 0));
    assert_true(op_needs(f.op, 2));
    now_ns = START + MS;
    run();
    assert_int_equal(f.op->state, OP_DONE);
    assert_false(op_needs(f.op, 2));
    assert_int_equal(f.op->result.error, 0);
    assert_int_equal(f.op->result.ended_ns, now_ns);
    assert_int_equal(f.op->result.bytes_sent, 2 * PART);
    assert_int_equal(f.op->result.bytes_received, 2 * PART);
    assert_int_equal(f.op->result.missing_bytes, 0);
    assert_non_null(past_find(&f.context.past, 9));
}

/* ---- deadlines --------------------------------------------------------------------------------------- */

/* Two phases of the same weight, each with half a round trip: a peer that has not begun has the first half,
 * one that has begun all but the latency of the second. */
static void test_phases(void **state)
{
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    expire(0);
    assert_int_equal(bounded_next(f.op), START + DEADLINE / 2);
    agree(0);
    f.op->bounded->next_at = 0;
    expire(0);
    assert_int_equal(bounded_next(f.op), START + DEADLINE - RTT / 2);
    assert_int_equal(bounded_until(f.op, 0), START + DEADLINE);
    assert_int_equal(bounded_until(f.op, RANK), LH_TIME_NEVER);
    expire(DEADLINE - RTT / 2 - 1);
    assert_int_equal(f.op->peers[0].left, 4);
    expire(DEADLINE - RTT / 2);
    assert_int_equal(f.op->peers[0].left, 2);
    assert_int_equal(bounded_next(f.op), START + DEADLINE);
    assert_int_equal(bring(0, 0, 1, HALF, NULL), 0); /* too late: it is dropped */
    run();
    assert_int_equal(f.op->result.bytes_received, 0);
    assert_int_equal(f.op->state, OP_RUNNING);
    expire(DEADLINE);
    assert_int_equal(f.op->peers[0].left, 0);
    assert_int_equal(bounded_next(f.op), LH_TIME_NEVER);
}

static void test_no_deadline(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        links[r].deadline_ns = LH_DEADLINE_NONE;
    begin(COLLECTIVE_ALLGATHER, "ring");
    expire(LH_NS_PER_S);
    assert_int_equal(bounded_next(f.op), LH_TIME_NEVER);
    assert_int_equal(f.op->peers[0].left, 4);
    assert_int_equal(bounded_until(f.op, 0), LH_TIME_NEVER);
}

/* The messages of what is due, and no others, end as they are. */
static void test_which_receives_end(void **state)
{
    struct tag tag = {.group = 4, .kind = TAG_PIECE, .operation = 9, .piece = 1};
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    asked_tag = tag_encode(&tag);
    assert_false(bounded_end_due(f.op, START));
    expire(0);
    assert_false(bounded_end_due(f.op, START + DEADLINE / 2 - 1));
    assert_int_equal(asked, 0);
    assert_true(bounded_end_due(f.op, START + DEADLINE / 2));
    assert_int_equal(asked, 1); /* of one rank at once */
    assert_int_equal(ended, 1);
    const struct tag others[] = {{.group = 4, .kind = TAG_PIECE, .operation = 9, .piece = 2},
                                 {.group = 4, .kind = TAG_PIECE, .operation = 9, .piece = 4},
                                 {.group = 4, .kind = TAG_PIECE, .operation = 8, .piece = 1},
                                 {.group = 5, .kind = TAG_PIECE, .operation = 9, .piece = 1},
                                 {.group = 4, .kind = TAG_COUNTS, .operation = 9, .piece = 1},
                                 {.group = 4, .operation = 9, .piece = 1}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        asked_tag = tag_encode(&others[i]);
        assert_true(bounded_end_due(f.op, START + DEADLINE / 2));
        assert_int_equal(ended, 1);
    }
    expire(DEADLINE / 2);
    assert_false(bounded_end_due(f.op, START + DEADLINE / 2));
}

/* ---- the end ----------------------------------------------------------------------------------------- */

static void expect_range(uint64_t first, uint64_t offset, uint64_t bytes)
{
    struct lh_range range[2] = {{0}, {.offset = 77}};
    assert_int_equal(bounded_ranges(f.op, first, range, 1), 1);
    assert_int_equal(range[0].offset, offset);
    assert_int_equal(range[0].bytes, bytes);
    assert_int_equal(range[1].offset, 77);
}

/* A peer whose pieces did not come in time, and one that was sent in vain, are told. */
static void test_over_by_the_deadline(void **state)
{
    struct lh_range ranges[3];
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    run();
    assert_int_equal(bring(0, 0, 1, HALF, loss_at(0, 1)), 0);
    control_count = 0;
    full = true;
    run();
    expire(DEADLINE);
    assert_true(f.op->peers[2].excused);
    assert_int_equal(f.op->unsigned_peers, 0);
    assert_true(bounded_abandons(f.op, 2));
    run();
    assert_int_equal(f.op->state, OP_DONE);
    assert_int_equal(sent_count, 2); /* its own part, before */
    assert_int_equal(control_count, 2);
    assert_int_equal(controls[0].rank, 0);
    assert_int_equal(controls[0].tag.kind, TAG_OVER);
    assert_int_equal(controls[0].bytes, 0); /* all that is for it was sent */
    assert_int_equal(controls[1].rank, 2);
    assert_int_equal(controls[1].bytes, 8);
    assert_int_equal(lh_get_be32(controls[1].body), 2);
    assert_int_equal(lh_get_be32(controls[1].body + 4), 2);
    assert_int_equal(f.op->result.missing_bytes, 1024 + HALF + PART);
    assert_int_equal(f.op->bounded->missing[0], 1024 + HALF + PART);
    assert_int_equal(f.op->result.bytes_received, HALF - 1024);
    assert_int_equal(bounded_ranges(f.op, 0, ranges, 3), 3);
    expect_range(0, 0, 1024);
    expect_range(1, HALF, HALF);
    expect_range(2, 2 * PART, PART); /* blocks that are adjacent are one range */
    assert_int_equal(bounded_ranges(f.op, 3, ranges, 3), 0);
    assert_int_equal(bounded_ranges(f.op, 1, ranges, 3), 2);
    for (uint32_t i = 0; i < RANKS * PART; i++)
        assert_int_equal(f.out[i], i < 1024 || (i >= HALF && i < PART) || i >= 2 * PART ? 0
                                   : i < PART                                           ? 0x20
                                                                                        : 0x11);
}

/* One that has left needs nothing; one that does not poll has failed. */
static void test_over_is_not_told(void **state)
{
    uint32_t rank = RANK;
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    run();
    expire(DEADLINE);
    control_error = -LH_ECLOSED;
    assert_int_equal(bounded_announce_over(f.op, &rank), 0);
    control_error = -LH_EPEER;
    assert_int_equal(bounded_announce_over(f.op, &rank), -LH_EPEER);
    assert_int_equal(rank, 0);
    control_count = 0;
    links[0].error = -LH_EPEER;
    assert_int_equal(bounded_announce_over(f.op, &rank), 0);
    assert_int_equal(control_count, 0);
}

/* Each run of pieces that were not sent is a range. */
static void test_ranges_of_what_was_not_sent(void **state)
{
    uint32_t rank;
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    agree(2);
    for (uint32_t i = 0; i < f.op->pieces.send_count; i++)
        f.op->bounded->dropped[i] = f.op->pieces.sends[i].number != 1;
    control_count = 0;
    assert_int_equal(bounded_announce_over(f.op, &rank), 0);
    assert_int_equal(control_count, 1);
    assert_int_equal(controls[0].rank, 2);
    assert_int_equal(controls[0].bytes, 16);
    const uint32_t wanted[] = {0, 1, 2, 2};
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(lh_get_be32(controls[0].body + 4 * (size_t)i), wanted[i]);
}

/* Over a reliable hop no peer is given up, or told. */
static void test_reliable_hop(void **state)
{
    (void)state;
    links[2].lanes[LANE_BOUNDED].connection = NULL;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    expire(0);
    assert_int_equal(bounded_until(f.op, 2), LH_TIME_NEVER);
    expire(DEADLINE);
    assert_true(f.op->bounded->expired);
    assert_false(f.op->peers[2].excused);
    assert_false(bounded_abandons(f.op, 2));
    assert_true(bounded_abandons(f.op, 0));
    run();
    assert_int_equal(sent_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(sent_until[i] == LH_TIME_NEVER);
    assert_int_equal(f.op->state, OP_RUNNING); /* until that rank agrees */
    control_count = 0;
    agree(2);
    run();
    assert_int_equal(f.op->state, OP_DONE);
    assert_int_equal(controls[0].rank, 0);
    assert_int_equal(control_count, 1);
}

static void put_range(uint8_t *out, uint32_t first, uint32_t count)
{
    lh_put_be32(out, first);
    lh_put_be32(out + 4, count);
}

/* What a peer has not sent is not waited for, and it gets nothing more. */
static void test_a_peer_is_over(void **state)
{
    uint8_t body[16];
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    agree(2);
    put_range(body, 0, 1);
    put_range(body + 8, 2, 2);
    assert_int_equal(bounded_on_over(f.op, 0, body, 16), 0);
    assert_int_equal(f.op->peers[0].left, 1);
    assert_false(bounded_abandons(f.op, 2));
    assert_int_equal(bounded_on_over(f.op, 2, NULL, 0), 0);
    assert_true(bounded_abandons(f.op, 2));
    assert_false(bounded_abandons(f.op, RANK));
    run();
    assert_int_equal(sent_count, 0);
    assert_int_equal(bring(0, 1, 1, HALF, NULL), 0);
    now_ns = START + MS;
    run();
    assert_int_equal(f.op->state, OP_DONE);
    assert_int_equal(f.op->result.missing_bytes, HALF + PART);
    assert_int_equal(f.op->bounded->took_ns, MS);
}

static void test_ends_that_are_none(void **state)
{
    uint8_t body[8];
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    agree(0);
    put_range(body, 0, 1);
    expect_protocol(bounded_on_over(f.op, 0, body, 7), "rank 0 sent a malformed end of an operation");
    assert_false(bounded_abandons(f.op, 0));
    put_range(body, 4, 0);
    expect_protocol(bounded_on_over(f.op, 0, body, 8), "rank 0 did not send piece 4 of 4");
    put_range(body, 3, 2);
    expect_protocol(bounded_on_over(f.op, 0, body, 8), "rank 0 did not send piece 3 of 4");
    assert_int_equal(f.op->peers[0].left, 4);
    links[0].lanes[LANE_BOUNDED].connection = NULL;
    expect_protocol(bounded_on_over(f.op, 0, body, 8), "rank 0 sent a malformed end of an operation");
    links[0].lanes[LANE_BOUNDED].connection = (struct lh_connection *)(void *)&links[0];
    assert_int_equal(bounded_on_lost(f.op, 0), 0);
    assert_int_equal(f.op->peers[0].left, 0);
}

/* ---- failing ----------------------------------------------------------------------------------------- */

static void test_failing(void **state)
{
    static uint8_t memory[BLOCK];
    const struct notice notice = {.error = -LH_EPEER, .rank = 2, .text = "rank 2 has failed"};
    struct bounce bounce = {.link = &links[0], .memory = memory, .lane = LANE_BOUNDED};
    struct op_piece piece = {
        .piece = 1u << BOUNDED_NUMBER_BITS, .data = memory, .bytes = HALF, .bounce = &bounce};
    (void)state;
    begin(COLLECTIVE_ALLGATHER, "ring");
    run();
    agree(0);
    assert_int_equal(op_on_piece(f.op, 0, &piece), 0);
    assert_int_equal(links[2].early[LANE_BOUNDED], 2);
    op_fail(f.op, START + MS, &notice);
    assert_int_equal(f.op->state, OP_DONE);
    assert_int_equal(reposted, 1);
    assert_int_equal(links[2].early[LANE_BOUNDED], 0);
    assert_int_equal(f.op->result.error, -LH_EPEER);
    assert_int_equal(f.op->result.failed_rank, 2);
    assert_int_equal(f.op->result.ended_ns, START + MS);
    assert_string_equal(f.op->result.message, notice.text);
    uint32_t rank;
    sent_count = 0;
    full = false;
    assert_int_equal(op_run(f.op, now_ns, &rank), 0);
    assert_int_equal(sent_count, 0);
}

/* ---- sums -------------------------------------------------------------------------------------------- */

#define ELEMENTS (PART / 4)

static float sum_in[RANKS * ELEMENTS], sum_out[RANKS * ELEMENTS];

/* All ranks have the same tensor, so what the others send is what this one would. */
static void begin_sum(enum collective collective, const char *schedule, enum lh_reduction reduction)
{
    uint32_t rank;
    struct op_request request = op_request_of(collective, f.in, f.out, LH_F32, ELEMENTS);
    for (uint32_t i = 0; i < RANKS * ELEMENTS; i++)
        sum_in[i] = (float)(i % 100 + 1);
    memset(sum_out, 0xee, sizeof sum_out);
    request.in = sum_in;
    request.out = sum_out;
    request.reduction = reduction;
    request.reduces = true;
    assert_int_equal(op_create(&f.context, &request, schedule_find(collective, schedule), &f.op), 0);
    assert_int_equal(op_begin(f.op, START, &rank), 0);
    agree(0);
    agree(2);
    run();
}

/* The encoded input, of a piece. */
static int bring_input(uint32_t rank, uint32_t number, struct loss *loss)
{
    static uint8_t data[2 * BLOCK];
    const struct op_peer *peer = &f.op->peers[rank];
    const struct piece *of = &f.op->pieces.receives[f.op->receives_of[peer->first_receive + number]];
    memcpy(data, layout_from(&f.op->layout, of->first), of->bytes);
    struct op_piece piece = {
        .piece = number | 1u << BOUNDED_NUMBER_BITS, .data = data, .bytes = of->bytes, .loss = loss};
    return op_on_piece(f.op, rank, &piece);
}

static void expect_sum(uint32_t first, float times)
{
    assert_int_equal(f.op->state, OP_DONE);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        float wanted = times * sum_in[first + i], error = sum_out[i] - wanted;
        if (error > 0.01f || error < -0.01f)
            fail_msg("element %u is %g, not %g", i, (double)sum_out[i], (double)wanted);
    }
}

/* A granule of two contributions is scaled. */
static void sum_with(struct loss *loss, uint64_t missing, enum lh_reduction reduction)
{
    begin_sum(COLLECTIVE_ALLREDUCE, "direct", reduction);
    assert_int_equal(sent_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sent_tags[i].piece >> BOUNDED_NUMBER_BITS, 1);
    for (uint32_t block = 0; block < 2; block++) { /* a piece each */
        assert_int_equal(bring_input(0, block, NULL), 0);
        assert_int_equal(bring_input(2, block, block == 1 ? loss : NULL), 0);
    }
    now_ns = START + MS;
    run();
    expect_sum(0, reduction == LH_AVG ? 1 : RANKS);
    assert_int_equal(f.op->result.missing_bytes, missing);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        assert_true(sum_in[i] == (float)(i % 100 + 1));
}

static void test_sum(void **state)
{
    (void)state;
    sum_with(NULL, 0, LH_SUM);
}

static void test_average(void **state)
{
    (void)state;
    sum_with(NULL, 0, LH_AVG);
}

static void test_sum_that_lacks_some(void **state)
{
    (void)state;
    sum_with(loss_at(0, 10), 1024, LH_SUM); /* of the last of three blocks */
    expect_range(0, 4000, 1024);
    assert_int_equal(f.op->bounded->missing[2], 1024);
}

/* What no other has brought is this rank's own, scaled. */
static void test_sum_of_one(void **state)
{
    (void)state;
    begin_sum(COLLECTIVE_ALLREDUCE, "direct", LH_SUM);
    assert_int_equal(bounded_on_lost(f.op, 0), 0);
    assert_int_equal(bounded_on_lost(f.op, 2), 0);
    run();
    expect_sum(0, RANKS);
    assert_int_equal(f.op->result.missing_bytes, PART);
}

static void test_sum_that_is_too_large(void **state)
{
    struct op_request request = op_request_of(COLLECTIVE_ALLREDUCE, f.in, f.out, LH_F32, ELEMENTS);
    uint32_t rank = 7;
    (void)state;
    memset(sum_in, 0, sizeof sum_in);
    uint32_t infinite = 0x7f800000;
    memcpy(&sum_in[1234], &infinite, 4);
    request.in = sum_in;
    request.out = sum_out;
    request.reduction = LH_SUM;
    assert_int_equal(op_create(&f.context, &request, schedule_find(COLLECTIVE_ALLREDUCE, "direct"), &f.op),
                     0);
    assert_int_equal(op_begin(f.op, START, &rank), -LH_ERANGE);
    assert_int_equal(rank, RANK);
    assert_string_equal(lh_last_error(), "direct: element 1234 at rank 1 is not finite, or too large");
    const struct notice notice = {.error = -LH_ERANGE, .rank = rank};
    op_fail(f.op, now_ns, &notice);
}

/* Partial sums come around: of one rank, then of two. */
static void test_part_of_a_sum(void **state)
{
    static float data[BLOCK / 4];
    (void)state;
    begin_sum(COLLECTIVE_REDUCE_SCATTER, "ring", LH_SUM);
    const struct op_peer *peer = &f.op->peers[0];
    const uint32_t receives = peer->receives;
    assert_int_equal(receives, 4);
    for (uint32_t number = 0; number < receives; number++) {
        const struct piece *of = &f.op->pieces.receives[f.op->receives_of[peer->first_receive + number]];
        const uint32_t ranks = number < receives / 2 ? 1 : 2;
        const float *encoded = (const float *)(const void *)layout_from(&f.op->layout, of->first);
        for (uint32_t i = 0; i < of->bytes / 4; i++)
            data[i] = (float)ranks * encoded[i];
        struct op_piece piece = {.piece = number | ranks << BOUNDED_NUMBER_BITS,
                                 .data = (const uint8_t *)data,
                                 .bytes = of->bytes,
                                 .loss = number == 3 ? loss_at(0, 1) : NULL};
        assert_int_equal(op_on_piece(f.op, 0, &piece), 0);
        run();
    }
    expect_sum(RANK * ELEMENTS, RANKS);
    assert_int_equal(f.op->result.missing_bytes, 1024);
    expect_range(0, HALF, 1024);
}

/* ---- steps that overlap ------------------------------------------------------------------------------ */

/* Blocks follow one another: they have the whole deadline, whether their sender has begun or not. */
static void test_pipeline(void **state)
{
    (void)state;
    begin(COLLECTIVE_BROADCAST, "chain");
    expire(0);
    assert_int_equal(bounded_next(f.op), START + DEADLINE);
    agree(0);
    f.op->bounded->next_at = 0;
    expire(0);
    assert_int_equal(bounded_next(f.op), START + DEADLINE);
    expire(DEADLINE);
    run();
    assert_int_equal(f.op->state, OP_DONE);
    assert_int_equal(f.op->result.missing_bytes, PART);
    for (uint32_t i = 0; i < PART; i++)
        assert_int_equal(f.out[i], 0);
}

/* ---- deadlines that are learned ---------------------------------------------------------------------- */

static void finish_gather(void)
{
    agree(0);
    agree(2);
    now_ns += 3 * MS;
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(bring(0, i, 1, HALF, NULL), 0);
        run();
    }
    assert_int_equal(f.op->state, OP_DONE);
}

/* The first has no deadline, and is the warm-up; the next one has, and proposes to all. */
static void test_learned(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        links[r].deadline_ns = LH_DEADLINE_AUTO;
    begin(COLLECTIVE_ALLGATHER, "ring");
    assert_int_equal(f.op->bounded->expected, 2 * PART);
    assert_int_equal(bounded_until(f.op, 0), LH_TIME_NEVER);
    control_count = 0;
    finish_gather();
    assert_int_equal(f.op->bounded->took_ns, 3 * MS);
    assert_int_equal(control_count, 0);
    op_destroy(f.op);
    now_ns = START;
    begin(COLLECTIVE_ALLGATHER, "ring");
    lh_time until_ns = bounded_until(f.op, 0);
    assert_true(until_ns > START && until_ns <= START + LH_NS_PER_S / 2);
    control_count = 0;
    finish_gather();
    assert_int_equal(control_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(controls[i].rank, 2 * i);
        assert_int_equal(controls[i].tag.kind, TAG_TIMEOUT);
        assert_int_equal(controls[i].tag.operation, TAG_NO_OPERATION);
        assert_int_equal(controls[i].tag.piece, COLLECTIVE_ALLGATHER);
        assert_int_equal(controls[i].bytes, LH_TIMEOUT_PROPOSAL_BYTES);
    }
    assert_int_equal(
        deadlines_on_proposal(&f.context, 0, COLLECTIVE_ALLGATHER, controls[0].body, controls[0].bytes), 0);
    expect_protocol(deadlines_on_proposal(&f.context, 0, COLLECTIVES, controls[0].body, controls[0].bytes),
                    "rank 0 sent a malformed proposal of a timeout");
    expect_protocol(deadlines_on_proposal(&f.context, 2, COLLECTIVE_ALLGATHER, controls[0].body, 1),
                    "rank 2 sent a malformed proposal of a timeout");
    lh_timeout_destroy(f.context.timeouts[COLLECTIVE_ALLGATHER]);
}

/* Half of it is below the least deadline that is learned. */
static void test_short_peer_timeout(void **state)
{
    (void)state;
    f.context.peer_timeout_ns = 1000;
    for (uint32_t r = 0; r < RANKS; r++)
        links[r].deadline_ns = LH_DEADLINE_AUTO;
    begin(COLLECTIVE_ALLGATHER, "ring");
    lh_timeout_destroy(f.context.timeouts[COLLECTIVE_ALLGATHER]);
}

#define OPERATION_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPERATION_TEST(test_what_is_sent),
        OPERATION_TEST(test_bound_of_early_pieces),
        OPERATION_TEST(test_counts_are_told),
        OPERATION_TEST(test_pieces_that_are_none),
        OPERATION_TEST(test_counts_arrive),
        OPERATION_TEST(test_unloading),
        OPERATION_TEST(test_needs),
        OPERATION_TEST(test_phases),
        OPERATION_TEST(test_no_deadline),
        OPERATION_TEST(test_which_receives_end),
        OPERATION_TEST(test_over_by_the_deadline),
        OPERATION_TEST(test_over_is_not_told),
        OPERATION_TEST(test_ranges_of_what_was_not_sent),
        OPERATION_TEST(test_reliable_hop),
        OPERATION_TEST(test_a_peer_is_over),
        OPERATION_TEST(test_ends_that_are_none),
        OPERATION_TEST(test_failing),
        OPERATION_TEST(test_sum),
        OPERATION_TEST(test_average),
        OPERATION_TEST(test_sum_that_lacks_some),
        OPERATION_TEST(test_sum_of_one),
        OPERATION_TEST(test_sum_that_is_too_large),
        OPERATION_TEST(test_part_of_a_sum),
        OPERATION_TEST(test_pipeline),
        OPERATION_TEST(test_learned),
        OPERATION_TEST(test_short_peer_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
