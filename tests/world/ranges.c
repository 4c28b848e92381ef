/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/ranges.h"

#include <string.h>

#include "world/checks.h"

typedef unsigned long long wide; /* for %llu */

static void check_came(struct world *world, const struct ranges_view *view, uint64_t from, uint64_t to)
{
    if (to > view->bytes)
        world_fail(world, "bytes", "message %u has %llu bytes, and byte %llu came", view->event,
                   (wide)view->bytes, (wide)to);
    else if (to > from && memcmp(view->buffer + from, view->expected + from, to - from) != 0)
        world_fail(world, "bytes", "message %u: of the bytes that came, one from %llu on is wrong",
                   view->event, (wide)from);
}

void ranges_check(struct world *world, const struct ranges_view *view)
{
    const struct lh_result *result = view->result;
    struct lh_range missing;
    uint64_t at = 0, sum = 0;
    if (result->bytes != view->bytes && (result->bytes != view->room || result->missing_bytes == 0))
        world_fail(world, "bytes", "message %u has %llu bytes and came as %llu", view->event,
                   (wide)view->bytes, (wide)result->bytes);
    if (!view->request)
        return;
    for (uint64_t i = 0; lh_missing(view->request, i, &missing, 1) == 1; i++) { /* a range each time */
        uint64_t end = missing.offset + missing.bytes;
        if (missing.bytes == 0 || end > result->bytes || (i > 0 && missing.offset <= at)) {
            world_fail(world, "bytes", "message %u: range %llu is out of order", view->event, (wide)i);
            return;
        }
        check_came(world, view, at, missing.offset);
        if (!check_filled(view->buffer + missing.offset, missing.bytes, view->blank))
            world_fail(world, "bytes", "message %u: bytes that did not come changed", view->event);
        sum += missing.bytes;
        at = end;
    }
    if (at < result->bytes)
        check_came(world, view, at, result->bytes);
    if (sum != result->missing_bytes)
        world_fail(world, "bytes", "message %u: ranges of %llu bytes, and %llu are missing", view->event,
                   (wide)sum, (wide)result->missing_bytes);
    if (!check_filled(view->buffer + result->bytes, view->room - result->bytes, BLANK_BYTE))
        world_fail(world, "bytes", "message %u: bytes behind its end changed", view->event);
}
