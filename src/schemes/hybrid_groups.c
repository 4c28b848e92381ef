/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid_groups.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <longhaul/scheme.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "schemes/ec_layout.h"
#include "schemes/sr_ledger.h"
#include "wire/scheme_messages.h"

/* ---- strength -------------------------------------------------------------------------------------- */

#define NEGLIGIBLE 1e-12 /* share of a sum that is not worth a further term */

/* P(X > spared), X ~ Binomial(n, p): from its first term on. */
static double binomial_above(uint32_t n, double p, uint32_t spared)
{
    double term = 1, sum = 0;
    for (uint32_t i = 1; i <= spared + 1; i++) /* C(n, x) p^x, x = spared + 1 <= n */
        term *= (double)(n - spared - 1 + i) / i * p;
    term *= pow(1 - p, (double)(n - spared - 1));
    for (uint32_t x = spared + 1; x <= n; x++) {
        sum += term;
        if (x > p * n && term < sum * NEGLIGIBLE)
            break;
        term *= (double)(n - x) / (x + 1) * p / (1 - p);
    }
    return fmin(1, sum);
}

/* The same of the geometric Poisson distribution: x P(x) = (bursts (1 - r) + 2 r (x - 1)) P(x - 1)
 * - r^2 (x - 2) P(x - 2), r = 1 - 1 / burst (Johnson, Kotz and Kemp, Univariate Discrete Distributions). */
static double bursts_above(double mean, double burst, uint32_t spared)
{
    double bursts = mean / burst, r = 1 - 1 / burst;
    double before = 0, chance = exp(-bursts), sum = chance;
    for (uint32_t x = 1; x <= spared; x++) {
        double next = ((bursts * (1 - r) + 2 * r * (x - 1)) * chance - r * r * (x - 2.0) * before) / x;
        before = chance;
        chance = fmax(0, next);
        sum += chance;
    }
    return fmax(0, 1 - sum);
}

double hybrid_failure(const struct hybrid_loss *loss, uint32_t sent, uint32_t needed)
{
    assert(loss->chunk >= 0 && loss->chunk < 1 && loss->burst >= 1);
    if (needed == 0)
        return 0;
    if (sent < needed)
        return 1;
    if (loss->burst > 1)
        return bursts_above(sent * loss->chunk, loss->burst, sent - needed);
    return binomial_above(sent, loss->chunk, sent - needed);
}

static bool suffices(const struct hybrid_loss *loss, uint32_t sent, uint32_t needed, double failure)
{
    return hybrid_failure(loss, sent, needed) <= failure;
}

/* Few are the rule, so steps double until they are enough; then halves. One more chunk never makes a failure
 * likelier, but for bursts so dense that no number of chunks is enough. */
uint32_t hybrid_strength(const struct hybrid_loss *loss, uint32_t in_flight, uint32_t needed,
                         double failure, uint32_t maximum)
{
    uint32_t from = needed > in_flight ? needed - in_flight : 0, end = from;
    for (uint32_t step = 1; end < maximum && !suffices(loss, in_flight + end, needed, failure); step *= 2) {
        from = end + 1;
        end += step;
    }
    if (end > maximum)
        end = maximum;
    while (from < end) { /* from - 1 is not enough, end is, or is all there are */
        uint32_t middle = from + (end - from) / 2;
        if (suffices(loss, in_flight + middle, needed, failure))
            end = middle;
        else
            from = middle + 1;
    }
    return end;
}

/* ---- params ---------------------------------------------------------------------------------------- */

#define HYBRID_LOSS_MIN  1e-9
#define HYBRID_BURST_MAX 4000.0

#define MILLI       1000.0
#define BURST_UNITS 16.0
#define EXAMPLE     "target=1e-4 or target=1e-4,tail=1"
/* A full submessage of a message of 10^4 others, and a quarter of the rows left for later. */
#define PLANNED_FAILURE 1e-8
#define PLANNED_SHARE   0.75
#define PLANNED_GROUPS  5.0 /* of a segment: the slot of 4 MiB in chunks of 4 KiB */

/* Codes: data chunks, and m of schemes/ec, which adds as many rows for requests (docs/schemes.md). A
 * symbol is a byte, so both together are at most 255. */
static const struct {
    uint8_t k;
    uint8_t m;
} codes[] = {
    {240, 8},              /* 15 rows: up to a loss of about 2e-3 */
    {210, 23},             /* 45: 2e-2 */
    {160, 48},             /* 95: 0.12 */
    {HYBRID_SIZE_MIN, 50}, /* 100: the rest */
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

uint32_t hybrid_code_for(double loss, double burst, uint32_t rows_max)
{
    const struct hybrid_loss of = {loss, 1 / (1 - pow(1 - 1 / fmax(1, burst), PLANNED_GROUPS))};
    uint32_t last = CODES - 1;
    while (last > 0 && hybrid_code_rows(last) > rows_max)
        last--;
    for (uint32_t code = 0; code < last; code++) {
        uint32_t maximum = hybrid_code_rows(code);
        uint32_t rows = hybrid_strength(&of, codes[code].k, codes[code].k, PLANNED_FAILURE, maximum);
        if (rows <= PLANNED_SHARE * maximum)
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

void hybrid_params_measured(double loss, double burst, uint32_t rows_max, uint8_t params[LH_SCHEME_PARAMS])
{
    loss = fmin(fmax(loss, HYBRID_LOSS_MIN), HYBRID_LOSS_MAX);
    burst = fmin(fmax(burst, 1), HYBRID_BURST_MAX);
    params[0] = (uint8_t)hybrid_code_for(loss, burst, rows_max);
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

/* ---- groups ---------------------------------------------------------------------------------------- */

#define HYBRID_PATIENCE 100.0 /* one submessage in 100 gets further parity before it is known to fail */

static_assert(HYBRID_DECODABLE >= EC_ROWS_MAX, "no number of rows");

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

size_t hybrid_groups_bytes(uint32_t chunks_max)
{
    return ((size_t)chunks_max / HYBRID_SIZE_MIN + 1) * sizeof(struct hybrid_group);
}

void hybrid_groups_init(struct hybrid_groups *groups, const struct ec_layout *layout, void *memory)
{
    *groups = (struct hybrid_groups){.layout = layout, .all = memory, .work_from = layout->groups};
    memset(memory, 0, layout->groups * sizeof(struct hybrid_group));
    if (layout->places == 0) { /* copies need no encoder */
        groups->all[0].asked = HYBRID_COPIES_MAX;
        groups->all[0].ready = HYBRID_COPIES_MAX;
    }
}

uint32_t hybrid_groups_rows_max(const struct hybrid_groups *groups)
{
    return groups->layout->places > 0 ? groups->layout->places : HYBRID_COPIES_MAX;
}

struct hybrid_loss hybrid_groups_loss(const struct hybrid_loss *loss, uint32_t block_groups)
{
    double goes_on = pow(1 - 1 / loss->burst, block_groups);
    return (struct hybrid_loss){loss->chunk, 1 / (1 - goes_on)};
}

/* ---- what the receiver reports ----------------------------------------------------------------------- */

static uint32_t in_flight(const struct hybrid_group *group)
{
    uint32_t known = larger(group->settled, group->arrived);
    return group->sent > known ? group->sent - known : 0;
}

static void settle(struct hybrid_group *group, uint32_t mark)
{
    if (mark >= group->stamp)
        group->settled = group->sent;
    else if (mark >= group->stamp_before)
        group->settled = (uint8_t)larger(group->settled, group->sent_before);
}

static bool rows_possible(const struct hybrid_groups *groups, const struct hybrid_rows *rows)
{
    if (rows->first >= groups->layout->groups || rows->count > groups->layout->groups - rows->first)
        return false;
    for (uint32_t i = 0; i < rows->count; i++) /* at most HYBRID_ROWS_MAX */
        if (rows->rows[i] != HYBRID_DECODABLE && rows->rows[i] > groups->all[rows->first + i].sent)
            return false;
    return true;
}

bool hybrid_groups_on_rows(struct hybrid_groups *groups, const struct hybrid_rows *rows)
{
    if (!rows_possible(groups, rows))
        return false;
    for (uint32_t i = 0; i < rows->count; i++) { /* at most HYBRID_ROWS_MAX */
        struct hybrid_group *group = &groups->all[rows->first + i];
        uint32_t before = in_flight(group);
        if (rows->rows[i] == HYBRID_DECODABLE) {
            group->met = true;
            group->settled = group->sent;
        } else if (rows->rows[i] > group->arrived) {
            groups->rows_arrived += rows->rows[i] - group->arrived;
            group->arrived = rows->rows[i];
        }
        settle(group, rows->mark);
        groups->rows_in_flight -= before - in_flight(group);
    }
    return true;
}

void hybrid_groups_settle_copies(struct hybrid_groups *groups, uint32_t mark)
{
    struct hybrid_group *group = &groups->all[0];
    assert(groups->layout->places == 0);
    uint32_t before = in_flight(group);
    settle(group, mark);
    groups->rows_in_flight -= before - in_flight(group);
}

/* ---- what is needed ---------------------------------------------------------------------------------- */

/* The data of a submessage. */
struct count {
    uint32_t arrived;
    uint32_t in_flight;
    uint32_t lost;
};

static struct count count_data(const struct sr_ledger *ledger, const struct ec_group *of,
                               uint32_t from_stamp)
{
    struct count count = {0};
    for (uint32_t p = 0, chunk = of->first_chunk; p < of->size; p++, chunk += of->stride) {
        uint64_t bit = (uint64_t)1 << (chunk % 64);
        if (ledger->acked_bits[chunk / 64] & bit)
            count.arrived++;
        else if (ledger->lost_bits[chunk / 64] & bit)
            count.lost++;
        else if (ledger->stamps[chunk] < from_stamp)
            count.arrived++;
        else
            count.in_flight++;
    }
    return count;
}

/* Adds so many chunks: rows as far as there are, the rest of it lost chunks. What is certain to be needed
 * does not wait for the encoder, or for other data, where a lost chunk serves as well. */
static void add(struct hybrid_groups *groups, struct hybrid_group *group, uint32_t more, uint32_t certain,
                uint32_t lost, bool waits)
{
    uint32_t ready = waits ? 0 : group->ready - group->sent;
    uint32_t repeats = certain > ready ? smaller(certain - ready, lost) : 0;
    uint32_t rows = smaller(more - repeats, hybrid_groups_rows_max(groups) - group->sent);
    repeats = smaller(more - rows, lost);
    group->want = (uint8_t)(group->sent + rows);
    group->repeats = (uint8_t)smaller(repeats, UINT8_MAX);
}

static void evaluate(struct hybrid_groups *groups, const struct sr_ledger *ledger, uint32_t index,
                     const struct hybrid_rule *rule)
{
    struct hybrid_group *group = &groups->all[index];
    struct ec_group of = ec_layout_group(groups->layout, index);
    struct count data = count_data(ledger, &of, rule->from_stamp);
    uint32_t have = data.arrived + group->arrived;
    group->repeats = 0;
    if (group->met || have >= of.size) {
        group->want = group->sent;
        return;
    }
    uint32_t needed = of.size - have;
    uint32_t flying = data.in_flight + in_flight(group);
    uint32_t certain = needed > flying ? needed - flying : 0;
    struct hybrid_loss loss = hybrid_groups_loss(&rule->loss, of.stride);
    uint32_t maximum = hybrid_groups_rows_max(groups) - group->sent + data.lost;
    bool planned = group->sent > 0 && group->want == group->sent; /* and all of it was injected */
    double bearable = planned ? fmin(0.5, HYBRID_PATIENCE * rule->failure) : rule->failure;
    group->covered |= planned;
    if (certain == 0 && rule->waits)
        return;
    if (certain == 0 && hybrid_failure(&loss, flying, needed) <= bearable) {
        group->want = group->sent;
        group->covered = true;
        return;
    }
    bool fails = certain > 0 && group->covered;
    groups->newly_failed += fails && !group->failed;
    group->failed |= fails;
    uint32_t more = hybrid_strength(&loss, flying, needed, rule->failure, maximum);
    add(groups, group, more, certain, data.lost, rule->waits);
}

void hybrid_groups_evaluate(struct hybrid_groups *groups, const struct sr_ledger *ledger, uint32_t first,
                            uint32_t end, const struct hybrid_rule *rule)
{
    assert(end <= groups->layout->groups);
    for (uint32_t index = first; index < end; index++)
        evaluate(groups, ledger, index, rule);
    groups->work_from = smaller(groups->work_from, first);
}

/* ---- what is injected -------------------------------------------------------------------------------- */

uint32_t hybrid_group_rows_due(const struct hybrid_group *group)
{
    uint32_t end = smaller(group->want, group->ready);
    return end > group->sent ? end - group->sent : 0;
}

/* Something is wanted of it, whether the encoder has it or not. */
static bool wants(const struct hybrid_group *group)
{
    return group->repeats > 0 || group->want > group->sent;
}

uint32_t hybrid_groups_work(struct hybrid_groups *groups, bool rows_may_leave)
{
    uint32_t all = groups->layout->groups;
    while (groups->work_from < all && !wants(&groups->all[groups->work_from]))
        groups->work_from++;
    uint32_t index = groups->work_from;
    while (index < all && groups->all[index].repeats == 0 &&
           !(rows_may_leave && hybrid_group_rows_due(&groups->all[index]) > 0))
        index++;
    return index;
}

uint32_t hybrid_groups_take_row(struct hybrid_groups *groups, uint32_t index, uint32_t stamp)
{
    struct hybrid_group *group = &groups->all[index];
    assert(hybrid_group_rows_due(group) > 0);
    uint32_t before = in_flight(group);
    if (group->sent == 0 || group->stamp != stamp) {
        group->stamp_before = group->stamp;
        group->sent_before = group->sent;
        group->stamp = stamp;
    }
    uint32_t row = group->sent++;
    groups->rows_in_flight += in_flight(group) - before;
    return row;
}

uint32_t hybrid_groups_lost_chunk(const struct hybrid_groups *groups, const struct sr_ledger *ledger,
                                  uint32_t index)
{
    struct ec_group of = ec_layout_group(groups->layout, index);
    for (uint32_t p = 0, chunk = of.first_chunk; p < of.size; p++, chunk += of.stride)
        if (ledger->lost_bits[chunk / 64] >> (chunk % 64) & 1)
            return chunk;
    return UINT32_MAX;
}

/* ---- encoding -------------------------------------------------------------------------------------- */

void hybrid_encoding_init(struct hybrid_encoding *encoding, const struct ec_layout *layout)
{
    *encoding = (struct hybrid_encoding){.next_ahead = layout->groups};
}

void hybrid_encoding_on_encoded(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                                uint32_t encoded)
{
    assert(encoded <= encoding->given);
    for (; encoding->done < encoded; encoding->done++) { /* at most HYBRID_ENCODINGS_AHEAD */
        uint32_t at = encoding->done % HYBRID_ENCODINGS_AHEAD;
        struct hybrid_group *group = &groups->all[encoding->pending[at].group];
        assert(group->ready < encoding->pending[at].rows);
        group->ready = encoding->pending[at].rows;
        if (encoding->pending[at].group < groups->work_from)
            groups->work_from = encoding->pending[at].group;
    }
}

void hybrid_encoding_on_near(struct hybrid_encoding *encoding, const struct ec_layout *layout,
                             uint32_t sent_through)
{
    if (encoding->near || layout->places == 0)
        return;
    encoding->near = true;
    uint32_t block = sent_through / layout->block_chunks;
    if (sent_through < layout->chunks)
        encoding->next_ahead = block * layout->block_groups;
}

static bool request(struct hybrid_encoding *encoding, struct hybrid_group *group, uint32_t index,
                    uint32_t rows, struct hybrid_encode *encode)
{
    *encode = (struct hybrid_encode){index, group->asked, rows - group->asked};
    group->asked = (uint8_t)rows;
    uint32_t at = encoding->given++ % HYBRID_ENCODINGS_AHEAD;
    encoding->pending[at].group = index;
    encoding->pending[at].rows = (uint8_t)rows;
    return true;
}

/* Each walk goes on where the last one ended. */
static bool next_ahead(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                       uint32_t sent_through, uint32_t rows_ahead, struct hybrid_encode *encode)
{
    const struct ec_layout *layout = groups->layout;
    while (encoding->next_ahead < layout->groups) {
        uint32_t index = encoding->next_ahead;
        struct ec_block block = ec_layout_block(layout, index - index % layout->block_groups);
        if (block.first_chunk + block.chunks > sent_through)
            return false;
        encoding->next_ahead++;
        if (groups->all[index].asked < rows_ahead)
            return request(encoding, &groups->all[index], index, rows_ahead, encode);
    }
    return false;
}

bool hybrid_encoding_next(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                          uint32_t sent_through, uint32_t rows_ahead, struct hybrid_encode *encode)
{
    if (groups->layout->places == 0 || encoding->given - encoding->done == HYBRID_ENCODINGS_AHEAD)
        return false;
    for (uint32_t index = groups->work_from; index < groups->layout->groups; index++)
        if (groups->all[index].want > groups->all[index].asked)
            return request(encoding, &groups->all[index], index, groups->all[index].want, encode);
    uint32_t maximum = hybrid_groups_rows_max(groups);
    return next_ahead(encoding, groups, sent_through, rows_ahead < maximum ? rows_ahead : maximum, encode);
}

/* ---- reach ----------------------------------------------------------------------------------------- */

void hybrid_reach_init(struct hybrid_reach *reach)
{
    *reach = (struct hybrid_reach){0};
}

void hybrid_reach_on_injection(struct hybrid_reach *reach, uint32_t stamp, lh_time rtt_ns, lh_time now)
{
    if (now < reach->next_ns)
        return;
    reach->stamps[reach->count++ % HYBRID_TAIL_MAX] = stamp;
    reach->next_ns = now + rtt_ns / 8;
}

uint32_t hybrid_reach_from(const struct hybrid_reach *reach, uint32_t eighths)
{
    if (eighths == 0)
        return UINT32_MAX;
    if (eighths == HYBRID_TAIL_ALL || reach->count < eighths)
        return 0;
    assert(eighths <= HYBRID_TAIL_MAX);
    return reach->stamps[(reach->count - eighths) % HYBRID_TAIL_MAX];
}

/* ---- coding ---------------------------------------------------------------------------------------- */

struct ec_layout hybrid_layout_of(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    uint8_t code[LH_SCHEME_PARAMS];
    hybrid_code_params(params[0], code);
    return ec_layout_of(code, chunks);
}

static uint32_t transfer_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    uint8_t code[LH_SCHEME_PARAMS];
    hybrid_code_params(params[0], code);
    return ec_transfer_chunks_max(code, slot_chunks);
}

static uint32_t extra_chunks(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    uint8_t code[LH_SCHEME_PARAMS];
    hybrid_code_params(params[0], code);
    return ec_extra_chunks(code, chunks);
}

static uint32_t groups(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    uint8_t code[LH_SCHEME_PARAMS];
    hybrid_code_params(params[0], code);
    return ec_groups(code, chunks);
}

/* The same memory, as schemes/ec sees it. */
static struct lh_coding coded(const struct lh_coding *coding)
{
    struct lh_coding of = *coding;
    hybrid_code_params(coding->params[0], of.params);
    return of;
}

static void encode(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows)
{
    struct lh_coding of = coded(coding);
    ec_coding.encode(&of, group, first_row, rows);
}

static uint32_t decode(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap)
{
    struct lh_coding of = coded(coding);
    return ec_coding.decode(&of, group, chunk_bitmap, extra_bitmap);
}

const struct lh_scheme_coding hybrid_coding = {
    .transfer_chunks_max = transfer_chunks_max,
    .extra_chunks = extra_chunks,
    .groups = groups,
    .encode = encode,
    .decode = decode,
};
