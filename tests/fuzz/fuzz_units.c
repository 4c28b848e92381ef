/*
 * fuzz_units.c - sizes, rates, times and ratios from a command line.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/units.h>

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/error.h>

#include "base/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UNTOUCHED 0x5AFE5AFE5AFE5AFEu

/* Three digits of a value parse again to within half of the last. */
static bool near(uint64_t back, uint64_t value)
{
    return fabs((double)back - (double)value) <= 0.0051 * (double)value + 0.5;
}

/* True on success; else the output was left alone. */
static bool accepted(int rc, uint64_t value)
{
    assert(rc == 0 || rc == -LH_EINVAL || rc == -LH_ERANGE);
    assert(rc == 0 || value == UNTOUCHED);
    return rc == 0;
}

static void check_integers(const char *text)
{
    char out[LH_FORMAT_MAX];
    uint64_t value = UNTOUCHED;
    uint64_t back = 0;
    if (accepted(lh_parse_size(text, &value), value)) {
        assert(lh_parse_size(lh_format_size(value, out, sizeof out), &back) == 0 || value > UINT64_MAX / 2);
        assert(near(back, value) || value > UINT64_MAX / 2);
    }
    value = UNTOUCHED;
    if (accepted(lh_parse_rate(text, &value), value)) {
        assert(lh_parse_rate(lh_format_rate((double)value, out, sizeof out), &back) == 0 ||
               value > UINT64_MAX / 2);
        assert(near(back, value) || value > UINT64_MAX / 2);
    }
    value = UNTOUCHED;
    if (accepted(lh_parse_time(text, &value), value)) {
        lh_format_time((double)value * 1e-9, out, sizeof out);
        assert(lh_parse_time(out, &back) == 0 || value > UINT64_MAX / 2);
        assert(near(back, value) || value > UINT64_MAX / 2);
    }
}

static void check_ratio(const char *text)
{
    double ratio = -1;
    char out[LH_DECIMAL_DOUBLE_MAX];
    int rc = lh_parse_ratio(text, &ratio);
    assert(rc == 0 || rc == -LH_EINVAL || rc == -LH_ERANGE);
    assert(rc == 0 ? ratio >= 0 && ratio <= 1 : ratio == -1);
    if (rc != 0 || ratio < 1e-20)
        return;
    double back = -1;
    assert(lh_parse_ratio(lh_decimal_format_double(ratio, out, sizeof out), &back) == 0);
    assert(back == ratio);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    assert(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_integers(text);
    check_ratio(text);
    free(text);
    return 0;
}
