/*
 * test_matching.c - receives that choose messages by their tags, over real sockets with real workers: groups
 * of receives whose messages come in another order, and cancels from both sides while they arrive.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define PATIENCE (60 * LH_NS_PER_S) /* only a hang reaches it */
#define GROUP    8u
#define GROUPS   24u
#define MESSAGES (GROUP * GROUPS)
#define LARGE    300000u

struct pair {
    struct lh_connection *ends[2];
};

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static struct pair open_pair(const char *reliability)
{
    struct pair pair;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.device = "udp:[::1]";
    attr.reliability = reliability;
    attr.match_tags = true;
    for (int i = 0; i < 2; i++)
        must(lh_open(&attr, &pair.ends[i]), "lh_open");
    for (int i = 0; i < 2; i++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(pair.ends[1 - i], blob, &bytes), "lh_blob");
        must(lh_attach(pair.ends[i], blob, bytes), "lh_attach");
    }
    return pair;
}

static void close_pair(const struct pair *pair)
{
    lh_close(pair->ends[0]);
    lh_close(pair->ends[1]);
}

static struct lh_result finish(struct lh_request *request)
{
    struct lh_result result = {0};
    must(lh_wait(request, PATIENCE, &result), "lh_wait");
    lh_request_free(request);
    return result;
}

static struct lh_request *send_tagged(const struct pair *pair, void *data, size_t bytes, uint64_t tag)
{
    const struct lh_part part = {data, bytes, NULL};
    struct lh_request *request;
    must(lh_sendmsg(pair->ends[0], &(struct lh_message){.parts = &part, .count = 1, .tag = tag}, &request),
         "lh_sendmsg");
    return request;
}

static struct lh_request *recv_tagged(const struct pair *pair, void *buffer, size_t capacity, uint64_t tag,
                                      uint64_t ignore)
{
    const struct lh_part part = {buffer, capacity, NULL};
    const struct lh_message message = {.parts = &part, .count = 1, .tag = tag, .ignore = ignore};
    struct lh_request *request;
    must(lh_recvmsg(pair->ends[1], &message, &request), "lh_recvmsg");
    return request;
}

static size_t bytes_of(uint32_t group, uint32_t tag)
{
    static const size_t sizes[] = {0, 1, 64, 896, 4096, 4097, 65536, LARGE};
    return sizes[(group + tag) % GROUP];
}

static uint8_t content_of(uint32_t group, uint32_t tag)
{
    return (uint8_t)(1 + group * GROUP + tag);
}

/* A permutation of 0 … GROUP - 1. */
static void draw_order(struct lh_prng *prng, uint32_t order[GROUP])
{
    for (uint32_t i = 0; i < GROUP; i++) {
        uint32_t other = (uint32_t)lh_prng_below(prng, i + 1);
        order[i] = i;
        order[i] = order[other];
        order[other] = i;
    }
}

static void check(const uint8_t *buffer, struct lh_request *request, uint32_t group, uint32_t tag)
{
    struct lh_result result = finish(request);
    assert_int_equal(result.error, 0);
    assert_int_equal(result.tag & (GROUP - 1), tag);
    assert_int_equal(result.bytes, bytes_of(group, tag));
    for (size_t i = 0; i < LARGE; i++)
        if (buffer[i] != (i < result.bytes ? content_of(group, tag) : 0))
            fail_msg("group %u, tag %u: byte %zu is %u", group, tag, i, buffer[i]);
}

struct exchange {
    struct pair pair;
    struct lh_prng prng;
    struct lh_request *sends[MESSAGES], *receives[MESSAGES];
    uint8_t *data[MESSAGES], *buffers[MESSAGES];
};

static void send_group(struct exchange *x, uint32_t group)
{
    uint32_t order[GROUP];
    draw_order(&x->prng, order);
    for (uint32_t i = 0; i < GROUP; i++) {
        uint32_t tag = order[i], n = group * GROUP + tag;
        x->data[n] = malloc(LARGE);
        memset(x->data[n], content_of(group, tag), LARGE);
        x->sends[n] = send_tagged(&x->pair, x->data[n], bytes_of(group, tag), tag | (uint64_t)group << 32);
    }
}

static void receive_group(struct exchange *x, uint32_t group)
{
    uint32_t order[GROUP];
    draw_order(&x->prng, order);
    for (uint32_t i = 0; i < GROUP; i++) {
        uint32_t tag = order[i], n = group * GROUP + tag;
        x->buffers[n] = calloc(1, LARGE);
        x->receives[n] = recv_tagged(&x->pair, x->buffers[n], LARGE, tag, ~(uint64_t)(GROUP - 1));
    }
}

/* As a collective has them: each group has the same tags, and of some the messages are there first. */
static void exchange_groups(const char *reliability)
{
    static struct exchange x;
    x.pair = open_pair(reliability);
    lh_prng_seed(&x.prng, 7);
    for (uint32_t group = 0; group < GROUPS; group += 2) {
        send_group(&x, group);
        receive_group(&x, group);
        receive_group(&x, group + 1);
        send_group(&x, group + 1);
    }
    for (uint32_t n = 0; n < MESSAGES; n++) {
        check(x.buffers[n], x.receives[n], n / GROUP, n % GROUP);
        assert_int_equal(finish(x.sends[n]).error, 0);
        free(x.data[n]);
        free(x.buffers[n]);
    }
    close_pair(&x.pair);
}

static void groups_by_repetition(void **state)
{
    (void)state;
    exchange_groups("sr-nack");
}

static void groups_with_parity(void **state)
{
    (void)state;
    exchange_groups("ec:mds");
}

/* Whatever comes first: both requests of a message end, and alike unless it had arrived. */
static void canceled_by_either_side(void **state)
{
    (void)state;
    static uint8_t data[LARGE], buffer[LARGE];
    struct pair pair = open_pair("sr-nack");
    for (uint32_t i = 0; i < 200; i++) {
        size_t bytes = i % 3 == 0 ? 100 : LARGE;
        struct lh_request *recv = recv_tagged(&pair, buffer, sizeof buffer, i, 0);
        struct lh_request *send = send_tagged(&pair, data, bytes, i);
        if (i % 5 == 0)
            lh_wait(recv, LH_NS_PER_MS, NULL); /* in the middle of it, or not */
        lh_cancel(i % 2 ? send : recv);
        if (i % 2 == 0) /* it may have had no message yet: that takes another */
            recv = (lh_request_free(recv), recv_tagged(&pair, buffer, sizeof buffer, i, 0));
        lh_cancel(send);
        lh_cancel(recv);
        finish(send);
        finish(recv);
    }
    struct lh_request *recv = recv_tagged(&pair, buffer, sizeof buffer, 1000, 0);
    memset(data, 9, sizeof data);
    struct lh_request *send = send_tagged(&pair, data, sizeof data, 1000);
    assert_int_equal(finish(recv).tag, 1000);
    assert_memory_equal(buffer, data, sizeof data);
    assert_int_equal(finish(send).error, 0);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_by_repetition),
        cmocka_unit_test(groups_with_parity),
        cmocka_unit_test(canceled_by_either_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
