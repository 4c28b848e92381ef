/* SPDX-License-Identifier: BSD-3-Clause */
#include "onesided/onesided_exchange.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/error.h>
#include <longhaul/types.h>

#include "wire/eager_packets.h"

/* ---- exchange -------------------------------------------------------------------------------------- */

void exchange_open(struct exchange *exchange, lh_time now)
{
    exchange->open = true;
    exchange->sent = 0;
    exchange->refresh_at = now;
}

void exchange_ask(struct exchange *exchange, lh_time now)
{
    if (exchange->asking)
        return;
    exchange->asking = true;
    exchange->sent = 0;
    exchange->refresh_at = now;
}

enum exchange_news exchange_on_message(struct exchange *exchange, const struct onesided_exchange *message,
                                       uint32_t operations)
{
    bool answers = message->flags & ONESIDED_ANSWERS;
    exchange->announced |= exchange->open && (message->flags & ONESIDED_HAS_PEER);
    if (message->flags & ONESIDED_ASKS) {
        exchange->answer_due = true;
        exchange->answer_to = message->operations;
    }
    if (exchange->has_peer)
        return EXCHANGE_NOTHING;
    if (message->blob_bytes > 0)
        return EXCHANGE_BLOB;
    if (!answers || message->operations != operations)
        return EXCHANGE_NOTHING;
    exchange->asking = false;
    return EXCHANGE_EMPTY;
}

void exchange_accept(struct exchange *exchange)
{
    exchange->has_peer = true;
    exchange->asking = false;
}

bool exchange_waits(const struct exchange *exchange)
{
    return exchange->open && (!exchange->announced || exchange->asking);
}

bool exchange_next(const struct exchange *exchange, uint32_t operations, lh_time now,
                   struct onesided_exchange *message, bool *with_blob)
{
    uint8_t known = exchange->has_peer ? ONESIDED_HAS_PEER : 0;
    *with_blob = exchange->open && !exchange->announced;
    if (exchange->answer_due)
        *message = (struct onesided_exchange){.flags = (uint8_t)(known | ONESIDED_ANSWERS),
                                              .operations = exchange->answer_to};
    else
        *message =
            (struct onesided_exchange){.flags = (uint8_t)(known | ONESIDED_ASKS), .operations = operations};
    return exchange->answer_due || (exchange_waits(exchange) && exchange->refresh_at <= now);
}

void exchange_on_sent(struct exchange *exchange, const struct onesided_exchange *message,
                      lh_time interval_ns, lh_time now)
{
    if (message->flags & ONESIDED_ANSWERS) {
        exchange->answer_due = false;
        return;
    }
    exchange->sent++;
    exchange->refresh_at = now + interval_ns;
}

/* ---- regions --------------------------------------------------------------------------------------- */

static_assert((REGIONS_MAX & (REGIONS_MAX - 1)) == 0, "places are bits of a key");

static uint32_t place_of(uint64_t key)
{
    return (uint32_t)key & (REGIONS_MAX - 1);
}

bool regions_add(struct regions *regions, struct region *region, uint64_t random)
{
    if (regions->count == REGIONS_MAX)
        return false;
    uint32_t place = place_of(random);
    while (regions->places[place]) /* at most REGIONS_MAX times */
        place = (place + 1) & (REGIONS_MAX - 1);
    region->key = (random & ~(uint64_t)(REGIONS_MAX - 1)) | place;
    regions->places[place] = region;
    regions->count++;
    return true;
}

void regions_remove(struct regions *regions, const struct region *region)
{
    assert(regions->places[place_of(region->key)] == region);
    regions->places[place_of(region->key)] = NULL;
    regions->count--;
}

struct region *regions_find(const struct regions *regions, uint64_t key)
{
    struct region *region = regions->places[place_of(key)];
    return region && region->key == key ? region : NULL;
}

int region_check(const struct region *region, uint32_t access, uint64_t offset, uint64_t bytes)
{
    if (!region || (region->access & access) != access)
        return LH_EKEY;
    if (offset > region->bytes || bytes > region->bytes - offset)
        return LH_ERANGE;
    return 0;
}
