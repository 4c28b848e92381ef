/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/repairs.h"

#include <assert.h>
#include <string.h>

void ec_repairs_init(struct ec_repairs *repairs)
{
    repairs->round = 0;
    repairs->count = 0;
    repairs->chunks_left = 0;
    repairs->encode_base = 0;
    repairs->data = (struct ec_cursor){0};
    repairs->parity = (struct ec_cursor){0};
    repairs->encode = (struct ec_cursor){0};
    repairs->parts = 0;
    repairs->last_count = 0;
    repairs->parts_heard = 0;
}

/* ---- what is asked for ------------------------------------------------------------------------------- */

static bool is_parity(const struct ec_layout *layout, const struct ec_run *run)
{
    return run->first >= ec_layout_group(layout, run->group).size;
}

/* A run is data, or rows that only a request brings forth. */
static bool run_possible(const struct ec_layout *layout, const struct ec_run *run)
{
    if (run->group >= layout->groups)
        return false;
    struct ec_group group = ec_layout_group(layout, run->group);
    uint32_t end = (uint32_t)run->first + run->count;
    if (run->first < group.size)
        return end <= group.size;
    return run->first >= group.size + group.rows && end <= group.size + ec_group_rows_max(layout, &group);
}

static bool runs_possible(const struct ec_layout *layout, const struct ec_request *request)
{
    for (uint32_t i = 0; i < request->count; i++) /* at most EC_RUNS_MAX */
        if (!run_possible(layout, &request->runs[i]))
            return false;
    return true;
}

static bool in_order(const struct ec_repairs *repairs, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) /* at most EC_PARTS_MAX * EC_RUNS_MAX */
        if (!ec_run_follows(&repairs->runs[i - 1], &repairs->runs[i]))
            return false;
    return true;
}

static void forget_parts(struct ec_repairs *repairs)
{
    repairs->parts = 0;
    repairs->parts_heard = 0;
}

static void keep_part(struct ec_repairs *repairs, const struct ec_request *request)
{
    repairs->parts = request->parts;
    repairs->parts_heard |= 1u << request->part;
    repairs->count = 0; /* their place is taken; they were all injected */
    if (request->part + 1u == request->parts)
        repairs->last_count = request->count;
    memcpy(repairs->runs + (size_t)request->part * EC_RUNS_MAX, request->runs,
           request->count * sizeof(request->runs[0]));
}

static void begin_round(struct ec_repairs *repairs, uint32_t count, uint32_t encodings)
{
    repairs->round++;
    repairs->count = count;
    repairs->encode_base = encodings;
    repairs->data = (struct ec_cursor){0};
    repairs->parity = (struct ec_cursor){0};
    repairs->encode = (struct ec_cursor){0};
    for (uint32_t i = 0; i < count; i++) /* at most EC_PARTS_MAX * EC_RUNS_MAX */
        repairs->chunks_left += repairs->runs[i].count;
}

enum ec_heard ec_repairs_on_request(struct ec_repairs *repairs, const struct ec_layout *layout,
                                    const struct ec_request *request, uint32_t encodings)
{
    if (request->round < repairs->round)
        return EC_HEARD_OLD;
    if (request->round == repairs->round)
        return EC_HEARD_AGAIN;
    if (request->round != repairs->round + 1 || !ec_repairs_done(repairs) ||
        !runs_possible(layout, request))
        return EC_HEARD_BAD;
    if (repairs->parts != request->parts) /* what was heard before was not of this request */
        forget_parts(repairs);
    keep_part(repairs, request);
    if (repairs->parts_heard != (1u << repairs->parts) - 1)
        return EC_HEARD_PART;
    uint32_t count = (repairs->parts - 1u) * EC_RUNS_MAX + repairs->last_count;
    bool possible = in_order(repairs, count);
    forget_parts(repairs);
    if (!possible)
        return EC_HEARD_BAD;
    begin_round(repairs, count, encodings);
    return EC_HEARD_WHOLE;
}

/* ---- walking along it -------------------------------------------------------------------------------- */

/* The run at the cursor, once it stands on one of the kind that is wanted; NULL at the end. Each walk takes
 * at most as many steps as there are runs. */
static const struct ec_run *run_at(const struct ec_repairs *repairs, const struct ec_layout *layout,
                                   struct ec_cursor *cursor, bool parity)
{
    for (; cursor->run < repairs->count; cursor->run++)
        if (is_parity(layout, &repairs->runs[cursor->run]) == parity)
            return &repairs->runs[cursor->run];
    return NULL;
}

static void pass_run(struct ec_cursor *cursor)
{
    cursor->run++;
    cursor->number++;
    cursor->place = 0;
}

bool ec_repairs_done(const struct ec_repairs *repairs)
{
    return repairs->chunks_left == 0;
}

/* As many of the run's places as stand side by side: all when the group is a block of its own, else one. */
static void take_places(struct ec_repairs *repairs, struct ec_cursor *cursor, const struct ec_run *run,
                        uint32_t stride, uint32_t limit, struct ec_sending *sending)
{
    uint32_t left = run->count - cursor->place;
    sending->count = stride > 1 ? 1 : left < limit ? left : limit;
    assert(sending->count >= 1 && sending->count <= limit);
    assert(sending->count <= repairs->chunks_left);
    repairs->chunks_left -= sending->count;
    cursor->place += sending->count;
    if (cursor->place == run->count)
        pass_run(cursor);
}

static bool take_data(struct ec_repairs *repairs, const struct ec_layout *layout, uint32_t limit,
                      struct ec_sending *sending)
{
    const struct ec_run *run = run_at(repairs, layout, &repairs->data, false);
    if (run == NULL)
        return false;
    struct ec_group group = ec_layout_group(layout, run->group);
    uint32_t position = run->first + repairs->data.place;
    *sending = (struct ec_sending){.first = group.first_chunk + position * group.stride, .again = true};
    take_places(repairs, &repairs->data, run, group.stride, limit, sending);
    return true;
}

static bool take_parity(struct ec_repairs *repairs, const struct ec_layout *layout,
                        const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending)
{
    const struct ec_run *run = run_at(repairs, layout, &repairs->parity, true);
    if (run == NULL || !ready->extra_open ||
        ready->encoded <= repairs->encode_base + repairs->parity.number)
        return false;
    struct ec_group group = ec_layout_group(layout, run->group);
    uint32_t row = run->first + repairs->parity.place - group.size;
    *sending = (struct ec_sending){.first = layout->chunks + group.first_place + row * group.stride,
                                   .parity = true};
    take_places(repairs, &repairs->parity, run, group.stride, limit, sending);
    return true;
}

bool ec_repairs_take(struct ec_repairs *repairs, const struct ec_layout *layout,
                     const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending)
{
    if (limit == 0)
        return false;
    return take_data(repairs, layout, limit, sending) ||
           take_parity(repairs, layout, ready, limit, sending);
}

bool ec_repairs_encode(struct ec_repairs *repairs, const struct ec_layout *layout,
                       struct ec_encoding *encoding)
{
    const struct ec_run *run = run_at(repairs, layout, &repairs->encode, true);
    if (run == NULL)
        return false;
    struct ec_group group = ec_layout_group(layout, run->group);
    *encoding = (struct ec_encoding){run->group, run->first - group.size, run->count};
    pass_run(&repairs->encode);
    return true;
}
