/*
 * test_remote_memory.c - what is refused of regions and of operations on them, before anything leaves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/onesided.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"

static uint8_t memory[1000], data[1000];
static const struct lh_part whole = {.address = memory, .bytes = sizeof memory};

static void open_pair(struct connection_pair *pair)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    connection_pair_open(pair, "remote", 1, "delay=1ms", &attr, NULL);
    connection_pair_run(pair, 10 * LH_NS_PER_MS);
}

static void refused(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    assert_string_equal(lh_last_error(), words);
}

static void regions_are_checked(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_region *region;
    char words[128];
    open_pair(&pair);
    struct lh_connection *end = pair.ends[1];
    refused(lh_expose(end, &whole, 0, NULL, 0, &region), -LH_EINVAL,
            "access 0x0: invalid (use LH_ACCESS_WRITE, LH_ACCESS_READ or both)");
    refused(lh_expose(end, &whole, 7, NULL, 0, &region), -LH_EINVAL,
            "access 0x7: invalid (use LH_ACCESS_WRITE, LH_ACCESS_READ or both)");
    struct lh_part part = {.address = memory};
    snprintf(words, sizeof words, "region of 0 bytes at %p: out of range (1 to 2^48 - 1 bytes)",
             (void *)memory);
    refused(lh_expose(end, &part, LH_ACCESS_READ, NULL, 0, &region), -LH_EINVAL, words);
    part.bytes = (size_t)1 << 48;
    assert_int_equal(lh_expose(end, &part, LH_ACCESS_READ, NULL, 0, &region), -LH_EINVAL);
    part = (struct lh_part){.bytes = 1};
    assert_int_equal(lh_expose(end, &part, LH_ACCESS_READ, NULL, 0, &region), -LH_EINVAL);
    for (uint32_t access = LH_ACCESS_WRITE; access <= 3; access++) {
        assert_int_equal(lh_expose(end, &whole, access, NULL, 0, &region), 0);
        lh_revoke(region);
    }
    lh_revoke(NULL);
    connection_pair_close(&pair);
}

static void as_many_regions_as_there_may_be(void **state)
{
    (void)state;
    static struct lh_region *regions[LH_REGIONS_MAX];
    struct connection_pair pair;
    struct lh_region *more;
    struct lh_key keys[2];
    open_pair(&pair);
    for (uint32_t i = 0; i < LH_REGIONS_MAX; i++)
        assert_int_equal(lh_expose(pair.ends[1], &whole, LH_ACCESS_READ, NULL, 0, &regions[i]), 0);
    refused(lh_expose(pair.ends[1], &whole, LH_ACCESS_READ, NULL, 0, &more), -LH_EAGAIN,
            "1024 regions are exposed on this connection: revoke one");
    lh_region_key(regions[7], &keys[0]);
    lh_revoke(regions[7]);
    assert_int_equal(lh_expose(pair.ends[1], &whole, LH_ACCESS_READ, NULL, 0, &regions[7]), 0);
    lh_region_key(regions[7], &keys[1]);
    assert_memory_not_equal(&keys[0], &keys[1], sizeof keys[0]);
    for (uint32_t i = 0; i < LH_REGIONS_MAX; i++)
        lh_revoke(regions[i]);
    connection_pair_close(&pair);
}

static void operations_are_checked(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_region *region;
    struct lh_request *request;
    struct lh_part part = {.address = data, .bytes = 10};
    struct lh_onesided wanted = {.parts = &part, .count = 1, .offset = 990};
    open_pair(&pair);
    assert_int_equal(lh_expose(pair.ends[1], &whole, LH_ACCESS_READ, NULL, 0, &region), 0);
    lh_region_key(region, &wanted.key);
    refused(lh_write(pair.ends[0], &wanted, &request), -LH_EKEY,
            "key does not permit to write: the peer exposes the region with LH_ACCESS_WRITE");
    wanted.notify = true;
    refused(lh_read(pair.ends[0], &wanted, &request), -LH_EINVAL,
            "read with a notification: unsupported (only lh_write() notifies)");
    wanted.notify = false;
    wanted.offset = 991;
    refused(lh_read(pair.ends[0], &wanted, &request), -LH_ERANGE,
            "10 bytes at offset 991: the peer's region has 1000 bytes");
    wanted.offset = 990;
    memset(memory, 0, sizeof memory);
    memset(memory + 990, 5, 10);
    memset(data, 0xEE, sizeof data);
    assert_int_equal(lh_read(pair.ends[0], &wanted, &request), 0);
    struct lh_result result = connection_pair_finish(&pair, request);
    assert_int_equal(result.error, 0);
    assert_int_equal(result.bytes, 10);
    assert_memory_equal(data, memory + 990, 10);
    assert_int_equal(data[10], 0xEE);
    lh_revoke(region);
    assert_int_equal(lh_expose(pair.ends[1], &whole, LH_ACCESS_WRITE, NULL, 0, &region), 0);
    lh_region_key(region, &wanted.key);
    refused(lh_read(pair.ends[0], &wanted, &request), -LH_EKEY,
            "key does not permit to read: the peer exposes the region with LH_ACCESS_READ");
    lh_revoke(region);
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_checked),
        cmocka_unit_test(as_many_regions_as_there_may_be),
        cmocka_unit_test(operations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
