/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/rate/shared_rate.h"

#include <assert.h>

#include "base/least.h"

#define BITS_PER_BYTE 8u
#define TURN_NS       (250 * LH_NS_PER_US) /* of the rate */
/* A worker that comes late makes up for so much. */
#define ARREARS_NS  LH_NS_PER_MS
#define ARREARS_MAX ((uint64_t)256 * 1024)

static uint64_t bytes_in(uint64_t rate_bps, lh_time span_ns)
{
    return rate_bps / (BITS_PER_BYTE * LH_NS_PER_S / span_ns);
}

void shared_rate_init(struct shared_rate *rate, uint64_t rate_bps)
{
    uint64_t turn = lh_least(bytes_in(rate_bps, TURN_NS), SHARED_RATE_TURN_MAX);
    uint64_t arrears = lh_least(bytes_in(rate_bps, ARREARS_NS), ARREARS_MAX);
    *rate = (struct shared_rate){.turn_bytes = lh_most(turn, SHARED_RATE_TURN_MIN)};
    pacer_init(&rate->pacer, rate_bps, lh_most(arrears, rate->turn_bytes));
}

static void reserve(struct shared_rate *rate, struct rate_turn *turn, uint64_t bytes, uint64_t waiting,
                    lh_time now)
{
    uint64_t start = lh_most(turn->ended, lh_left(rate->virtual_bytes, rate->turn_bytes));
    bool passes = start < rate->virtual_bytes && waiting <= SHARED_RATE_SMALL;
    turn->at_ns = passes ? now : pacer_ready(&rate->pacer, now, bytes);
    turn->bytes += bytes;
    turn->ended = start + bytes;
    rate->virtual_bytes = lh_most(rate->virtual_bytes, start);
    pacer_on_sent(&rate->pacer, now, bytes);
}

uint64_t shared_rate_room(struct shared_rate *rate, struct rate_turn *turn, uint64_t waiting,
                          uint64_t first, lh_time now)
{
    assert(shared_rate_is_on(rate) && first <= rate->turn_bytes);
    uint64_t least = lh_most(first, 1); /* an empty packet counts, too */
    if (turn->bytes < least) {
        uint64_t more = lh_least(lh_left(waiting, turn->bytes), rate->turn_bytes);
        reserve(rate, turn, lh_most(more, least - turn->bytes), waiting, now);
    }
    return turn->at_ns <= now ? turn->bytes : 0;
}

void shared_rate_on_sent(struct rate_turn *turn, uint64_t bytes)
{
    assert(bytes <= turn->bytes);
    turn->bytes -= bytes;
}
