/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/auto/params.h"

#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "base/error.h"

#define OVERHEAD_MOST 100.0

static const char *const by_names[] = {
    [LH_PLAN_BY_MEAN] = "mean",
    [LH_PLAN_BY_P50] = "p50",
    [LH_PLAN_BY_P99] = "p99",
    [LH_PLAN_BY_P999] = "p999",
};

static int take_by(const char *value, size_t bytes, enum lh_plan_by *by)
{
    for (unsigned i = 0; i < sizeof by_names / sizeof by_names[0]; i++)
        if (strlen(by_names[i]) == bytes && memcmp(by_names[i], value, bytes) == 0) {
            *by = (enum lh_plan_by)i;
            return 0;
        }
    return lh_fail(LH_EINVAL, "auto: by=%.*s is not known: use mean, p50, p99 or p999", (int)bytes, value);
}

static int take_overhead(const char *value, size_t bytes, double *max_overhead)
{
    const char *end = value;
    double number;
    if (lh_decimal_read_ratio(&end, &number) != 0 || end != value + bytes || number > OVERHEAD_MOST)
        return lh_fail(LH_EINVAL, "auto: overhead=%.*s: invalid share of the data (0 to 100, or like 25%%)",
                       (int)bytes, value);
    *max_overhead = number;
    return 0;
}

int auto_params_parse(const char *text, enum lh_plan_by *by, double *max_overhead)
{
    enum lh_plan_by measure = LH_PLAN_BY_MEAN;
    double overhead = INFINITY;
    bool given[2] = {false, false};
    while (*text) { /* each turn takes a word */
        size_t bytes = strcspn(text, ",");
        bool is_by = strncmp(text, "by=", 3) == 0, is_overhead = strncmp(text, "overhead=", 9) == 0;
        int error;
        if (!is_by && !is_overhead)
            return lh_fail(LH_EINVAL,
                           "auto has no parameter \"%.*s\": it has by and overhead, as in "
                           "auto,by=p99,overhead=25%%",
                           (int)bytes, text);
        if (given[is_by])
            return lh_fail(LH_EINVAL, "auto: \"%.*s\" is given for the second time: give it once",
                           (int)bytes, text);
        given[is_by] = true;
        error =
            is_by ? take_by(text + 3, bytes - 3, &measure) : take_overhead(text + 9, bytes - 9, &overhead);
        if (error)
            return error;
        text += bytes;
        if (*text == ',' && text[1] == '\0')
            return lh_fail(LH_EINVAL, "auto: nothing stands after the last comma: leave it out");
        text += *text == ',';
    }
    *by = measure;
    *max_overhead = overhead;
    return 0;
}
