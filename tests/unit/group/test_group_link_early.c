/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPERATIONS 3000u

static struct link links[2] = {{.rank = 0}, {.rank = 1}};

static struct ahead_store *store_new(void)
{
    struct ahead_store *store = calloc(1, sizeof *store);
    assert_non_null(store);
    return store;
}

static void keep(struct ahead_store *store, uint32_t link, uint32_t group, uint32_t operation,
                 uint32_t piece)
{
    const struct tag tag = {.group = group, .kind = TAG_PIECE, .operation = operation, .piece = piece};
    assert_int_equal(
        ahead_keep(store, &links[link], &tag, (const uint8_t *)&piece, sizeof piece, NULL, NULL), 0);
}

/* Takes a queue's messages one after another, in their order. */
static void expect(struct ahead_store *store, uint32_t link, uint32_t group, uint32_t operation,
                   uint32_t pieces)
{
    struct ahead_queue *queue = ahead_detach(store, &links[link], group, operation);
    for (uint32_t i = 0; i < pieces; i++) {
        assert_non_null(queue);
        assert_non_null(queue->first);
        assert_int_equal(queue->first->tag.piece, i);
        assert_memory_equal(queue->first->data, &i, sizeof i);
        ahead_remove(queue, &queue->first);
    }
    assert_true(!queue || !queue->first);
    ahead_discard(queue);
}

static void each_has_its_own(void **state)
{
    struct ahead_store *store = store_new();
    (void)state;
    for (uint32_t piece = 0; piece < 3; piece++)
        for (uint32_t operation = 0; operation < OPERATIONS; operation++)
            for (uint32_t group = 0; group < 2; group++)
                for (uint32_t link = 0; link < 2; link++)
                    if (piece <= (operation + link) % 3)
                        keep(store, link, group, operation, piece);
    assert_int_equal(store->queues, 4 * OPERATIONS);
    ahead_discard_group(store, 1);
    assert_int_equal(store->queues, 2 * OPERATIONS);
    for (uint32_t operation = OPERATIONS; operation-- > 0;)
        for (uint32_t link = 0; link < 2; link++) {
            assert_non_null(ahead_find(store, &links[link], 0, operation));
            expect(store, link, 0, operation, (operation + link) % 3 + 1);
            expect(store, link, 1, operation, 0);
        }
    assert_int_equal(store->queues, 0);
    assert_int_equal(links[0].kept_bytes, 0);
    assert_int_equal(links[1].kept_bytes, 0);
    ahead_end(store);
    free(store);
}

/* What is removed from the middle or the end leaves the others in order, and more may come. */
static void removal(void **state)
{
    struct ahead_store *store = store_new();
    (void)state;
    for (uint32_t removed = 0; removed < 3; removed++) {
        for (uint32_t piece = 0; piece < 3; piece++)
            keep(store, 0, 5, 7, piece);
        struct ahead_queue *queue = ahead_detach(store, &links[0], 5, 7);
        struct ahead **at = &queue->first;
        for (uint32_t i = 0; i < removed; i++)
            at = &(*at)->next;
        ahead_remove(queue, at);
        assert_int_equal(store->queues, 0);
        ahead_attach(store, queue);
        assert_int_equal(store->queues, 1);
        keep(store, 0, 5, 7, 9);
        uint32_t sum = 0, count = 0;
        for (const struct ahead *each = ahead_find(store, &links[0], 5, 7)->first; each;
             each = each->next, count++)
            sum = 10 * sum + each->tag.piece;
        assert_int_equal(count, 3);
        assert_int_equal(sum, removed == 0 ? 129 : removed == 1 ? 29 : 19);
        assert_int_equal(links[0].kept_bytes, 3 * ahead_cost(sizeof removed));
        ahead_discard(ahead_detach(store, &links[0], 5, 7));
        assert_int_equal(links[0].kept_bytes, 0);
    }
    keep(store, 1, 5, 8, 0);
    ahead_end(store);
    assert_int_equal(store->queues, 0);
    assert_int_equal(links[1].kept_bytes, 0);
    assert_null(ahead_find(store, &links[1], 5, 8));
    free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_own),
        cmocka_unit_test(removal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
