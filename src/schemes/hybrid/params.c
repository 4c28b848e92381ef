/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/params.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/decimal.h"
#include "base/error.h"
#include "schemes/ec/params.h"
#include "schemes/hybrid/strength.h"

#define MILLI       1000.0
#define BURST_UNITS 16.0
#define EXAMPLE     "target=1e-4 or target=1e-4,tail=1"
/* A full submessage of a message of 10^4 others, and a quarter of the rows left for later. */
#define PLANNED_FAILURE 1e-8
#define PLANNED_SHARE   0.75
#define PLANNED_GROUPS  5.0 /* of a segment: the slot of 4 MiB in chunks of 4 KiB */

/* Codes: data chunks, and m of schemes/ec, which adds as many rows for requests (docs/erasure-coding.md). A
 * symbol is a byte, so both together are at most 255. */
static const struct {
    uint8_t k;
    uint8_t m;
} codes[] = {
    {240, 8},                /* 15 rows: up to a loss of about 2e-3 */
    {210, 23},               /* 45: 2e-2 */
    {160, 48},               /* 95: 0.12 */
    {HYBRID_SIZE_LEAST, 50}, /* 100: the rest */
};

#define CODES ((uint32_t)(sizeof codes / sizeof codes[0]))

uint32_t hybrid_code_size(uint32_t code)
{
    assert(code < CODES);
    return codes[code].k;
}

uint32_t hybrid_code_rows(uint32_t code)
{
    uint8_t params[LH_SCHEME_PARAMS];
    hybrid_code_params(code, params);
    struct ec_params read = ec_params_of(params);
    return read.m + ec_fresh_rows(&read);
}

void hybrid_code_params(uint32_t code, uint8_t ec_params[LH_SCHEME_PARAMS])
{
    assert(code < CODES);
    memset(ec_params, 0, LH_SCHEME_PARAMS);
    ec_params[0] = EC_MDS;
    ec_params[1] = codes[code].k;
    ec_params[2] = codes[code].m;
    ec_params[3] = EC_FALLBACK_IR;
    lh_put_be16(ec_params + 4, HYBRID_SPREAD);
}

uint32_t hybrid_code_for(double loss, double burst, uint32_t rows_most)
{
    const struct hybrid_loss of = {loss, 1 / (1 - pow(1 - 1 / fmax(1, burst), PLANNED_GROUPS))};
    uint32_t last = CODES - 1;
    while (last > 0 && hybrid_code_rows(last) > rows_most)
        last--;
    for (uint32_t code = 0; code < last; code++) {
        uint32_t most = hybrid_code_rows(code);
        uint32_t rows = hybrid_strength(&of, codes[code].k, codes[code].k, PLANNED_FAILURE, most);
        if (rows <= PLANNED_SHARE * most)
            return code;
    }
    return last;
}

/* ---- bytes ------------------------------------------------------------------------------------------- */

/* -1000 log10, rounded so that the value becomes larger. */
static uint16_t milli_decades(double value)
{
    double milli = floor(-MILLI * log10(value) + 1e-6);
    assert(milli >= 0 && milli <= UINT16_MAX);
    return (uint16_t)milli;
}

static double from_milli_decades(const uint8_t *bytes)
{
    return pow(10, -(double)lh_get_be16(bytes) / MILLI);
}

void hybrid_params_measured(double loss, double burst, uint32_t rows_most, uint8_t params[LH_SCHEME_PARAMS])
{
    loss = fmin(fmax(loss, HYBRID_LOSS_MIN), HYBRID_LOSS_MAX);
    burst = fmin(fmax(burst, 1), HYBRID_BURST_MAX);
    params[0] = (uint8_t)hybrid_code_for(loss, burst, rows_most);
    lh_put_be16(params + 4, milli_decades(loss));
    lh_put_be16(params + 6, (uint16_t)ceil(burst * BURST_UNITS));
}

bool hybrid_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    uint32_t target = lh_get_be16(params + 2), loss = lh_get_be16(params + 4);
    uint32_t burst = lh_get_be16(params + 6);
    return params[0] < CODES && (params[1] <= HYBRID_TAIL_MAX || params[1] == HYBRID_TAIL_ALL) &&
           target >= milli_decades(HYBRID_TARGET_MAX) && target <= milli_decades(HYBRID_TARGET_MIN) &&
           loss >= milli_decades(HYBRID_LOSS_MAX) && loss <= milli_decades(HYBRID_LOSS_MIN) &&
           burst >= BURST_UNITS && burst <= HYBRID_BURST_MAX * BURST_UNITS;
}

struct hybrid_params hybrid_params_of(const uint8_t params[LH_SCHEME_PARAMS])
{
    assert(hybrid_params_valid(params));
    return (struct hybrid_params){
        .code = params[0],
        .tail_eighths = params[1],
        .target = from_milli_decades(params + 2),
        .loss = from_milli_decades(params + 4),
        .burst = lh_get_be16(params + 6) / BURST_UNITS,
    };
}

/* ---- text -------------------------------------------------------------------------------------------- */

struct reading {
    bool has_target, has_tail;
    double target;
    uint32_t tail_eighths;
};

static int take_target(const char *text, int length, const char *value, struct reading *reading)
{
    const char *end = value;
    if (reading->has_target)
        return lh_fail(LH_EINVAL,
                       "hybrid: target is given twice, the second time as \"%.*s\"; give it once", length,
                       text);
    reading->has_target = true;
    if (lh_decimal_read_double(&end, &reading->target) != 0 || end != text + length ||
        reading->target < HYBRID_TARGET_MIN || reading->target > HYBRID_TARGET_MAX)
        return lh_fail(LH_ERANGE, "hybrid: %.*s: out of range (1e-12 to 0.5, as in target=1e-4)", length,
                       text);
    return 0;
}

static int take_tail(const char *text, int length, const char *value, struct reading *reading)
{
    const char *end = value;
    double trips = 0;
    if (reading->has_tail)
        return lh_fail(LH_EINVAL, "hybrid: tail is given twice, the second time as \"%.*s\"; give it once",
                       length, text);
    reading->has_tail = true;
    if (lh_decimal_read_double(&end, &trips) != 0 || end != text + length || trips > HYBRID_TAIL_MAX / 8.0)
        return lh_fail(LH_ERANGE, "hybrid: %.*s: out of range (0 to 2 round trips, as in tail=1)", length,
                       text);
    reading->tail_eighths = (uint32_t)ceil(trips * 8);
    return 0;
}

static int take(const char *text, int length, struct reading *reading)
{
    if (length > 7 && memcmp(text, "target=", 7) == 0)
        return take_target(text, length, text + 7, reading);
    if (length > 5 && memcmp(text, "tail=", 5) == 0)
        return take_tail(text, length, text + 5, reading);
    return lh_fail(LH_EINVAL, "hybrid has no parameter \"%.*s\"; it has target and tail, as in " EXAMPLE,
                   length, text);
}

int hybrid_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    struct reading reading = {.target = HYBRID_TARGET_DEFAULT, .tail_eighths = HYBRID_TAIL_ALL};
    while (*text != '\0') { /* each turn takes an item, and a key twice is refused */
        int length = (int)strcspn(text, ",");
        int error = take(text, length, &reading);
        if (error)
            return error;
        text += length;
        if (*text == ',' && text[1] == '\0')
            return lh_fail(LH_EINVAL, "hybrid: no parameter after the last comma (leave it out)");
        text += *text == ',';
    }
    memset(params, 0, LH_SCHEME_PARAMS);
    params[1] = (uint8_t)reading.tail_eighths;
    lh_put_be16(params + 2, milli_decades(reading.target));
    hybrid_params_measured(HYBRID_PRIOR_LOSS, 1, UINT32_MAX, params);
    return 0;
}
