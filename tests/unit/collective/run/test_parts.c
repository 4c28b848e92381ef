/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "collective/run/layout.h"
#include "collective/run/pieces.h"

#define RANKS 4u

static const size_t sent[RANKS] = {7, 2, 0, 31}, got[RANKS] = {0, 2, 10, 20};

static struct parts_request request_of(enum collective collective, uint32_t rank)
{
    return (struct parts_request){.collective = collective,
                                  .rank = rank,
                                  .ranks = RANKS,
                                  .root = 1,
                                  .in_counts = sent,
                                  .out_counts = got,
                                  .per_block = 10};
}

static void *make(const struct parts_request *request, struct parts *parts)
{
    void *memory = calloc(1, parts_memory(request));
    assert_non_null(memory);
    assert_int_equal(parts_make(request, memory, parts), 0);
    return memory;
}

/* Each block has a place of its own, and they fill the buffers but for its own part. */
static void test_alltoall(void **state)
{
    const struct parts_request request = request_of(COLLECTIVE_ALLTOALL, 1);
    struct parts parts;
    void *memory = make(&request, &parts);
    uint8_t in[40] = {0}, out[32] = {0};
    const struct layout layout = {.collective = COLLECTIVE_ALLTOALL,
                                  .rank = 1,
                                  .ranks = RANKS,
                                  .element_bytes = 1,
                                  .in = in,
                                  .out = out,
                                  .parts = &parts};
    (void)state;
    assert_int_equal(parts.in_blocks, 1 + 4);
    assert_int_equal(parts.blocks, 5 + 1 + 2);
    assert_int_equal(parts.elements, 40 + 32);
    assert_int_equal(layout_blocks(&layout, 10), parts.blocks);
    assert_int_equal(layout_work_bytes(&layout, false), 0);
    for (uint32_t b = 0; b < parts.blocks; b++) {
        size_t bytes = layout_bytes(&layout, b);
        assert_true(bytes > 0 && bytes <= 10);
        uint8_t *at = b < parts.in_blocks ? in + (layout_from(&layout, b) - in) : layout_to(&layout, b);
        for (size_t i = 0; i < bytes; i++)
            at[i]++;
    }
    for (size_t i = 0; i < sizeof in; i++)
        assert_int_equal(in[i], i < 7 || i >= 9);
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], i >= 2);
    const uint8_t *from;
    uint8_t *to;
    assert_int_equal(layout_own(&layout, &from, &to), 2);
    assert_ptr_equal(from, in + 7);
    assert_ptr_equal(to, out);
    free(memory);
}

/* The root has all parts, the others have their own. */
static void test_root(void **state)
{
    struct parts_request request = request_of(COLLECTIVE_GATHER, 1);
    struct parts parts;
    (void)state;
    request.count = 2;
    free(make(&request, &parts));
    assert_int_equal(parts.in_blocks, 0); /* what is its own does not travel */
    assert_int_equal(parts.blocks, 3);
    request.rank = 3;
    request.count = 25;
    free(make(&request, &parts));
    assert_int_equal(parts.in_blocks, 3);
    assert_int_equal(parts.blocks, 3);
    request = request_of(COLLECTIVE_SCATTER, 1);
    request.count = 2;
    free(make(&request, &parts));
    assert_int_equal(parts.in_blocks, 5);
    assert_int_equal(parts.blocks, 5);
}

/* What one sends in pieces the other expects in the same, though they number blocks differently. */
static void test_pieces_agree(void **state)
{
    size_t counts[RANKS][RANKS], columns[RANKS][RANKS];
    (void)state;
    for (uint32_t s = 0; s < RANKS; s++)
        for (uint32_t d = 0; d < RANKS; d++)
            columns[d][s] = counts[s][d] = (s * 13 + d * 29) % 4 * 11;
    struct piece pieces[2][RANKS][64]; /* sends, receives */
    uint32_t numbers[2 * RANKS], made[2][RANKS];
    for (uint32_t r = 0; r < RANKS; r++) {
        struct parts_request request = request_of(COLLECTIVE_ALLTOALL, r);
        request.in_counts = counts[r];
        request.out_counts = columns[r];
        struct parts parts;
        void *memory = make(&request, &parts);
        const struct layout layout = {.collective = COLLECTIVE_ALLTOALL,
                                      .rank = r,
                                      .ranks = RANKS,
                                      .blocks = parts.blocks,
                                      .element_bytes = 1,
                                      .parts = &parts};
        const struct schedule_shape shape = {
            .ranks = RANKS, .blocks = parts.blocks, .extents = parts.extents};
        const struct pieces_plan plan = {.schedule = parts_schedule(COLLECTIVE_ALLTOALL),
                                         .shape = &shape,
                                         .layout = &layout,
                                         .piece_bytes = 10};
        memset(numbers, 0, sizeof numbers);
        struct pieces of = {.sends = pieces[0][r], .receives = pieces[1][r], .numbers = numbers};
        assert_true(pieces_make(&plan, &of));
        made[0][r] = of.send_count;
        made[1][r] = of.receive_count;
        free(memory);
    }
    uint32_t found = 0, all = 0;
    for (uint32_t r = 0; r < RANKS; r++) {
        all += made[1][r];
        for (uint32_t i = 0; i < made[0][r]; i++) {
            const struct piece *send = &pieces[0][r][i];
            for (uint32_t k = 0; k < made[1][send->peer]; k++) {
                const struct piece *receive = &pieces[1][send->peer][k];
                found +=
                    receive->peer == r && receive->number == send->number && receive->bytes == send->bytes;
            }
        }
    }
    assert_true(all > 0);
    assert_int_equal(found, all);
    assert_int_equal(made[0][0] + made[0][1] + made[0][2] + made[0][3], all);
}

static void test_refused(void **state)
{
    size_t many[RANKS] = {0, 0, SIZE_MAX, 0};
    struct parts_request request = request_of(COLLECTIVE_ALLTOALL, 3);
    struct parts parts;
    void *memory = calloc(1, parts_memory(&request));
    (void)state;
    assert_int_equal(parts_make(&request, memory, &parts), -LH_EINVAL); /* 31 for itself, and gets 20 */
    assert_string_equal(lh_last_error(), "alltoallv: rank 3 has 31 elements for itself, and gets 20");
    request = request_of(COLLECTIVE_ALLTOALL, 1);
    request.in_counts = many;
    assert_int_equal(parts_make(&request, memory, &parts), -LH_EINVAL);
    many[2] = (size_t)SCHEDULE_BLOCKS_MAX * 10 + 1;
    assert_int_equal(parts_make(&request, memory, &parts), -LH_EINVAL);
    assert_null(parts_collective_name(COLLECTIVE_ALLREDUCE));
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alltoall),
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_pieces_agree),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
