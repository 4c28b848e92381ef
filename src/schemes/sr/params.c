/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/params.h"

#include <string.h>

#include "base/big_endian.h"
#include "base/decimal.h"
#include "base/error.h"

static bool all_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static bool alpha_possible(uint64_t hundredths)
{
    return hundredths >= SR_ALPHA_MIN_HUNDREDTHS && hundredths <= SR_ALPHA_MAX_HUNDREDTHS;
}

static int parse_alpha(const char *text, uint64_t *hundredths)
{
    static const char key[] = "alpha=";
    struct lh_decimal decimal;
    if (strncmp(text, key, sizeof(key) - 1) != 0)
        return lh_fail(LH_EINVAL, "sr-rto has no parameter \"%s\"; it has alpha, as in alpha=2", text);
    const char *number = text + sizeof(key) - 1;
    const char *end = number;
    if (lh_decimal_read(&end, &decimal) != 0 || *end != '\0' ||
        lh_decimal_scale(&decimal, 100, hundredths) != 0 || !alpha_possible(*hundredths))
        return lh_fail(LH_EINVAL, "alpha \"%s\" is not a number from 0.25 to 100, as in alpha=2", number);
    return 0;
}

int sr_rto_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    uint64_t hundredths = SR_ALPHA_DEFAULT_HUNDREDTHS;
    if (*text != '\0') {
        int failed = parse_alpha(text, &hundredths);
        if (failed)
            return failed;
    }
    memset(params, 0, LH_SCHEME_PARAMS);
    lh_put_be16(params, (uint16_t)hundredths);
    return 0;
}

uint32_t sr_rto_alpha_hundredths(const uint8_t params[LH_SCHEME_PARAMS])
{
    return lh_get_be16(params);
}

bool sr_rto_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return alpha_possible(sr_rto_alpha_hundredths(params)) && all_zero(params + 2, LH_SCHEME_PARAMS - 2);
}

int sr_nack_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    if (*text != '\0')
        return lh_fail(LH_EINVAL, "sr-nack has no parameters, but \"%s\" was given; leave it out", text);
    memset(params, 0, LH_SCHEME_PARAMS);
    return 0;
}

bool sr_nack_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return all_zero(params, LH_SCHEME_PARAMS);
}
