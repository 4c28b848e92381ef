/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec_layout.h"

#include <assert.h>
#include <string.h>

#include <longhaul/code.h>
#include <longhaul/scheme.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"

/* ---- params ---------------------------------------------------------------------------------------- */

#define EC_BETA_DEFAULT_HUNDREDTHS 50u    /* half a round trip, paper section 4.2.3 */
#define EC_BETA_MAX_HUNDREDTHS     10000u /* 100 round trips */

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

static int whole_number(const struct item *item, uint32_t minimum, uint32_t maximum, uint32_t *number)
{
    uint32_t value = 0;
    bool possible = item->value_length >= 1 && item->value_length <= 5; /* so many digits never wrap */
    for (int i = 0; possible && i < item->value_length; i++) {
        possible = item->value[i] >= '0' && item->value[i] <= '9';
        value = value * 10 + (uint32_t)(item->value[i] - '0');
    }
    if (!possible || value < minimum || value > maximum)
        return lh_fail(LH_EINVAL, "\"%.*s\" is not a whole number from %u to %u; write it like %.*s8",
                       item->length, item->text, minimum, maximum, (int)(item->value - item->text),
                       item->text);
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
        return lh_fail(LH_EINVAL, "ec:xor: m=%u exceeds k=%u (use m at most %u; default %u)", params->m,
                       params->k, params->k, EC_M_DEFAULT);
    return lh_fail(LH_EINVAL, "k=%u and m=%u exceed %u together (lower one of them)", params->k, params->m,
                   EC_ROWS_MAX);
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

/* ---- layout ---------------------------------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static uint32_t places_of(const struct ec_params *params, uint32_t chunks)
{
    return chunks <= 1 ? 0 : params->m + ec_fresh_rows(params);
}

/* A block is whole groups, so blocks do not matter. */
static uint32_t groups_of(const struct ec_params *params, uint32_t chunks)
{
    return ceil_div(chunks, params->k);
}

uint32_t ec_groups(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct ec_params read = ec_params_of(params);
    return groups_of(&read, chunks);
}

uint32_t ec_extra_chunks(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct ec_params read = ec_params_of(params);
    uint64_t extra = (uint64_t)groups_of(&read, chunks) * places_of(&read, chunks);
    return extra > UINT32_MAX ? UINT32_MAX : (uint32_t)extra;
}

uint32_t ec_transfer_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    struct ec_params read = ec_params_of(params);
    if (slot_chunks <= 1)
        return 0;
    uint64_t fit = (uint64_t)(slot_chunks / places_of(&read, slot_chunks)) * read.k;
    return fit < slot_chunks ? (uint32_t)fit : slot_chunks;
}

struct ec_layout ec_layout_of(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct ec_layout layout = {.params = ec_params_of(params), .chunks = chunks};
    layout.groups = groups_of(&layout.params, chunks);
    layout.places = places_of(&layout.params, chunks);
    assert((uint64_t)layout.groups * layout.places < UINT32_MAX);
    uint32_t spread = layout.params.spread;
    bool one_block = spread == 0 || spread >= layout.groups;
    layout.block_groups = one_block ? layout.groups : spread;
    layout.block_chunks = one_block ? chunks : spread * layout.params.k;
    assert(layout.block_chunks <= chunks);
    return layout;
}

uint32_t ec_layout_extra(const struct ec_layout *layout)
{
    return layout->groups * layout->places;
}

static uint32_t rows_of(const struct ec_params *params, uint32_t size)
{
    if (params->kind == EC_XOR)
        return smaller(params->m, size);
    return size == params->k ? params->m : smaller(params->m, size + 1);
}

struct ec_block ec_layout_block(const struct ec_layout *layout, uint32_t first_group)
{
    assert(first_group < layout->groups && first_group % layout->block_groups == 0);
    struct ec_block block = {.first_group = first_group, .first_place = first_group * layout->places};
    block.first_chunk = first_group / layout->block_groups * layout->block_chunks;
    block.chunks = smaller(layout->block_chunks, layout->chunks - block.first_chunk);
    block.groups = ceil_div(block.chunks, layout->params.k);
    block.size = ceil_div(block.chunks, block.groups);
    block.rows = layout->places == 0 ? 0 : rows_of(&layout->params, block.size);
    block.parity = block.rows * block.groups;
    /* xor: a group that is shorter than the rows leaves out its last. */
    if (layout->params.kind == EC_XOR && block.rows == block.size)
        block.parity -= block.size * block.groups - block.chunks;
    assert(block.size <= layout->params.k && block.parity <= block.groups * layout->places);
    return block;
}

struct ec_group ec_layout_group(const struct ec_layout *layout, uint32_t group)
{
    assert(group < layout->groups);
    uint32_t inside = group % layout->block_groups;
    struct ec_block block = ec_layout_block(layout, group - inside);
    struct ec_group of = {
        .first_chunk = block.first_chunk + inside,
        .first_place = block.first_place + inside,
        .stride = block.groups,
        .size = ceil_div(block.chunks - inside, block.groups),
        .rows = block.rows,
    };
    if (layout->params.kind == EC_XOR)
        of.rows = smaller(of.rows, of.size);
    assert(of.size >= 1 && of.first_chunk + (of.size - 1) * of.stride < layout->chunks);
    return of;
}

/* ---- coding ---------------------------------------------------------------------------------------- */

static_assert((int)EC_XOR == (int)LH_CODE_XOR && (int)EC_MDS == (int)LH_CODE_MDS, "the same numbers");

/* A group, and how much of each of its chunks there is. */
struct ec_part {
    struct ec_layout layout;
    struct ec_group group;
    size_t tail; /* bytes of its last chunk */
};

static struct ec_part part_of(const struct lh_coding *coding, uint32_t group)
{
    struct ec_part part = {.layout = ec_layout_of(coding->params, coding->chunks),
                           .tail = coding->chunk_bytes};
    part.group = ec_layout_group(&part.layout, group);
    uint32_t last = part.group.first_chunk + (part.group.size - 1) * part.group.stride;
    if (last == coding->chunks - 1)
        part.tail = coding->bytes - (uint64_t)last * coding->chunk_bytes;
    assert(part.tail >= 1 && part.tail <= coding->chunk_bytes);
    return part;
}

static size_t chunk_at(const struct lh_coding *coding, const struct ec_part *part, uint32_t position)
{
    return (size_t)(part->group.first_chunk + position * part->group.stride) * coding->chunk_bytes;
}

static uint8_t *row_at(const struct lh_coding *coding, const struct ec_part *part, uint32_t row)
{
    return coding->extra +
           (size_t)(part->group.first_place + row * part->group.stride) * coding->chunk_bytes;
}

/* The code of the first `size` chunks of the group: all, or without the last. With xor a class can be left
 * without data then; it has no row. */
static struct lh_code code_of(const struct ec_part *part, uint32_t size)
{
    uint32_t rows = ec_group_rows_max(&part->layout, &part->group);
    if (part->layout.params.kind == EC_XOR && rows > size)
        rows = size;
    return (struct lh_code){(enum lh_code_kind)part->layout.params.kind, size, rows};
}

/* ---- encoding ---------------------------------------------------------------------------------------- */

/* Rows of columns from … to - 1, of the group's first `size` chunks. */
static void encode_columns(const struct lh_coding *coding, const struct ec_part *part, uint32_t size,
                           uint32_t first_row, uint32_t rows, size_t from, size_t to)
{
    const void *data[EC_ROWS_MAX];
    void *parity[EC_ROWS_MAX];
    struct lh_code code = code_of(part, size);
    uint32_t coded = 0;
    for (uint32_t p = 0; p < size; p++)
        data[p] = coding->message + chunk_at(coding, part, p) + from;
    for (uint32_t r = first_row; r < first_row + rows; r++) {
        uint8_t *row = row_at(coding, part, r) + from;
        if (r < code.m && size > 0)
            parity[coded++] = row;
        else
            memset(row, 0, to - from);
    }
    if (coded > 0 && to > from)
        lh_encode_rows(&code, first_row, coded, data, parity, to - from);
}

static void encode(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows)
{
    struct ec_part part = part_of(coding, group);
    assert(rows >= 1 && first_row + rows <= ec_group_rows_max(&part.layout, &part.group));
    encode_columns(coding, &part, part.group.size, first_row, rows, 0, part.tail);
    encode_columns(coding, &part, part.group.size - 1, first_row, rows, part.tail, coding->chunk_bytes);
}

/* ---- decoding ---------------------------------------------------------------------------------------- */

/* Which chunks of the group are there: its first `size` data chunks, then the rows. Returns how many data
 * chunks are missing. */
static uint32_t presence(const struct ec_part *part, uint32_t size, const uint8_t *chunk_bitmap,
                         const uint8_t *extra_bitmap, uint8_t *present)
{
    struct lh_code code = code_of(part, size);
    uint32_t missing = 0;
    for (uint32_t p = 0; p < size; p++) {
        present[p] = chunk_bitmap[part->group.first_chunk + p * part->group.stride] != 0;
        missing += !present[p];
    }
    for (uint32_t r = 0; r < code.m; r++)
        present[size + r] =
            extra_bitmap != NULL && extra_bitmap[part->group.first_place + r * part->group.stride] != 0;
    return missing;
}

static void decode_columns(const struct lh_coding *coding, const struct ec_part *part, uint32_t size,
                           const uint8_t *present, size_t from, size_t to)
{
    void *chunks[EC_ROWS_MAX];
    struct lh_code code = code_of(part, size);
    for (uint32_t p = 0; p < size; p++)
        chunks[p] = coding->room + chunk_at(coding, part, p) + from;
    for (uint32_t r = 0; r < code.m; r++)
        chunks[size + r] = row_at(coding, part, r) + from;
    int failed = lh_decode(&code, chunks, present, to - from);
    assert(!failed); /* the receiver's machine had looked before it said that all is there */
    (void)failed;
}

static uint32_t decode(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap)
{
    struct ec_part part = part_of(coding, group);
    uint8_t present[EC_ROWS_MAX];
    uint32_t missing = presence(&part, part.group.size, chunk_bitmap, extra_bitmap, present);
    if (missing == 0)
        return 0;
    decode_columns(coding, &part, part.group.size, present, 0, part.tail);
    uint32_t shorter = part.group.size - 1;
    if (part.tail < coding->chunk_bytes && shorter > 0 &&
        presence(&part, shorter, chunk_bitmap, extra_bitmap, present) > 0)
        decode_columns(coding, &part, shorter, present, part.tail, coding->chunk_bytes);
    return missing;
}

const struct lh_scheme_coding ec_coding = {
    .transfer_chunks_max = ec_transfer_chunks_max,
    .extra_chunks = ec_extra_chunks,
    .groups = ec_groups,
    .encode = encode,
    .decode = decode,
};
