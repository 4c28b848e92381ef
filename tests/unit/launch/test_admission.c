/* Who leaves a full listener, and the cookies of those who had to.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "launch/admission.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PLACES 16u

static struct admission_place places[PLACES];

static struct admission_address four(uint8_t last)
{
    return (struct admission_address){.family = 4, .bytes = {192, 0, 2, last}};
}

/* 2001:db8::/64 and an interface's number. */
static struct admission_address six(uint8_t prefix, uint8_t interface)
{
    return (struct admission_address){
        .family = 6,
        .bytes = {0x20, 1, 0xd, 0xb8, [7] = prefix, [15] = interface},
    };
}

static void put(uint32_t from, uint32_t to, struct admission_address address,
                enum admission_standing standing)
{
    for (uint32_t i = from; i < to; i++)
        places[i] = (struct admission_place){
            .address = address, .connection = (int)i, .standing = standing, .arrival = i};
}

/* Each of an address of its own. */
static void put_many(uint32_t from, uint32_t to, enum admission_standing standing)
{
    for (uint32_t i = from; i < to; i++)
        put(i, i + 1, four((uint8_t)(100 + i)), standing);
}

static uint32_t victim_of(struct admission_address newcomer)
{
    return admission_victim(places, PLACES, &newcomer);
}

/* Strangers of one address that send nothing leave; none of another address, and none that has greeted. */
static void idle_strangers_leave(void **state)
{
    (void)state;
    put(0, 3, four(1), ADMISSION_NEW); /* older, of an honest address */
    put(3, 6, four(9), ADMISSION_GREETED);
    put(6, PLACES, four(9), ADMISSION_NEW);
    assert_int_equal(victim_of(four(9)), 6);
    assert_int_equal(victim_of(four(1)), 6);
}

/* Strangers that greet, all of one address, leave before one who had no time to greet. */
static void greeting_strangers_leave(void **state)
{
    (void)state;
    put(0, 1, four(1), ADMISSION_NEW);
    put(1, PLACES, four(9), ADMISSION_GREETED);
    assert_int_equal(victim_of(four(9)), 1);
}

/* One TCP connection with many streams gives way, not those of its address that came first. */
static void streams_leave(void **state)
{
    (void)state;
    put(0, PLACES, four(1), ADMISSION_GREETED);
    for (uint32_t i = 5; i < 8; i++)
        places[i].connection = 5;
    assert_int_equal(victim_of(four(1)), 5);
}

/* From many addresses they cannot be told from others, but for the greeting. */
static void many_addresses(void **state)
{
    (void)state;
    put(0, 1, four(1), ADMISSION_GREETED);
    put_many(1, PLACES, ADMISSION_NEW);
    assert_int_equal(victim_of(four(2)), 1);
    put(0, 8, four(1), ADMISSION_GREETED); /* eight ranks of one host stay, too, while idle ones are many */
    put_many(8, PLACES, ADMISSION_NEW);
    assert_int_equal(victim_of(four(2)), 8);
    put_many(0, PLACES, ADMISSION_GREETED);
    assert_int_equal(victim_of(four(2)), 0);
}

/* One host has all addresses of a prefix. */
static void a_prefix_is_one_source(void **state)
{
    (void)state;
    put_many(0, 4, ADMISSION_NEW);
    for (uint32_t i = 4; i < PLACES; i++)
        put(i, i + 1, six(7, (uint8_t)i), ADMISSION_NEW);
    assert_int_equal(victim_of(four(1)), 4);
    for (uint32_t i = 4; i < PLACES; i++)
        put(i, i + 1, six((uint8_t)i, 7), ADMISSION_NEW);
    assert_int_equal(victim_of(four(1)), 0);
}

static void who_returned_stays(void **state)
{
    (void)state;
    put(0, PLACES / 2, four(9), ADMISSION_RETURNED);
    put_many(PLACES / 2, PLACES, ADMISSION_GREETED);
    assert_int_equal(victim_of(four(9)), PLACES / 2);
    put_many(PLACES / 2, PLACES, ADMISSION_SERVED);
    assert_int_equal(victim_of(four(1)), ADMISSION_NONE);
    put(PLACES / 2, PLACES / 2 + 1, four(1), ADMISSION_RETURNED); /* more than half */
    assert_int_equal(victim_of(four(1)), 0);
}

/* The queue is of all addresses: the one that waits least of those with most places leaves, for another's
 * first. */
static void a_queue_of_one_address(void **state)
{
    (void)state;
    put(0, PLACES, four(9), ADMISSION_QUEUED);
    assert_int_equal(victim_of(four(1)), PLACES - 1);
    assert_int_equal(victim_of(four(9)), ADMISSION_NONE);
    put_many(0, PLACES, ADMISSION_QUEUED);
    assert_int_equal(victim_of(four(1)), ADMISSION_NONE);
}

static void nobody_is_there(void **state)
{
    (void)state;
    struct admission_address newcomer = four(1);
    assert_int_equal(admission_victim(places, 0, &newcomer), ADMISSION_NONE);
}

/* As the kernel gives it; of what is no connection there is none. */
static void addresses_of_clients(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    const uint8_t loopback[16] = {127, 0, 0, 1}, none[16] = {0};
    struct admission_address address = admission_address_of(client);
    assert_int_equal(address.family, 4);
    assert_memory_equal(address.bytes, loopback, sizeof loopback);
    address = admission_address_of(listener); /* it has no peer */
    assert_int_equal(address.family, 0);
    assert_memory_equal(address.bytes, none, sizeof none);
    close(client);
    close(listener);
}

/* Places of one address of IPv6 are none of the address of IPv4 with the same bytes. */
static void families_are_no_source(void **state)
{
    (void)state;
    struct admission_address alike = four(9);
    alike.family = 6;
    put(0, 4, alike, ADMISSION_GREETED);
    put(4, PLACES - 4, four(9), ADMISSION_GREETED);
    put_many(PLACES - 4, PLACES, ADMISSION_GREETED);
    assert_int_equal(victim_of(four(1)), 4); /* not 0, which is older */
}

static void cookies(void **state)
{
    (void)state;
    struct admission_key key, other;
    uint8_t cookie[ADMISSION_COOKIE_BYTES], wrong[ADMISSION_COOKIE_BYTES];
    const struct admission_address mine = four(1), theirs = four(2);
    assert_int_equal(admission_random(&key, sizeof key), 0);
    assert_int_equal(admission_random(&other, sizeof other), 0);
    assert_int_equal(admission_cookie_make(&key, &mine, "rank", 4, cookie), 0);
    assert_true(admission_cookie_check(&key, &mine, "rank", 4, cookie));
    assert_false(admission_cookie_check(&other, &mine, "rank", 4, cookie));
    assert_false(admission_cookie_check(&key, &theirs, "rank", 4, cookie));
    assert_false(admission_cookie_check(&key, &mine, "rang", 4, cookie));
    assert_false(admission_cookie_check(&key, &mine, "rank", 3, cookie));
    struct admission_address alike = mine;
    alike.family = 6;
    assert_false(admission_cookie_check(&key, &alike, "rank", 4, cookie));
    alike = mine;
    alike.bytes[15] ^= 1;
    assert_false(admission_cookie_check(&key, &alike, "rank", 4, cookie));
    memcpy(wrong, cookie, sizeof wrong);
    wrong[ADMISSION_COOKIE_BYTES - 1] ^= 1;
    assert_false(admission_cookie_check(&key, &mine, "rank", 4, wrong));
    assert_int_equal(admission_cookie_make(&key, &mine, NULL, 0, wrong), 0); /* bound to nothing else */
    assert_true(admission_cookie_check(&key, &mine, NULL, 0, wrong));
    assert_false(admission_cookie_check(&key, &mine, NULL, 0, cookie));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_strangers_leave),
        cmocka_unit_test(greeting_strangers_leave),
        cmocka_unit_test(streams_leave),
        cmocka_unit_test(many_addresses),
        cmocka_unit_test(a_prefix_is_one_source),
        cmocka_unit_test(who_returned_stays),
        cmocka_unit_test(a_queue_of_one_address),
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(addresses_of_clients),
        cmocka_unit_test(families_are_no_source),
        cmocka_unit_test(cookies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
