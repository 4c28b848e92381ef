/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/params.h"

#include <stdio.h>
#include <string.h>

#include <longhaul/units.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "schemes/ec/params.h"

#define ITEM_MAX 64u /* bytes of a value, and of what is passed on to the code */
#define NONE_US  UINT32_MAX
#define EXAMPLE  "deadline=20ms, or deadline=20ms,code=mds,k=32,m=2"

/* What a text says. */
struct reading {
    bool has_deadline;
    lh_time deadline_ns;
    enum ec_kind code;    /* 0: none */
    char split[ITEM_MAX]; /* "k=32,m=2": the code reads it */
};

static int take_deadline(const char *value, struct reading *reading)
{
    lh_time ns = LH_DEADLINE_AUTO;
    if (reading->has_deadline)
        return lh_fail(LH_EINVAL,
                       "bounded: the deadline is given twice, the second time as \"%s\"; give it once",
                       value);
    if (strcmp(value, "none") == 0) {
        ns = LH_DEADLINE_NONE;
    } else if (strcmp(value, "auto") != 0) {
        int error = lh_parse_time(value, &ns);
        if (error)
            return error;
        if (ns < LH_NS_PER_US || ns > BOUNDED_DEADLINE_MAX_NS)
            return lh_fail(LH_ERANGE,
                           "bounded: deadline \"%s\": out of range (1us to 60min, auto, or none)", value);
    }
    reading->has_deadline = true;
    reading->deadline_ns = ns;
    return 0;
}

static int take_code(const char *value, struct reading *reading)
{
    bool mds = strcmp(value, "mds") == 0;
    if (reading->code)
        return lh_fail(LH_EINVAL,
                       "bounded: the code is given twice, the second time as \"%s\"; give it once", value);
    if (!mds && strcmp(value, "xor") != 0)
        return lh_fail(LH_EINVAL, "bounded: code \"%s\" is not known: use mds or xor", value);
    reading->code = mds ? EC_MDS : EC_XOR;
    return 0;
}

static int take_split(const char *item, struct reading *reading)
{
    size_t used = strlen(reading->split);
    int wrote =
        snprintf(reading->split + used, sizeof reading->split - used, "%s%s", used > 0 ? "," : "", item);
    if (wrote < 0 || (size_t)wrote >= sizeof reading->split - used)
        return lh_fail(LH_EINVAL, "bounded: \"%s\" is one parameter too many, as in " EXAMPLE, item);
    return 0;
}

static int take(const char *item, struct reading *reading)
{
    if (strncmp(item, "deadline=", 9) == 0)
        return take_deadline(item + 9, reading);
    if (strncmp(item, "code=", 5) == 0)
        return take_code(item + 5, reading);
    if (strncmp(item, "k=", 2) == 0 || strncmp(item, "m=", 2) == 0)
        return take_split(item, reading);
    return lh_fail(LH_EINVAL,
                   "bounded has no parameter \"%s\"; it has deadline, code, k and m, as in " EXAMPLE, item);
}

static int read_items(const char *text, struct reading *reading)
{
    while (*text != '\0') { /* each turn takes an item */
        char item[ITEM_MAX];
        size_t bytes = strcspn(text, ",");
        if (bytes >= sizeof item)
            return lh_fail(LH_EINVAL, "bounded: \"%.*s…\" is too long for a parameter, as in " EXAMPLE,
                           (int)sizeof item, text);
        memcpy(item, text, bytes);
        item[bytes] = '\0';
        int error = take(item, reading);
        if (error)
            return error;
        text += bytes;
        if (*text == ',' && text[1] == '\0')
            return lh_fail(LH_EINVAL, "bounded: nothing stands after the last comma: leave it out");
        text += *text == ',';
    }
    return 0;
}

static int write_code(const struct reading *reading, uint8_t params[LH_SCHEME_PARAMS])
{
    uint8_t code[LH_SCHEME_PARAMS];
    if (!reading->code && reading->split[0] != '\0')
        return lh_fail(LH_EINVAL, "bounded: \"%s\" says nothing without a code: add code=mds",
                       reading->split);
    if (!reading->code)
        return 0;
    int error =
        reading->code == EC_MDS ? ec_mds_parse(reading->split, code) : ec_xor_parse(reading->split, code);
    if (error)
        return error;
    memcpy(params + 4, code, 3);
    return 0;
}

int bounded_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    struct reading reading = {.deadline_ns = LH_DEADLINE_AUTO};
    int error = read_items(text, &reading);
    if (error)
        return error;
    memset(params, 0, LH_SCHEME_PARAMS);
    lh_put_be32(params, reading.deadline_ns == LH_DEADLINE_NONE
                            ? NONE_US
                            : (uint32_t)(reading.deadline_ns / LH_NS_PER_US));
    return write_code(&reading, params);
}

/* Of a code, as schemes/ec has them: all of a message in one block, and nobody asks for more. */
static void code_of(const uint8_t params[LH_SCHEME_PARAMS], uint8_t code[LH_SCHEME_PARAMS])
{
    memset(code, 0, LH_SCHEME_PARAMS);
    memcpy(code, params + 4, 3);
}

bool bounded_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    uint8_t code[LH_SCHEME_PARAMS];
    code_of(params, code);
    bool none = params[4] == 0 && params[5] == 0 && params[6] == 0;
    uint32_t us = lh_get_be32(params);
    bool possible = us == NONE_US || (uint64_t)us * LH_NS_PER_US <= BOUNDED_DEADLINE_MAX_NS;
    return params[7] == 0 && possible && (none || ec_mds_params_valid(code) || ec_xor_params_valid(code));
}

struct bounded_params bounded_params_of(const uint8_t params[LH_SCHEME_PARAMS])
{
    struct bounded_params read = {.deadline_ns = bounded_deadline(params), .codes = params[4] != 0};
    code_of(params, read.code);
    return read;
}

lh_time bounded_deadline(const uint8_t params[LH_SCHEME_PARAMS])
{
    uint32_t us = lh_get_be32(params);
    if (us == NONE_US)
        return LH_DEADLINE_NONE;
    return us == 0 ? LH_DEADLINE_AUTO : us * LH_NS_PER_US;
}
