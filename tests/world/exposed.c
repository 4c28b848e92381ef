/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/exposed.h"

#include <assert.h>
#include <string.h>

void exposed_make(struct world *world, struct exposed *exposed, uint64_t bytes)
{
    *exposed = (struct exposed){.bytes = bytes};
    exposed->base = world_memory(world, bytes);
    exposed->memory = (uint8_t *)world_memory(world, bytes + 2 * GUARD_BYTES) + GUARD_BYTES;
    memset(exposed->memory - GUARD_BYTES, GUARD_BYTE, bytes + 2 * GUARD_BYTES);
    exposed_withdraw(exposed);
}

static void set(struct exposed *exposed)
{
    memcpy(exposed->memory, exposed->base, exposed->bytes);
    exposed->count = 0;
    exposed->clock++;
}

void exposed_open(struct exposed *exposed, uint64_t seed)
{
    memcpy(exposed->base, world_content(seed, exposed->bytes), exposed->bytes);
    set(exposed);
}

void exposed_withdraw(struct exposed *exposed)
{
    memset(exposed->base, BLANK_BYTE, exposed->bytes);
    set(exposed);
}

uint32_t exposed_begin(struct exposed *exposed, uint64_t first, uint64_t bytes, const uint8_t *data,
                       bool coded)
{
    assert(exposed->count < EXPOSED_WRITES_MAX);
    exposed->writes[exposed->count] = (struct exposed_write){.first = first,
                                                             .end = first + bytes,
                                                             .data = data,
                                                             .begun = ++exposed->clock,
                                                             .over = EXPOSED_NEVER,
                                                             .coded = coded};
    return exposed->count++;
}

void exposed_finish(struct exposed *exposed, uint32_t write)
{
    exposed->writes[write].over = ++exposed->clock;
}

bool exposed_is_busy(const struct exposed *exposed, uint64_t first, uint64_t bytes, uint32_t since)
{
    for (uint32_t i = 0; i < exposed->count; i++) {
        const struct exposed_write *write = &exposed->writes[i];
        if (write->over > since && write->first < first + bytes && first < write->end)
            return true;
    }
    return false;
}

/* Whether another one wrote some of its bytes at the same time. */
static bool is_spoiled(const struct exposed *exposed, const struct exposed_write *write)
{
    for (uint32_t i = 0; write->coded && i < exposed->count; i++) {
        const struct exposed_write *other = &exposed->writes[i];
        if (other != write && other->begun < write->over && write->begun < other->over &&
            other->first < write->end && write->first < other->end)
            return true;
    }
    return false;
}

static bool covers(const struct exposed_write *write, uint64_t at)
{
    return write->first <= at && at < write->end;
}

/* When the last write of that byte began of those that were over by then; 0: there is none. What was over
 * before that cannot be seen any more. */
static uint32_t last_begun(const struct exposed *exposed, uint64_t at, uint32_t since)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < exposed->count; i++) {
        const struct exposed_write *write = &exposed->writes[i];
        if (covers(write, at) && write->over <= since && write->begun > last)
            last = write->begun;
    }
    return last;
}

/* From there on to the next end of a write, all bytes have the same writes. */
static uint64_t run_end(const struct exposed *exposed, uint64_t at, uint64_t end)
{
    for (uint32_t i = 0; i < exposed->count; i++) {
        const struct exposed_write *write = &exposed->writes[i];
        if (write->first > at && write->first < end)
            end = write->first;
        if (write->end > at && write->end < end)
            end = write->end;
    }
    return end;
}

/* What a run may be: of one write, or what was there; 0: anything. */
static uint32_t list_choices(const struct exposed *exposed, uint64_t at, uint32_t since,
                             const uint8_t *choices[EXPOSED_WRITES_MAX + 1])
{
    uint32_t last = last_begun(exposed, at, since);
    uint32_t count = 0;
    if (last == 0)
        choices[count++] = exposed->base + at;
    for (uint32_t i = 0; i < exposed->count; i++) {
        const struct exposed_write *write = &exposed->writes[i];
        if (!covers(write, at) || write->over <= last)
            continue;
        if (is_spoiled(exposed, write))
            return 0;
        choices[count++] = write->data + (at - write->first);
    }
    return count;
}

/* The first byte of the run that is of no choice; or `bytes`. */
static uint64_t compare_run(const uint8_t *const *choices, uint32_t count, const uint8_t *seen,
                            uint64_t bytes)
{
    for (uint32_t c = 0; c < count; c++)
        if (memcmp(choices[c], seen, bytes) == 0)
            return bytes;
    for (uint64_t i = 0; i < bytes; i++) {
        bool found = false;
        for (uint32_t c = 0; c < count; c++)
            found |= choices[c][i] == seen[i];
        if (!found)
            return i;
    }
    return bytes;
}

uint64_t exposed_compare(const struct exposed *exposed, uint64_t first, uint64_t bytes, const uint8_t *seen,
                         uint32_t since)
{
    const uint8_t *choices[EXPOSED_WRITES_MAX + 1];
    for (uint64_t at = first, end; at < first + bytes; at = end) {
        end = run_end(exposed, at, first + bytes);
        uint32_t count = list_choices(exposed, at, since, choices);
        uint64_t same = count == 0 ? end - at : compare_run(choices, count, seen + (at - first), end - at);
        if (same < end - at)
            return at - first + same;
    }
    return bytes;
}

uint64_t exposed_compare_now(const struct exposed *exposed)
{
    return exposed_compare(exposed, 0, exposed->bytes, exposed->memory, exposed->clock);
}
