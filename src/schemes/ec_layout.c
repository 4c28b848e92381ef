/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/params.h"

#include <assert.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/decimal.h"
#include "base/error.h"

#define EC_SPREAD_MAX 65535u

enum key {
    KEY_K,
    KEY_M,
    KEY_SPREAD,
    KEY_BETA,
    KEY_FALLBACK,
    KEYS,
};

static const char *const key_names[KEYS] = {"k", "m", "spread", "beta", "fallback"};

static const char *kind_name(enum ec_kind kind)
{
    return kind == EC_MDS ? "ec:mds" : "ec:xor";
}

/* One "key=value" of the text, not ended by zero. */
struct item {
    const char *text;
    int length; /* of all */
    const char *value;
    int value_length;
};

/* What is read of a text before it is taken. */
struct reading {
    struct ec_params params;
    bool given[KEYS];
};

static int whole_number(const struct item *item, uint32_t least, uint32_t most, uint32_t *number)
{
    uint32_t value = 0;
    bool possible = item->value_length >= 1 && item->value_length <= 5; /* so many digits never wrap */
    for (int i = 0; possible && i < item->value_length; i++) {
        possible = item->value[i] >= '0' && item->value[i] <= '9';
        value = value * 10 + (uint32_t)(item->value[i] - '0');
    }
    if (!possible || value < least || value > most)
        return lh_fail(LH_EINVAL, "\"%.*s\" is not a whole number from %u to %u; write it like %.*s8",
                       item->length, item->text, least, most, (int)(item->value - item->text), item->text);
    *number = value;
    return 0;
}

static int beta_number(const struct item *item, uint32_t *hundredths)
{
    struct lh_decimal decimal;
    uint64_t value = 0;
    const char *end = item->value;
    if (lh_decimal_read(&end, &decimal) != 0 || end != item->value + item->value_length ||
        lh_decimal_scale(&decimal, 100, &value) != 0 || value > EC_BETA_MAX_HUNDREDTHS)
        return lh_fail(LH_EINVAL,
                       "\"%.*s\" is not a number from 0 to 100 with at most two decimals; write it like "
                       "beta=0.5",
                       item->length, item->text);
    *hundredths = (uint32_t)value;
    return 0;
}

static bool value_is(const struct item *item, const char *word)
{
    return (size_t)item->value_length == strlen(word) &&
           memcmp(item->value, word, (size_t)item->value_length) == 0;
}

static int fallback_word(const struct item *item, enum ec_fallback *fallback)
{
    if (!value_is(item, "ir") && !value_is(item, "sr"))
        return lh_fail(LH_EINVAL, "%.*s: invalid fallback (fallback=ir or fallback=sr)", item->length,
                       item->text);
    *fallback = value_is(item, "sr") ? EC_FALLBACK_SR : EC_FALLBACK_IR;
    return 0;
}

static int take_value(enum key key, const struct item *item, struct ec_params *params)
{
    switch (key) {
    case KEY_K:
        return whole_number(item, 1, EC_ROWS_MAX - 1, &params->k);
    case KEY_M:
        return whole_number(item, 1, EC_ROWS_MAX - 1, &params->m);
    case KEY_SPREAD:
        return whole_number(item, 0, EC_SPREAD_MAX, &params->spread);
    case KEY_BETA:
        return beta_number(item, &params->beta_hundredths);
    case KEY_FALLBACK:
        return fallback_word(item, &params->fallback);
    case KEYS:
        break;
    }
    assert(false); /* a key of enum key */
    return -LH_EINVAL;
}

/* KEYS when there is no such key. */
static enum key key_of(const struct item *item)
{
    size_t length = item->value == NULL ? (size_t)item->length : (size_t)(item->value - item->text) - 1;
    for (int key = 0; key < KEYS; key++)
        if (strlen(key_names[key]) == length && memcmp(key_names[key], item->text, length) == 0)
            return (enum key)key;
    return KEYS;
}

static int take_item(struct item item, struct reading *reading)
{
    const char *equals = memchr(item.text, '=', (size_t)item.length);
    if (equals != NULL) {
        item.value = equals + 1;
        item.value_length = item.length - (int)(item.value - item.text);
    }
    enum key key = key_of(&item);
    if (key == KEYS)
        return lh_fail(LH_EINVAL,
                       "%s has no parameter \"%.*s\"; it has k, m, spread, beta and fallback, as in "
                       "k=32,m=8,spread=0,beta=0.5,fallback=ir",
                       kind_name(reading->params.kind), item.length, item.text);
    if (equals == NULL)
        return lh_fail(LH_EINVAL, "%.*s needs a value, as in k=32,m=8,spread=0,beta=0.5,fallback=ir",
                       item.length, item.text);
    if (reading->given[key])
        return lh_fail(LH_EINVAL, "%s is given twice, the second time as \"%.*s\"; give it once",
                       key_names[key], item.length, item.text);
    reading->given[key] = true;
    return take_value(key, &item, &reading->params);
}

static bool split_possible(const struct ec_params *params)
{
    if (params->k < 1 || params->m < 1)
        return false;
    return params->k + params->m <= EC_ROWS_MAX && (params->kind == EC_MDS || params->m <= params->k);
}

static int check_split(const struct ec_params *params)
{
    if (split_possible(params))
        return 0;
    if (params->kind == EC_XOR && params->m > params->k)
        return lh_fail(LH_EINVAL,
                       "ec:xor has no use for more parity (m=%u) than data (k=%u); make m at most %u "
                       "(without it, it is %u)",
                       params->m, params->k, params->k, EC_M_DEFAULT);
    return lh_fail(LH_EINVAL, "k=%u and m=%u are more than %u together; make one of them smaller",
                   params->k, params->m, EC_ROWS_MAX);
}

static void write_params(const struct ec_params *params, uint8_t out[LH_SCHEME_PARAMS])
{
    assert(split_possible(params) && params->spread <= EC_SPREAD_MAX);
    assert(params->beta_hundredths <= EC_BETA_MAX_HUNDREDTHS);
    out[0] = (uint8_t)params->kind;
    out[1] = (uint8_t)params->k;
    out[2] = (uint8_t)params->m;
    out[3] = (uint8_t)params->fallback;
    lh_put_be16(out + 4, (uint16_t)params->spread);
    lh_put_be16(out + 6, (uint16_t)params->beta_hundredths);
}

static int parse(enum ec_kind kind, const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    struct reading reading = {.params = {.kind = kind,
                                         .k = EC_K_DEFAULT,
                                         .m = EC_M_DEFAULT,
                                         .beta_hundredths = EC_BETA_DEFAULT_HUNDREDTHS}};
    for (const char *at = text; *text != '\0';) { /* KEYS items at most: a key twice is refused */
        int length = (int)strnlen(at, 4096);
        const char *comma = memchr(at, ',', (size_t)length);
        int failed = take_item(
            (struct item){.text = at, .length = comma != NULL ? (int)(comma - at) : length}, &reading);
        if (failed)
            return failed;
        if (comma == NULL)
            break;
        at = comma + 1;
    }
    int failed = check_split(&reading.params);
    if (failed)
        return failed;
    write_params(&reading.params, params);
    return 0;
}

int ec_mds_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    return parse(EC_MDS, text, params);
}

int ec_xor_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    return parse(EC_XOR, text, params);
}

static struct ec_params read_params(const uint8_t params[LH_SCHEME_PARAMS])
{
    return (struct ec_params){
        .kind = (enum ec_kind)params[0],
        .k = params[1],
        .m = params[2],
        .fallback = (enum ec_fallback)params[3],
        .spread = lh_get_be16(params + 4),
        .beta_hundredths = lh_get_be16(params + 6),
    };
}

static bool params_valid(enum ec_kind kind, const uint8_t params[LH_SCHEME_PARAMS])
{
    struct ec_params read = read_params(params);
    return read.kind == kind && params[3] <= EC_FALLBACK_SR && split_possible(&read) &&
           read.beta_hundredths <= EC_BETA_MAX_HUNDREDTHS;
}

bool ec_mds_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return params_valid(EC_MDS, params);
}

bool ec_xor_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return params_valid(EC_XOR, params);
}

struct ec_params ec_params_of(const uint8_t params[LH_SCHEME_PARAMS])
{
    assert(ec_mds_params_valid(params) || ec_xor_params_valid(params));
    return read_params(params);
}

uint32_t ec_fresh_rows(const struct ec_params *params)
{
    assert(split_possible(params));
    if (params->kind == EC_XOR || params->m >= params->k)
        return 0;
    uint32_t fresh = params->m;
    if (fresh > params->k - params->m)
        fresh = params->k - params->m;
    if (fresh > EC_ROWS_MAX - params->k - params->m)
        fresh = EC_ROWS_MAX - params->k - params->m;
    return fresh;
}
