/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/path_mtu.h"

#include <assert.h>

#include "base/earlier.h"
#include "base/least.h"

#define SHIFT_MASK    3u /* of an id: the length of its probe */
#define WAIT_UNKNOWN  LH_NS_PER_S
#define SILENT_SHIFTS 6u

static_assert(PATH_MTU_LENGTHS == SHIFT_MASK + 1, "an id has the length of its probe");

void path_mtu_init(struct path_mtu *mtu, uint32_t mtu_bytes)
{
    *mtu = (struct path_mtu){.mtu_bytes = mtu_bytes, .lengths = 1, .raise_span = PATH_MTU_RAISE_MIN_NS};
}

void path_mtu_start(struct path_mtu *mtu, uint32_t lengths)
{
    assert(lengths >= 1 && lengths <= PATH_MTU_LENGTHS);
    mtu->lengths = lengths;
}

/* ---- times ------------------------------------------------------------------------------------------- */

/* After that a probe counts as lost. */
static lh_time wait_ns(const struct path_mtu_view *view)
{
    if (view->overdue_ns == 0)
        return WAIT_UNKNOWN;
    return view->overdue_ns + view->overdue_ns / 2 + PATH_MTU_WAIT_MIN_NS;
}

static lh_time round_ns(const struct path_mtu *mtu, const struct path_mtu_view *view)
{
    lh_time least = lh_most(view->overdue_ns / 2, PATH_MTU_WAIT_MIN_NS);
    lh_time longest = lh_most(least, PATH_MTU_SEARCH_SPAN_NS);
    return lh_least(least << lh_least(mtu->silent, SILENT_SHIFTS), longest);
}

/* ---- states ------------------------------------------------------------------------------------------ */

/* The length in use passes, as far as is known. */
static void go_idle(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    mtu->state = PATH_MTU_IDLE;
    mtu->due = 0;
    mtu->sent_noted = view->sent_bytes;
    mtu->has_sent = false;
    mtu->at = view->now + lh_most(PATH_MTU_CONFIRM_NS, PATH_MTU_CONFIRM_OVERDUES * view->overdue_ns);
}

static void enter(struct path_mtu *mtu, enum path_mtu_state state)
{
    mtu->state = state;
    mtu->first_id = mtu->next_id;
    mtu->answered = false;
}

static void confirm(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    enter(mtu, PATH_MTU_CONFIRMING);
    mtu->due = 1u << mtu->shift;
    mtu->at = view->now + wait_ns(view);
}

static bool may_probe_longer(const struct path_mtu *mtu)
{
    return mtu->probes < PATH_MTU_RAISE_PROBES * mtu->shift;
}

/* One at a time, here and in the search: a burst might be more than a short queue holds, always at the same
 * length. */
static void probe_longer(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    assert(mtu->shift > 0);
    mtu->due = 1u << mtu->probes++ % mtu->shift;
    mtu->at = view->now + (may_probe_longer(mtu) ? round_ns(mtu, view) : wait_ns(view));
}

static void probe_next(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    bool is_silent = view->now - mtu->answered_ns > wait_ns(view);
    mtu->silent = is_silent ? mtu->silent + 1 : 0;
    uint32_t shift = is_silent ? mtu->lengths - 1 : mtu->probes++ % mtu->lengths;
    mtu->due = 1u << shift;
    mtu->at = view->now + round_ns(mtu, view) / (is_silent ? 1 : mtu->lengths);
}

/* An answer to the confirmation may still come: it counts. */
static void search(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    mtu->state = PATH_MTU_SEARCHING;
    mtu->answered_ns = view->now;
    mtu->silent = 0;
    mtu->probes = 0;
    for (uint32_t s = 0; s < PATH_MTU_LENGTHS; s++)
        mtu->answers[s] = 0;
    probe_next(mtu, view);
}

static void end_raising(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    mtu->raise_span = lh_least(2 * mtu->raise_span, PATH_MTU_RAISE_MAX_NS);
    mtu->raise_at = view->now + mtu->raise_span;
    go_idle(mtu, view);
    mtu->at = view->now; /* the confirmation has waited for this */
}

static void on_idle(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    if (!mtu->has_sent && view->sent_bytes - mtu->sent_noted >= mtu->mtu_bytes) {
        mtu->has_sent = true;
        mtu->at = lh_most(mtu->at, view->now + 2 * view->overdue_ns + PATH_MTU_WAIT_MIN_NS);
    }
    if (!mtu->has_sent)
        return;
    if (mtu->shift > 0 && view->now >= mtu->raise_at) {
        enter(mtu, PATH_MTU_RAISING);
        mtu->silent = 0;
        mtu->probes = 0;
        probe_longer(mtu, view);
    } else if (view->now >= mtu->at) {
        confirm(mtu, view);
    }
}

void path_mtu_on_time(struct path_mtu *mtu, const struct path_mtu_view *view)
{
    if (mtu->lengths == 1)
        return;
    if (mtu->state == PATH_MTU_IDLE) {
        on_idle(mtu, view);
        return;
    }
    if (view->now < mtu->at)
        return;
    if (mtu->state == PATH_MTU_CONFIRMING)
        search(mtu, view);
    else if (mtu->state == PATH_MTU_RAISING && may_probe_longer(mtu))
        probe_longer(mtu, view);
    else if (mtu->state == PATH_MTU_RAISING)
        end_raising(mtu, view);
    else if (mtu->silent < PATH_MTU_SILENT_ROUNDS)
        probe_next(mtu, view);
    else
        go_idle(mtu, view);
}

bool path_mtu_take_probe(struct path_mtu *mtu, uint32_t *id, uint32_t *shift)
{
    if (mtu->due == 0)
        return false;
    *shift = (uint32_t)__builtin_ctz(mtu->due);
    *id = mtu->next_id + *shift;
    mtu->due = 0;
    mtu->next_id += PATH_MTU_LENGTHS;
    return true;
}

/* ---- answers ----------------------------------------------------------------------------------------- */

/* To that length. A path that falls soon after it was raised may do so again: it is asked ever more rarely.
 */
static void lower(struct path_mtu *mtu, uint32_t shift, const struct path_mtu_view *view)
{
    bool again = mtu->raised_ns != 0 && view->now - mtu->raised_ns < PATH_MTU_RAISE_MAX_NS / 8;
    mtu->shift = shift;
    mtu->raise_span = again ? lh_least(2 * mtu->raise_span, PATH_MTU_RAISE_MAX_NS) : PATH_MTU_RAISE_MIN_NS;
    mtu->raise_at = view->now + mtu->raise_span;
    go_idle(mtu, view);
}

static bool on_longer_answered(struct path_mtu *mtu, uint32_t shift, const struct path_mtu_view *view)
{
    if (shift >= mtu->shift)
        return false;
    mtu->shift = shift;
    mtu->raised_ns = view->now;
    if (shift == 0)
        go_idle(mtu, view);
    return true;
}

/* The longest of those that were answered, which are shorter than what is in use. */
static uint32_t longest_answered(const struct path_mtu *mtu)
{
    for (uint32_t s = mtu->shift + 1; s < mtu->lengths; s++)
        if (mtu->answers[s] > 0)
            return s;
    return mtu->shift;
}

static bool on_search_answered(struct path_mtu *mtu, uint32_t number, uint32_t shift,
                               const struct path_mtu_view *view)
{
    mtu->answered_ns = view->now;
    if (mtu->silent > 0)
        mtu->at = view->now;
    mtu->silent = 0;
    if (mtu->answers[shift] > 0 && (int32_t)(number - mtu->newest[shift]) <= 0)
        return false; /* the network has doubled it, or a later one came first */
    mtu->newest[shift] = number;
    if (++mtu->answers[shift] < PATH_MTU_SEARCH_ANSWERS)
        return false;
    lower(mtu, longest_answered(mtu), view);
    return true;
}

bool path_mtu_on_answer(struct path_mtu *mtu, uint32_t id, bool full, const struct path_mtu_view *view)
{
    const uint32_t shift = id & SHIFT_MASK, number = id & ~SHIFT_MASK;
    if (mtu->lengths == 1 || mtu->state == PATH_MTU_IDLE || shift >= mtu->lengths ||
        number - mtu->first_id >= mtu->next_id - mtu->first_id)
        return false;
    /* What arrived before the peer answered an earlier probe shows nothing of the time since. */
    bool data_pass = full && mtu->answered && (int32_t)(number - mtu->newest_id) > 0;
    if (!mtu->answered || (int32_t)(number - mtu->newest_id) > 0)
        mtu->newest_id = number;
    mtu->answered = true;
    if (mtu->state == PATH_MTU_RAISING)
        return on_longer_answered(mtu, shift, view);
    if (shift <= mtu->shift || data_pass) {
        go_idle(mtu, view);
        return false;
    }
    return mtu->state == PATH_MTU_SEARCHING && on_search_answered(mtu, number, shift, view);
}

lh_time path_mtu_next(const struct path_mtu *mtu)
{
    if (mtu->lengths == 1)
        return LH_TIME_NEVER;
    if (mtu->state != PATH_MTU_IDLE)
        return mtu->at;
    if (!mtu->has_sent)
        return LH_TIME_NEVER;
    return mtu->shift > 0 ? lh_earlier(mtu->at, mtu->raise_at) : mtu->at;
}
