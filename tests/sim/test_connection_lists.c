/*
 * test_connection_lists.c - messages in several parts, with tags, over a simulated network: whatever the
 * parts of the two sides, the bytes are the same, and nothing outside the parts changes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "message/connection_state.h"
#include "support/connection_pair.h"

#define MTU        1024u
#define SLOT       65536u
#define BYTES_MAX  300000u
#define PARTS_MAX  LH_PARTS_MAX
#define AREA_BYTES (BYTES_MAX + (PARTS_MAX + 1) * 64u)
#define IN_FLIGHT  6u
#define MESSAGES   24u

#define CLEAN_LINK "rtt=10ms,rate=10Gbit"
#define BAD_LINK   "rtt=10ms,rate=10Gbit,loss=0.05,reorder=0.02,duplicate=0.02,corrupt=0.01,jitter=200us"

/* Parts in an area of their own, with gaps, their addresses in any order. */
struct list {
    struct lh_part parts[PARTS_MAX];
    uint32_t count;
    size_t bytes;
    uint8_t *area;
    struct lh_memory *memory; /* of the area */
};

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static size_t draw_bytes(struct lh_prng *prng)
{
    static const size_t special[] = {0, 1, MTU, SLOT, SLOT + 1, 3 * SLOT, 16384, 16385};
    if (lh_prng_chance(prng, 0.3))
        return special[lh_prng_below(prng, sizeof special / sizeof special[0])];
    return lh_prng_below(prng, lh_prng_chance(prng, 0.5) ? BYTES_MAX : 4 * MTU);
}

static void draw_lengths(struct list *list, struct lh_prng *prng)
{
    size_t left = list->bytes;
    list->count = 1 + (uint32_t)lh_prng_below(prng, PARTS_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        size_t n = lh_prng_below(prng, left + 1);
        if (lh_prng_chance(prng, 0.3))
            n = lh_prng_below(prng, 3);
        if (lh_prng_chance(prng, 0.3))
            n = n / MTU * MTU;
        n = n < left ? n : left;
        list->parts[i].bytes = i + 1 == list->count ? left : n;
        left -= list->parts[i].bytes;
    }
}

/* Some parts registered by the user, some for the message, empty ones anywhere. */
static void draw_list(struct list *list, struct lh_connection *connection, struct lh_prng *prng,
                      uint64_t seed)
{
    uint32_t order[PARTS_MAX];
    size_t at = lh_prng_below(prng, 64);
    draw_lengths(list, prng);
    list->area = connection_pair_bytes(AREA_BYTES, seed);
    must(lh_register(connection, list->area, AREA_BYTES, &list->memory), "lh_register");
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t j = (uint32_t)lh_prng_below(prng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        struct lh_part *part = &list->parts[order[i]];
        part->address = list->area + at;
        part->memory = lh_prng_chance(prng, 0.5) ? list->memory : NULL;
        if (part->bytes == 0 && lh_prng_chance(prng, 0.5))
            *part = (struct lh_part){0};
        at += part->bytes + lh_prng_below(prng, 64);
    }
}

static void free_list(struct list *list)
{
    must(lh_deregister(list->memory), "lh_deregister");
    free(list->area);
}

/* The bytes of a list, one behind the other, and into them. */
static void gather(const struct list *list, uint8_t *out)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->parts[i].bytes > 0)
            memcpy(out, list->parts[i].address, list->parts[i].bytes);
        out += list->parts[i].bytes;
    }
}

static void scatter(const struct list *list, uint8_t *area, const uint8_t *bytes, size_t length)
{
    for (uint32_t i = 0; i < list->count && length > 0; i++) {
        size_t n = list->parts[i].bytes < length ? list->parts[i].bytes : length;
        if (n > 0)
            memcpy(area + ((uint8_t *)list->parts[i].address - list->area), bytes, n);
        bytes += n;
        length -= n;
    }
}

struct list_exchange {
    struct list from, to;
    uint64_t tag;
    uint64_t seed; /* of what the receiver's area had before */
    struct lh_request *send, *recv;
};

/* The array of parts is the caller's again when the call returns. */
static struct lh_request *ask(struct lh_connection *connection, const struct list *list, uint64_t tag,
                              bool sending)
{
    struct lh_part parts[PARTS_MAX];
    struct lh_request *request = NULL;
    struct lh_message message = {.parts = parts, .count = list->count, .tag = tag};
    memcpy(parts, list->parts, sizeof parts);
    int error =
        sending ? lh_sendmsg(connection, &message, &request) : lh_recvmsg(connection, &message, &request);
    must(error, sending ? "lh_sendmsg" : "lh_recvmsg");
    memset(parts, 0xFF, sizeof parts);
    memset(&message, 0xFF, sizeof message);
    return request;
}

static void begin(const struct connection_pair *pair, int from, struct list_exchange *exchange,
                  struct lh_prng *prng)
{
    bool exact = lh_prng_chance(prng, 0.5);
    *exchange = (struct list_exchange){.seed = lh_prng_next(prng)};
    exchange->tag = lh_prng_chance(prng, 0.3) ? 0 : lh_prng_next(prng);
    exchange->from.bytes = draw_bytes(prng);
    exchange->to.bytes = exchange->from.bytes;
    if (!exact)
        exchange->to.bytes += lh_prng_below(prng, BYTES_MAX - exchange->from.bytes + 1);
    draw_list(&exchange->from, pair->ends[from], prng, lh_prng_next(prng));
    draw_list(&exchange->to, pair->ends[1 - from], prng, exchange->seed);
    exchange->recv = ask(pair->ends[1 - from], &exchange->to, 0, false);
    exchange->send = ask(pair->ends[from], &exchange->from, exchange->tag, true);
}

static void end(struct connection_pair *pair, struct list_exchange *exchange)
{
    struct lh_result sent = connection_pair_finish(pair, exchange->send);
    struct lh_result received = connection_pair_finish(pair, exchange->recv);
    uint8_t *bytes = connection_pair_bytes(exchange->from.bytes, 0);
    uint8_t *expected = connection_pair_bytes(AREA_BYTES, exchange->seed);
    assert_int_equal(sent.error, 0);
    assert_int_equal(received.error, 0);
    assert_true(sent.bytes == exchange->from.bytes && received.bytes == exchange->from.bytes);
    assert_true(sent.tag == exchange->tag && received.tag == exchange->tag);
    gather(&exchange->from, bytes);
    scatter(&exchange->to, expected, bytes, exchange->from.bytes);
    assert_memory_equal(exchange->to.area, expected, AREA_BYTES);
    free(bytes);
    free(expected);
    free_list(&exchange->from);
    free_list(&exchange->to);
}

static void open_pair(struct connection_pair *pair, const char *reliability, const char *link,
                      uint64_t seed, uint32_t chunk_bytes)
{
    static uint32_t worlds;
    char world[16];
    struct lh_attr attr;
    snprintf(world, sizeof world, "lists-%u", worlds++);
    connection_pair_attr(&attr);
    attr.slot_bytes = SLOT;
    attr.chunk_bytes = chunk_bytes;
    attr.reliability = reliability;
    connection_pair_open(pair, world, seed, link, &attr, NULL);
}

static void exchange_lists(const char *reliability, const char *link, uint64_t seed)
{
    struct connection_pair pair;
    struct list_exchange exchanges[IN_FLIGHT];
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    uint32_t chunk_bytes = MTU << lh_prng_below(&prng, 3);
    printf("%s, %s, seed %llu, chunks of %u bytes\n", reliability, link, (unsigned long long)seed,
           chunk_bytes);
    open_pair(&pair, reliability, link, seed, chunk_bytes);
    for (uint32_t i = 0; i < MESSAGES + IN_FLIGHT; i++) {
        struct list_exchange *exchange = &exchanges[i % IN_FLIGHT];
        if (i >= IN_FLIGHT)
            end(&pair, exchange);
        if (i < MESSAGES)
            begin(&pair, (int)(i % 2), exchange, &prng);
    }
    connection_pair_close(&pair);
}

static const char *const schemes[] = {"sr-nack", "sr-rto", "ec:mds,k=16,m=4", "ec:xor,k=16,m=4", "auto"};
#define SCHEMES (sizeof schemes / sizeof schemes[0])

static void every_scheme_on_a_clean_link(void **state)
{
    (void)state;
    for (size_t i = 0; i < SCHEMES; i++)
        exchange_lists(schemes[i], CLEAN_LINK, 100 + i);
}

static void every_scheme_on_a_bad_link(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * SCHEMES; i++)
        exchange_lists(schemes[i % SCHEMES], BAD_LINK, 200 + i);
}

/* Where the parts are long only the chunks are copied that have bytes of two, whatever is lost. */
static void long_parts(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_stats stats;
    uint8_t header[40];
    uint8_t *data = connection_pair_bytes(20 * SLOT, 1);
    uint8_t *whole = connection_pair_bytes(sizeof header + 20 * SLOT, 2);
    const struct lh_part parts[] = {{header, sizeof header, NULL}, {data, 20 * SLOT, NULL}};
    struct lh_request *send;
    memset(header, 'h', sizeof header);
    open_pair(&pair, "sr-nack", BAD_LINK, 7, MTU);
    struct lh_request *recv = connection_pair_recv(&pair, 1, whole, sizeof header + 20 * SLOT);
    must(lh_sendmsg(pair.ends[0], &(struct lh_message){.parts = parts, .count = 2}, &send), "lh_sendmsg");
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    assert_memory_equal(whole, header, sizeof header);
    assert_memory_equal(whole + sizeof header, data, 20 * SLOT);
    must(lh_connection_stats(pair.ends[0], &stats), "lh_connection_stats");
    assert_true(stats.tx_retransmitted_packets > 0);
    connection_pair_close(&pair);
    free(data);
    free(whole);
}

/* ---- ends --------------------------------------------------------------------------------------------- */

/* Whatever the moment, the parts are the caller's afterwards, and what is not the message's is unchanged. */
static void canceled_at_any_moment(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 60; turns += 2) {
        struct connection_pair pair;
        struct list_exchange exchange;
        struct lh_prng prng;
        lh_prng_seed(&prng, turns);
        open_pair(&pair, schemes[turns / 2 % SCHEMES], BAD_LINK, turns, MTU);
        begin(&pair, 0, &exchange, &prng);
        for (unsigned i = 0; i < turns; i++)
            connection_pair_turn(&pair, LH_TIME_NEVER - 1);
        lh_cancel(turns % 4 ? exchange.recv : exchange.send);
        struct lh_result received = connection_pair_finish(&pair, exchange.recv);
        uint8_t *after = connection_pair_bytes(AREA_BYTES, 0);
        memcpy(after, exchange.to.area, AREA_BYTES);
        connection_pair_finish(&pair, exchange.send);
        connection_pair_transfer(&pair, 0, SLOT, SLOT);
        assert_memory_equal(exchange.to.area, after, AREA_BYTES);
        assert_true(received.error == 0 || received.error == -LH_ECANCELED);
        free(after);
        free_list(&exchange.from);
        free_list(&exchange.to);
        connection_pair_close(&pair);
    }
}

static void a_message_longer_than_the_parts(void **state)
{
    (void)state;
    struct connection_pair pair;
    uint8_t out[3000] = {0}, in[2][1000] = {{0}};
    const struct lh_part parts[] = {{in[0], 1000, NULL}, {in[1], 1000, NULL}};
    struct lh_request *recv, *send;
    open_pair(&pair, "sr-nack", CLEAN_LINK, 1, MTU);
    must(lh_recvmsg(pair.ends[1], &(struct lh_message){.parts = parts, .count = 2}, &recv), "lh_recvmsg");
    const struct lh_part whole = {out, sizeof out, NULL};
    must(lh_sendmsg(pair.ends[0], &(struct lh_message){.parts = &whole, .count = 1, .tag = 9}, &send),
         "lh_sendmsg");
    struct lh_result result = connection_pair_finish(&pair, recv);
    assert_true(result.error == -LH_ETRUNCATED && result.tag == 9); /* it says whose buffer was too small */
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_ETRUNCATED);
    connection_pair_transfer(&pair, 0, 5000, 5000);
    connection_pair_close(&pair);
}

/* ---- memory ------------------------------------------------------------------------------------------- */

/* What a segment in parts is copied to comes from here, and is known by its size: parity is smaller, all else
 * larger. */
#define COPY_BYTES_MIN ((size_t)SLOT)
#define COPY_BYTES_MAX ((size_t)SLOT + MTU)
static uint32_t copies_left = UINT32_MAX;

void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = NULL;
    bool counted = bytes >= COPY_BYTES_MIN && bytes <= COPY_BYTES_MAX && copies_left != UINT32_MAX;
    if (counted && copies_left == 0)
        return NULL;
    if (counted)
        copies_left--;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

/* Four segments. in_parts: only the sender's bytes are, or the receiver's. */
static void transfer_parts(struct connection_pair *pair, int in_parts, int error)
{
    const size_t part_bytes = 14 * MTU;
    const size_t bytes = PARTS_MAX * part_bytes;
    uint8_t *memory[2] = {connection_pair_bytes(bytes, 1), connection_pair_bytes(bytes, 2)};
    struct lh_part parts[2][PARTS_MAX];
    struct lh_message messages[2];
    struct lh_request *send, *recv;
    for (int i = 0; i < 2; i++) {
        for (uint32_t j = 0; j < PARTS_MAX; j++)
            parts[i][j] = (struct lh_part){memory[i] + j * part_bytes, part_bytes, NULL};
        messages[i] = (struct lh_message){.parts = parts[i], .count = PARTS_MAX};
    }
    parts[1 - in_parts][0].bytes = bytes;
    messages[1 - in_parts].count = 1;
    must(lh_recvmsg(pair->ends[1], &messages[1], &recv), "lh_recvmsg");
    must(lh_sendmsg(pair->ends[0], &messages[0], &send), "lh_sendmsg");
    assert_int_equal(connection_pair_finish(pair, recv).error, error);
    assert_int_equal(connection_pair_finish(pair, send).error, error);
    if (!error)
        assert_memory_equal(memory[1], memory[0], bytes);
    free(memory[0]);
    free(memory[1]);
}

/* Segments wait for those before them to give theirs back; without any the message ends, with words, and with
 * memory the next one goes through. */
static void little_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * (SCHEMES - 1); i++) {
        struct connection_pair pair;
        int in_parts = i % 2;
        open_pair(&pair, schemes[i / 2], BAD_LINK, 3, MTU);
        copies_left = 0;
        transfer_parts(&pair, in_parts, -LH_ENOMEM);
        copies_left = 1;
        transfer_parts(&pair, in_parts, 0);
        assert_int_equal(copies_left, 0);
        copies_left = UINT32_MAX;
        connection_pair_close(&pair);
    }
}

/* ---- bad input ---------------------------------------------------------------------------------------- */

static void refused(struct connection_pair *pair, const struct lh_message *message, int error,
                    const char *words)
{
    struct lh_request *request = NULL;
    for (int sending = 0; sending < 2; sending++) {
        int rc = sending ? lh_sendmsg(pair->ends[0], message, &request)
                         : lh_recvmsg(pair->ends[0], message, &request);
        assert_int_equal(rc, error);
        assert_non_null(strstr(lh_last_error(), words));
        assert_null(request);
    }
}

static void bad_lists(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_memory *memory;
    uint8_t bytes[100] = {0};
    struct lh_part parts[PARTS_MAX + 1];
    struct lh_message message = {.parts = parts, .count = PARTS_MAX + 1};
    for (uint32_t i = 0; i <= PARTS_MAX; i++)
        parts[i] = (struct lh_part){bytes, 1, NULL};
    open_pair(&pair, "sr-nack", CLEAN_LINK, 1, MTU);
    refused(&pair, &message, -LH_EINVAL, "17 parts: out of range (at most 16)");
    refused(&pair, &(struct lh_message){.count = 1}, -LH_EINVAL, "parts is NULL");
    message.count = 3;
    parts[2].address = NULL;
    refused(&pair, &message, -LH_EINVAL, "part 2: 1 bytes without an address");
    parts[2] = (struct lh_part){bytes, SIZE_MAX, NULL};
    refused(&pair, &message, -LH_EINVAL, "part 2: with its 18446744073709551615 bytes");
    parts[2].bytes = SIZE_MAX - 2; /* the sum is 2^64 - 1: too long for a message */
    refused(&pair, &message, -LH_EINVAL, "too long");
    must(lh_register(pair.ends[0], bytes, 50, &memory), "lh_register");
    parts[2] = (struct lh_part){bytes + 49, 2, memory};
    refused(&pair, &message, -LH_EINVAL, "not within the 50 registered bytes");
    must(lh_deregister(memory), "lh_deregister");
    struct lh_request *request = NULL;
    assert_int_equal(lh_recvmsg(pair.ends[0], &(struct lh_message){.tag = 5}, &request), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "tag 0x5"));
    assert_int_equal(lh_sendmsg(pair.ends[0], &(struct lh_message){0}, NULL), -LH_EINVAL);
    connection_pair_transfer(&pair, 0, 3000, 3000); /* none of them took a place in the order */
    connection_pair_transfer(&pair, 1, 3000, 3000);
    connection_pair_close(&pair);
}

/* A release that knows no tags has 0 where its blob has flags since, and does not read them. */
static void a_peer_without_tags(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_request *request = NULL;
    struct lh_attr attr;
    struct lh_link_spec link;
    connection_pair_attr(&attr);
    attr.workers = LH_NO_WORKERS;
    must(lh_link_parse(CLEAN_LINK, &link), "lh_link_parse");
    pair = (struct connection_pair){.world = sim_world_create("lists", 1, &link)};
    for (int i = 0; i < 2; i++) {
        attr.device = i == 0 ? "sim:lists/0" : "sim:lists/1";
        must(lh_open(&attr, &pair.ends[i]), "lh_open");
    }
    for (int i = 0; i < 2; i++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(pair.ends[1 - i], blob, &bytes), "lh_blob");
        if (i == 0)
            blob[7] &= (uint8_t)~BLOB_TAGS;
        must(lh_attach(pair.ends[i], blob, bytes), "lh_attach");
    }
    assert_int_equal(lh_sendmsg(pair.ends[0], &(struct lh_message){.tag = 1}, &request), -LH_EVERSION);
    assert_non_null(strstr(lh_last_error(), "use 0"));
    assert_null(request);
    connection_pair_transfer(&pair, 0, 3000, 3000);
    must(lh_sendmsg(pair.ends[1], &(struct lh_message){.tag = 1}, &request), "lh_sendmsg");
    lh_request_free(request);
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_on_a_clean_link),
        cmocka_unit_test(every_scheme_on_a_bad_link),
        cmocka_unit_test(long_parts),
        cmocka_unit_test(canceled_at_any_moment),
        cmocka_unit_test(a_message_longer_than_the_parts),
        cmocka_unit_test(little_memory),
        cmocka_unit_test(bad_lists),
        cmocka_unit_test(a_peer_without_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
