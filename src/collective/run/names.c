/*
 * names.c - see names.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/run/names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/collective.h>

#include "collective/reduce/reduce.h"
#include "collective/run/parts.h"
#include "collective/schedule/schedule_table.h"

_Static_assert((int)LH_F32 == ELEMENT_F32 && (int)LH_F64 == ELEMENT_F64 && (int)LH_F16 == ELEMENT_F16 &&
                   (int)LH_BF16 == ELEMENT_BF16 && (int)LH_I32 == ELEMENT_I32 &&
                   (int)LH_I64 == ELEMENT_I64 && (int)LH_U8 == ELEMENT_U8 && (int)LH_TYPES == ELEMENT_COUNT,
               "types");
_Static_assert((int)LH_SUM == REDUCE_SUM && (int)LH_PROD == REDUCE_PROD && (int)LH_MIN == REDUCE_MIN &&
                   (int)LH_MAX == REDUCE_MAX && (int)LH_AVG == REDUCE_COUNT,
               "reductions");

size_t lh_type_bytes(enum lh_type type)
{
    return (unsigned)type < LH_TYPES ? element_bytes_of((enum element_type)type) : 0;
}

const char *lh_type_name(enum lh_type type)
{
    return (unsigned)type < LH_TYPES ? element_name((enum element_type)type) : NULL;
}

const char *lh_reduction_name(enum lh_reduction reduction)
{
    static const char *const names[LH_REDUCTIONS] = {"sum", "prod", "min", "max", "avg"};
    return (unsigned)reduction < LH_REDUCTIONS ? names[reduction] : NULL;
}

const char *lh_collective_schedule(const char *collective, uint32_t index)
{
    for (enum collective each = 0; each < COLLECTIVES; each++)
        if (parts_collective_name(each) && strcmp(parts_collective_name(each), collective) == 0)
            return index == 0 ? parts_schedule(each)->name : NULL;
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        if (strcmp(collective_name((*s)->collective), collective) == 0 && index-- == 0)
            return (*s)->name;
    return NULL;
}

bool call_exists(enum collective collective, enum call_form form)
{
    return form == CALL_PLAIN || (form == CALL_UNEVEN && parts_collective_name(collective)) ||
           (form == CALL_COMPARE && collective == COLLECTIVE_ALLGATHER);
}

const char *call_name(enum collective collective, enum call_form form)
{
    if (form == CALL_COMPARE)
        return "compare";
    return form == CALL_UNEVEN ? parts_collective_name(collective) : collective_name(collective);
}

const struct schedule *named_schedule(enum collective collective, const char *name, char *names,
                                      size_t size)
{
    const struct schedule *found = schedule_find(collective, name);
    size_t used = 0;
    assert(size > 0);
    names[0] = '\0';
    for (const struct schedule *const *s = schedule_table(); *s && !found; s++)
        if ((*s)->collective == collective && used < size)
            used += (size_t)snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "", (*s)->name);
    return found;
}
