/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/congestion_table.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "congestion/controllers.h"
#include "congestion/dcqcn.h"
#include "congestion/eqds.h"
#include "wire/wire_numbers.h"

#define NAME_SHOWN 32 /* bytes of an unknown name in a message */

/* Every controller, in the order of messages and --help. X(controller, its number on the wire: whatever the
 * order). */
#define CONTROLLERS(X)                                                                                     \
    X(fixed, WIRE_FIXED)                                                                                   \
    X(bbr, WIRE_BBR)                                                                                       \
    X(swift, WIRE_SWIFT)                                                                                   \
    X(timely, WIRE_TIMELY)                                                                                 \
    X(dcqcn, WIRE_DCQCN)                                                                                   \
    X(eqds, WIRE_EQDS)

#define POINTER(controller, number) &controller##_congestion,
#define NUMBER(controller, number)  number,

const struct lh_congestion *const *congestion_built_in(void)
{
    static const struct lh_congestion *const all[] = {CONTROLLERS(POINTER) NULL};
    return all;
}

static const uint8_t numbers[] = {CONTROLLERS(NUMBER)}; /* of congestion_built_in(), in its order */

/* By the name: the simulator's library has a copy of each. */
static bool is_same(const struct lh_congestion *one, const struct lh_congestion *other)
{
    return strcmp(one->name, other->name) == 0;
}

uint8_t congestion_wire_number(const struct lh_congestion *controller)
{
    const struct lh_congestion *const *all = congestion_built_in();
    for (size_t i = 0; all[i]; i++)
        if (is_same(all[i], controller))
            return numbers[i];
    return 0;
}

const struct lh_congestion *congestion_of_wire_number(uint8_t number)
{
    const struct lh_congestion *const *all = congestion_built_in();
    for (size_t i = 0; all[i]; i++)
        if (numbers[i] == number)
            return all[i];
    return NULL;
}

static int fail_unknown(const char *name, size_t bytes)
{
    char known[256] = "";
    size_t used = 0;
    for (const struct lh_congestion *const *c = lh_congestions(); *c && used < sizeof known; c++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", (*c)->name);
    int shown = bytes < NAME_SHOWN ? (int)bytes : NAME_SHOWN;
    return lh_fail(LH_EINVAL, "unknown congestion controller \"%.*s\" (use one of %s)", shown, name, known);
}

int congestion_choice_parse(const char *text, struct congestion_choice *choice)
{
    size_t bytes = strcspn(text, ",");
    for (const struct lh_congestion *const *c = lh_congestions(); *c; c++) {
        if (strlen((*c)->name) != bytes || memcmp((*c)->name, text, bytes) != 0)
            continue;
        struct congestion_choice parsed = {.controller = *c};
        int failed = (*c)->parse(text + bytes + (text[bytes] == ','), parsed.params);
        if (failed == 0)
            *choice = parsed;
        return failed;
    }
    return fail_unknown(text, bytes);
}

bool congestion_is_fixed(const struct congestion_choice *choice)
{
    return is_same(choice->controller, &fixed_congestion);
}

int lh_congestion_check(const char *text)
{
    struct congestion_choice choice;
    return congestion_choice_parse(text, &choice);
}
