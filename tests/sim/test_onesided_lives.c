/*
 * test_onesided_lives.c - random one-sided operations over random paths: writes, reads, forged keys, cancels,
 * regions that are revoked. Whatever happens, no byte outside the range of a write changes, a notification
 * finds all bytes of its write, and what is done is right. A failing seed replays exactly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/onesided.h>
#include <longhaul/queue.h>

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

#define SEEDS      60u
#define OPERATIONS 60u
#define PLACES     6u
#define PLACE      (40u * 1024) /* of memory; a region is a part of one */
#define HANG       (100 * LH_NS_PER_S)

/* A place of end 1's memory, with one operation of end 0 at a time. */
struct place {
    struct lh_region *region;
    struct lh_key key;
    uint64_t first; /* of the region */
    uint64_t bytes;
    struct lh_request *request; /* in progress; or NULL */
    bool writes;
    bool forged;
    bool canceled;
    bool revoked; /* since it began */
    bool notifies;
    bool notified;
    uint64_t at; /* of the operation, in the place */
    uint64_t length;
    uint8_t data[PLACE];   /* that is written, or read into */
    uint8_t memory[PLACE]; /* end 1's */
    uint8_t known[PLACE];  /* what must be there */
};

struct life {
    uint64_t seed;
    struct lh_prng prng;
    struct connection_pair pair;
    struct lh_completion_queue *queue;
    struct place places[PLACES];
};

static uint64_t below(struct life *life, uint64_t bound)
{
    return lh_prng_below(&life->prng, bound);
}

/* Mostly small. */
static uint64_t some_bytes(struct life *life, uint64_t maximum)
{
    return below(life, 1 + (maximum >> below(life, 12)));
}

#define check(life, condition)                                                                             \
    do {                                                                                                   \
        if (!(condition))                                                                                  \
            fail_msg("seed %llu: %s", (unsigned long long)(life)->seed, #condition);                       \
    } while (0)

static void expose(struct life *life, struct place *place)
{
    place->first = some_bytes(life, PLACE / 2);
    place->bytes = 1 + some_bytes(life, PLACE - place->first - 1);
    const struct lh_part part = {.address = place->memory + place->first, .bytes = place->bytes};
    check(life, lh_expose(life->pair.ends[1], &part, LH_ACCESS_WRITE | LH_ACCESS_READ, life->queue,
                          (uint64_t)(place - life->places), &place->region) == 0);
    lh_region_key(place->region, &place->key);
}

static void open_life(struct life *life, uint64_t seed)
{
    static const char *const schemes[] = {"sr-nack", "sr-rto", "ec:mds,k=4,m=2", "ec:xor,k=4,m=2", "auto"};
    static const char *const faults[] = {"", ",loss=0.1",
                                         ",loss=0.02,reorder=0.3,duplicate=0.1,corrupt=0.05"};
    char link[128];
    struct lh_attr attr;
    *life = (struct life){.seed = seed};
    lh_prng_seed(&life->prng, seed);
    connection_pair_attr(&attr);
    attr.reliability = schemes[below(life, 5)];
    attr.slots = 2u << below(life, 4);
    attr.mtu_bytes = attr.chunk_bytes = 256u << below(life, 3);
    snprintf(link, sizeof link, "rtt=%lluus,rate=1Gbit%s", 20ull << below(life, 11),
             faults[below(life, 3)]);
    connection_pair_open(&life->pair, "onesided", seed, link, &attr, NULL);
    check(life, lh_completion_queue_create(life->pair.ends[1]->engine, PLACES + 2, &life->queue) == 0);
    for (uint32_t i = 0; i < PLACES; i++) {
        struct place *place = &life->places[i];
        memset(place->memory, (int)i + 1, PLACE);
        memcpy(place->known, place->memory, PLACE);
        expose(life, place);
    }
}

/* Nothing has changed but, perhaps, within the range of a write in progress. */
static void check_place(struct life *life, const struct place *place)
{
    uint64_t from = place->request && place->writes ? place->at : 0;
    uint64_t to = place->request && place->writes ? place->at + place->length : 0;
    check(life, memcmp(place->memory, place->known, from) == 0);
    check(life, memcmp(place->memory + to, place->known + to, PLACE - to) == 0);
}

static void check_all(struct life *life)
{
    for (uint32_t i = 0; i < PLACES; i++)
        check_place(life, &life->places[i]);
}

static void begin(struct life *life, struct place *place)
{
    uint64_t offset = below(life, place->bytes + 1);
    place->length = some_bytes(life, place->bytes - offset);
    place->at = place->first + offset;
    place->writes = below(life, 2);
    place->forged = below(life, 6) == 0;
    place->notifies = place->writes && below(life, 2);
    place->notified = place->canceled = place->revoked = false;
    for (uint64_t i = 0; i < place->length; i++)
        place->data[i] = (uint8_t)lh_prng_next(&life->prng);
    const uint64_t cut = below(life, place->length + 1);
    const struct lh_part parts[] = {{.address = place->data, .bytes = cut},
                                    {.address = place->data + cut, .bytes = place->length - cut}};
    struct lh_onesided wanted = {.parts = parts,
                                 .count = 2,
                                 .key = place->key,
                                 .offset = offset,
                                 .notify = place->notifies,
                                 .immediate = place->length};
    wanted.key.bytes[below(life, 8)] ^= (uint8_t)(place->forged ? 1 + below(life, 255) : 0);
    check(life, (place->writes ? lh_write(life->pair.ends[0], &wanted, &place->request)
                               : lh_read(life->pair.ends[0], &wanted, &place->request)) == 0);
}

static void end_operation(struct life *life, struct place *place)
{
    struct lh_result result;
    check(life, lh_test(place->request, &result) == 1);
    lh_request_free(place->request);
    bool same = memcmp(place->memory + place->at, place->data, place->length) == 0;
    if (result.error == 0) {
        check(life, !place->forged && same && result.bytes == place->length);
        check(life, place->notified || !place->notifies);
    } else {
        check(life, (result.error == -LH_EKEY && (place->forged || place->revoked)) ||
                        (result.error == -LH_ECANCELED && place->canceled));
    }
    if (place->forged)
        place->length = 0; /* nothing may have changed */
    check_place(life, place);
    place->request = NULL;
    memcpy(place->known, place->memory, PLACE);
}

static void take_notifications(struct life *life)
{
    struct lh_completion entry;
    while (completion_ring_take(&life->queue->ring, &entry, 1) > 0) {
        struct place *place = &life->places[entry.user];
        if (place->canceled) /* it may have begun another one since */
            continue;
        check(life, entry.operation == LH_OPERATION_NOTIFY && place->notifies && !place->notified);
        check(life, entry.result.bytes == place->length && entry.result.tag == place->length);
        check(life, memcmp(place->memory + place->at, place->data, place->length) == 0);
        place->notified = true;
    }
}

static void run(struct life *life, lh_time span)
{
    lh_time until = connection_pair_now(&life->pair) + span;
    while (connection_pair_now(&life->pair) < until) {
        connection_pair_turn(&life->pair, until);
        take_notifications(life);
    }
}

/* Something happens to a place. */
static void act(struct life *life, struct place *place)
{
    if (!place->request) {
        begin(life, place);
    } else if (lh_test(place->request, NULL)) {
        end_operation(life, place);
    } else if (below(life, 8) == 0) {
        lh_revoke(place->region);
        uint8_t *now = malloc(PLACE);
        memcpy(now, place->memory, PLACE);
        run(life, LH_NS_PER_MS);
        check(life, memcmp(now, place->memory, PLACE) == 0);
        free(now);
        place->revoked = true;
        lh_time deadline = connection_pair_now(&life->pair) + HANG;
        while (!lh_test(place->request, NULL) && connection_pair_now(&life->pair) < deadline)
            run(life, LH_NS_PER_MS);
        end_operation(life, place);
        expose(life, place);
    } else if (below(life, 8) == 0) {
        place->canceled = true;
        lh_cancel(place->request);
        run(life, LH_NS_PER_S); /* what is in flight may be placed until the peer knows */
        end_operation(life, place);
    }
}

static void live(uint64_t seed)
{
    struct life *life = malloc(sizeof *life);
    open_life(life, seed);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        act(life, &life->places[below(life, PLACES)]);
        run(life, 1 + below(life, LH_NS_PER_MS) * below(life, 3));
        check_all(life);
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        struct place *place = &life->places[i];
        lh_time deadline = connection_pair_now(&life->pair) + HANG;
        while (place->request && !lh_test(place->request, NULL) &&
               connection_pair_now(&life->pair) < deadline)
            run(life, LH_NS_PER_MS);
        if (place->request)
            end_operation(life, place);
        lh_revoke(place->region);
    }
    check_all(life);
    for (int end = 0; end < 2; end++)
        check(life, lh_connection_error(life->pair.ends[end]) == 0);
    check(life, lh_completion_queue_destroy(life->queue) == 0);
    connection_pair_close(&life->pair);
    free(life);
}

static void lives(void **state)
{
    (void)state;
    const char *first = getenv("SEED"), *count = getenv("SEEDS");
    uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    uint64_t seeds = count ? strtoull(count, NULL, 10) : SEEDS;
    for (uint64_t seed = from; seed < from + seeds; seed++)
        live(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
