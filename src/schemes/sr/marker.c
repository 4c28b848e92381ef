/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/marker.h"

#include <assert.h>

#include "wire/selective_repeat.h"

void sr_marker_init(struct sr_marker *marker)
{
    *marker = (struct sr_marker){.cover = SR_COVERED, .repeat_ns = LH_TIME_NEVER};
}

const char *sr_cover_name(enum sr_cover cover)
{
    static const char *const names[] = {
        [SR_COVERED] = "covered",
        [SR_NEW_UNCOVERED] = "new uncovered",
        [SR_REPAIRS_UNCOVERED] = "repairs uncovered",
    };
    return names[cover];
}

uint32_t sr_marker_stamp(const struct sr_marker *marker)
{
    /* Nobody sends four thousand million MARKs for one transfer; should it happen, the number stays. */
    return marker->mark == UINT32_MAX ? UINT32_MAX : marker->mark + 1;
}

void sr_marker_on_injection(struct sr_marker *marker, bool repair, lh_time now)
{
    enum sr_cover cover = repair ? SR_REPAIRS_UNCOVERED : SR_NEW_UNCOVERED;
    if (cover <= marker->cover)
        return;
    marker->cover = cover;
    marker->uncovered_since_ns = now;
}

void sr_marker_on_settled(struct sr_marker *marker, uint32_t mark)
{
    assert(mark <= marker->mark);
    if (mark > marker->settled)
        marker->settled = mark;
    if (marker->settled == marker->mark)
        marker->repeat_ns = LH_TIME_NEVER;
}

lh_time sr_marker_cover_expiry(const struct sr_marker *marker, const struct sr_timing *timing)
{
    switch (marker->cover) {
    case SR_COVERED:
        return LH_TIME_NEVER;
    case SR_NEW_UNCOVERED:
        return sr_after(marker->uncovered_since_ns, timing->rtt_ns / 4);
    case SR_REPAIRS_UNCOVERED:
        return sr_after(marker->uncovered_since_ns, timing->window_ns / 4);
    }
    assert(false); /* a state of enum sr_cover */
    return LH_TIME_NEVER;
}

bool sr_marker_wants_cover(const struct sr_marker *marker, bool anything_lost, bool all_sent)
{
    if (marker->cover == SR_COVERED || anything_lost)
        return false;
    return all_sent || marker->cover == SR_REPAIRS_UNCOVERED;
}

void sr_marker_on_cover(struct sr_marker *marker, bool ends, const struct sr_timing *timing, lh_time now)
{
    bool worth_repeating = ends || marker->cover == SR_REPAIRS_UNCOVERED;
    assert(marker->cover != SR_COVERED);
    marker->mark = sr_marker_stamp(marker);
    marker->cover = SR_COVERED;
    marker->repeat_span_ns = timing->window_ns;
    marker->repeat_ns = worth_repeating ? sr_after(now, timing->window_ns) : LH_TIME_NEVER;
}

lh_time sr_marker_repeat_expiry(const struct sr_marker *marker)
{
    return marker->repeat_ns;
}

void sr_marker_on_repeat_expired(struct sr_marker *marker, const struct sr_timing *timing, lh_time now)
{
    assert(marker->repeat_ns <= now);
    marker->repeat_span_ns *= 2;
    bool once_more = marker->repeat_span_ns < timing->overdue_ns;
    marker->repeat_ns = once_more ? sr_after(now, marker->repeat_span_ns) : LH_TIME_NEVER;
}

bool sr_mark_send(const struct sr_ledger *ledger, uint32_t number, uint8_t flags,
                  struct lh_actions *actions)
{
    struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
    if (action == NULL)
        return false;
    struct sr_mark mark = {.flags = flags, .mark = number, .sent_through = ledger->sent_through};
    action->what.message.bytes = (uint32_t)sr_mark_encode(&mark, action->what.message.data);
    return true;
}
