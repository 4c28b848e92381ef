/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/needs.h"

#include <assert.h>
#include <string.h>

#include "schemes/ec/margin.h"

void ec_needs_init(struct ec_needs *needs, uint32_t chunks, void *memory)
{
    needs->first_unmet = 0;
    needs->asked = memory;
    memset(needs->asked, 0, ec_needs_bytes(chunks));
}

/* One group as it is looked at. */
struct look {
    const struct ec_layout *layout;
    const struct ec_bitmaps *bitmaps;
    struct ec_group group;
    uint32_t index;
};

static bool is_set(const uint8_t *bitmap, uint32_t at)
{
    return bitmap != NULL && __atomic_load_n(&bitmap[at], __ATOMIC_RELAXED) != 0;
}

static bool has_data(const struct look *look, uint32_t position)
{
    return is_set(look->bitmaps->chunks, look->group.first_chunk + position * look->group.stride);
}

static bool has_row(const struct look *look, uint32_t row)
{
    return is_set(look->bitmaps->extra, look->group.first_place + row * look->group.stride);
}

static uint32_t data_there(const struct look *look)
{
    uint32_t there = 0;
    for (uint32_t p = 0; p < look->group.size; p++) /* at most k */
        there += has_data(look, p);
    return there;
}

static uint32_t rows_there(const struct look *look)
{
    uint32_t there = 0;
    for (uint32_t r = 0; r < ec_group_rows_max(look->layout, &look->group); r++)
        there += has_row(look, r);
    return there;
}

/* Whether the class of a position can be decoded. A message of one chunk has no classes. */
static bool class_met(const struct look *look, uint32_t position)
{
    uint32_t rows = look->group.rows;
    if (rows == 0)
        return has_data(look, position);
    uint32_t missing = !has_row(look, position % rows);
    for (uint32_t p = position % rows; p < look->group.size; p += rows)
        missing += !has_data(look, p);
    return missing <= 1;
}

static bool classes_met(const struct look *look)
{
    uint32_t classes = look->group.rows == 0 ? 1 : look->group.rows;
    for (uint32_t c = 0; c < classes; c++)
        if (!class_met(look, c))
            return false;
    return true;
}

static bool fell_back(const struct ec_needs *needs, const struct look *look)
{
    return look->layout->params.fallback == EC_FALLBACK_SR && needs->asked[look->index] != 0;
}

static bool decodable(const struct look *look)
{
    if (look->layout->params.kind == EC_XOR)
        return classes_met(look);
    return data_there(look) + rows_there(look) >= look->group.size;
}

static bool group_met(const struct ec_needs *needs, const struct look *look)
{
    return fell_back(needs, look) ? data_there(look) == look->group.size : decodable(look);
}

static struct look look_at(const struct ec_layout *layout, const struct ec_bitmaps *bitmaps, uint32_t group)
{
    return (struct look){layout, bitmaps, ec_layout_group(layout, group), group};
}

bool ec_needs_group_met(const struct ec_layout *layout, const struct ec_bitmaps *bitmaps, uint32_t group)
{
    struct look look = look_at(layout, bitmaps, group);
    return decodable(&look);
}

bool ec_needs_met(struct ec_needs *needs, const struct ec_layout *layout, const struct ec_bitmaps *bitmaps)
{
    for (; needs->first_unmet < layout->groups; needs->first_unmet++) {
        struct look look = look_at(layout, bitmaps, needs->first_unmet);
        if (!group_met(needs, &look))
            return false;
    }
    return true;
}

/* ---- what is asked for ------------------------------------------------------------------------------- */

struct list {
    struct ec_run *runs;
    uint32_t count;
    uint32_t room;
    bool full;
};

static void add_place(struct list *list, uint32_t group, uint32_t place)
{
    struct ec_run *last = list->count > 0 ? &list->runs[list->count - 1] : NULL;
    assert(place < EC_ROWS_MAX);
    if (last != NULL && last->group == group && last->first + last->count == (int)place) {
        last->count++;
    } else if (list->count == list->room) {
        list->full = true;
    } else {
        list->runs[list->count++] = (struct ec_run){group, (uint8_t)place, 1};
    }
}

static void ask_for_missing(const struct look *look, uint32_t most, struct list *list)
{
    for (uint32_t p = 0; p < look->group.size && most > 0; p++)
        if (!has_data(look, p)) {
            add_place(list, look->index, p);
            most--;
        }
}

static void ask_for_all(const struct look *look, struct list *list)
{
    for (uint32_t p = 0; p < look->group.size; p++)
        add_place(list, look->index, p);
}

static void ask_for_classes(const struct look *look, struct list *list)
{
    for (uint32_t p = 0; p < look->group.size; p++)
        if (!has_data(look, p) && !class_met(look, p))
            add_place(list, look->index, p);
}

/* Returns the first row that was never asked for, from now on. */
static uint32_t ask_for_more(const struct look *look, uint32_t fresh, const struct ec_path_seen *seen,
                             struct list *list)
{
    uint32_t data = data_there(look);
    uint32_t there = data + rows_there(look);
    if (there >= look->group.size) /* it has come since it was looked at */
        return fresh;
    uint32_t lacking = look->group.size - there;
    uint32_t wanted = lacking + ec_margin(lacking, seen->injected, seen->arrived);
    uint32_t left = ec_group_rows_max(look->layout, &look->group) - fresh;
    uint32_t rows = wanted < left ? wanted : left;
    ask_for_missing(look, wanted - rows, list);
    for (uint32_t r = fresh; r < fresh + rows; r++)
        add_place(list, look->index, look->group.size + r);
    return fresh + rows;
}

/* Returns what needs->asked says from now on. */
static uint8_t ask_for_group(const struct ec_needs *needs, const struct look *look,
                             const struct ec_path_seen *seen, struct list *list)
{
    uint8_t asked = needs->asked[look->index];
    if (look->layout->params.fallback == EC_FALLBACK_SR) {
        if (asked != 0)
            ask_for_missing(look, look->group.size, list);
        else
            ask_for_all(look, list);
        return 1;
    }
    if (look->layout->params.kind == EC_XOR) {
        ask_for_classes(look, list);
        return 1;
    }
    uint32_t fresh = asked != 0 ? asked - 1u : look->group.rows;
    uint32_t next = ask_for_more(look, fresh, seen, list);
    assert(next < UINT8_MAX);
    return (uint8_t)(next + 1);
}

uint32_t ec_needs_ask(struct ec_needs *needs, const struct ec_layout *layout,
                      const struct ec_bitmaps *bitmaps, const struct ec_path_seen *seen,
                      struct ec_run *runs, uint32_t room, uint32_t *failed)
{
    assert(room >= 128); /* every second place of a code, at most */
    struct list list = {.runs = runs, .room = room};
    for (uint32_t group = needs->first_unmet; group < layout->groups; group++) {
        struct look look = look_at(layout, bitmaps, group);
        if (group_met(needs, &look))
            continue;
        uint32_t before = list.count;
        uint8_t asked = ask_for_group(needs, &look, seen, &list);
        if (list.full) { /* half a group is of no use: next time */
            list.count = before;
            break;
        }
        if (list.count == before)
            continue;
        *failed += needs->asked[group] == 0;
        needs->asked[group] = asked;
    }
    assert(list.count <= room);
    return list.count;
}
