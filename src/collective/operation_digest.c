/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/operation_digest.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include <longhaul/collective.h>

#include "base/bytes.h"
#include "base/error.h"
#include "collective/reduce.h"
#include "collective/schedule.h"
#include "collective/schedules.h"

/* ---- digest ---------------------------------------------------------------------------------------- */

void digest_of(const struct lh_buffer *buffer, uint8_t out[DIGEST_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(buffer->data, buffer->bytes));
    _Static_assert(sizeof canonical == DIGEST_BYTES, "bytes");
    memcpy(out, &canonical, sizeof canonical);
}

/* One buffer's column of the digests. */
struct column {
    const uint8_t *first;
    uint32_t ranks;
    size_t stride;
};

static bool is_equal(const struct column *column, uint32_t one, uint32_t other)
{
    return memcmp(column->first + one * column->stride, column->first + other * column->stride,
                  DIGEST_BYTES) == 0;
}

/* How many ranks from this one on have its digest. */
static uint32_t count_equal(const struct column *column, uint32_t rank)
{
    uint32_t count = 0;
    for (uint32_t r = rank; r < column->ranks; r++)
        count += is_equal(column, rank, r);
    return count;
}

/* The lowest rank whose digest the largest number of ranks has. The search ends where the remaining ranks
 * are too few for a larger number. */
static uint32_t find_majority(const struct column *column)
{
    uint32_t best = 0, maximum = 0;
    for (uint32_t r = 0; r + maximum < column->ranks; r++) {
        uint32_t count = count_equal(column, r);
        if (count > maximum) {
            maximum = count;
            best = r;
        }
    }
    return best;
}

void digests_compare(const uint8_t *digests, uint32_t ranks, uint32_t buffers, bool *differs)
{
    for (uint32_t b = 0; b < buffers; b++) {
        const struct column column = {digests + (size_t)b * DIGEST_BYTES, ranks,
                                      (size_t)buffers * DIGEST_BYTES};
        uint32_t majority = find_majority(&column);
        for (uint32_t r = 0; r < ranks; r++)
            differs[(size_t)r * buffers + b] = !is_equal(&column, majority, r);
    }
}

/* ---- names ----------------------------------------------------------------------------------------- */

_Static_assert((int)LH_F32 == ELEMENT_F32 && (int)LH_F64 == ELEMENT_F64 && (int)LH_F16 == ELEMENT_F16 &&
                   (int)LH_BF16 == ELEMENT_BF16 && (int)LH_I32 == ELEMENT_I32 &&
                   (int)LH_I64 == ELEMENT_I64 && (int)LH_U8 == ELEMENT_U8 && (int)LH_I8 == ELEMENT_I8 &&
                   (int)LH_I16 == ELEMENT_I16 && (int)LH_TYPES == ELEMENT_COUNT,
               "types");

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
    static const char *const names[LH_REDUCTIONS] = {"sum", "prod", "min", "max",
                                                     "avg", "band", "bor", "bxor"};
    return (unsigned)reduction < LH_REDUCTIONS ? names[reduction] : NULL;
}

bool reduction_takes(enum lh_reduction reduction, enum lh_type type)
{
    return reduction < LH_BAND || type > LH_BF16;
}

enum reduce_operation reduction_operation(enum lh_reduction reduction)
{
    static const enum reduce_operation operations[LH_REDUCTIONS] = {
        [LH_SUM] = REDUCE_SUM, [LH_PROD] = REDUCE_PROD, [LH_MIN] = REDUCE_MIN, [LH_MAX] = REDUCE_MAX,
        [LH_AVG] = REDUCE_SUM, [LH_BAND] = REDUCE_BAND, [LH_BOR] = REDUCE_BOR, [LH_BXOR] = REDUCE_BXOR,
    };
    return operations[reduction];
}

const char *parts_collective_name(enum collective collective)
{
    switch (collective) {
    case COLLECTIVE_GATHER:
        return "gatherv";
    case COLLECTIVE_SCATTER:
        return "scatterv";
    case COLLECTIVE_ALLTOALL:
        return "alltoallv";
    default:
        return NULL;
    }
}

const struct schedule *parts_schedule(enum collective collective)
{
    switch (collective) {
    case COLLECTIVE_GATHER:
        return &sequential_gather;
    case COLLECTIVE_SCATTER:
        return &sequential_scatter;
    default:
        assert(collective == COLLECTIVE_ALLTOALL);
        return &pairwise_alltoall;
    }
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

/* Whether a collective has that form. */
static bool call_exists(enum collective collective, enum call_form form)
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

/* ---- signature ------------------------------------------------------------------------------------- */

/* version, collective, type, reduction: a byte each; root: 4, count, block_bytes: 8; the schedule's name;
 * reliable, form: a byte each; 2 of zeros; paths: 4; returned: 8 */
#define SIGNATURE_VERSION 4u
#define AT_ROOT           4u
#define AT_COUNT          8u
#define AT_BLOCK_BYTES    16u
#define AT_SCHEDULE       24u
#define AT_RELIABLE       (AT_SCHEDULE + SIGNATURE_NAME_MAX)
#define AT_FORM           (AT_RELIABLE + 1)
#define AT_PATHS          (AT_RELIABLE + 4)
#define AT_RETURNED       (AT_RELIABLE + 8)
_Static_assert(AT_RETURNED + 8 <= SIGNATURE_BYTES, "bytes");

void signature_encode(const struct signature *signature, uint8_t out[SIGNATURE_BYTES])
{
    memset(out, 0, SIGNATURE_BYTES);
    out[0] = SIGNATURE_VERSION;
    out[1] = (uint8_t)signature->collective;
    out[2] = (uint8_t)signature->type;
    out[3] = (uint8_t)signature->reduction;
    lh_put_be32(out + AT_ROOT, signature->root);
    lh_put_be64(out + AT_COUNT, signature->count);
    lh_put_be64(out + AT_BLOCK_BYTES, signature->block_bytes);
    memcpy(out + AT_SCHEDULE, signature->schedule, strnlen(signature->schedule, SIGNATURE_NAME_MAX - 1));
    out[AT_RELIABLE] = signature->reliable;
    out[AT_FORM] = (uint8_t)signature->form;
    lh_put_be32(out + AT_PATHS, signature->paths);
    lh_put_be64(out + AT_RETURNED, signature->returned);
}

bool signature_decode(const uint8_t *in, size_t bytes, struct signature *signature)
{
    if (bytes != SIGNATURE_BYTES || in[0] != SIGNATURE_VERSION || in[1] >= COLLECTIVES ||
        in[2] >= ELEMENT_COUNT || in[3] >= LH_REDUCTIONS || in[AT_SCHEDULE + SIGNATURE_NAME_MAX - 1] != 0 ||
        in[AT_RELIABLE] > 1 || !call_exists(in[1], in[AT_FORM]))
        return false;
    for (const uint8_t *at = in + AT_SCHEDULE; *at != 0; at++)
        if (*at <= ' ' || *at > '~')
            return false; /* it is printed */
    *signature = (struct signature){
        .collective = in[1],
        .type = in[2],
        .reduction = in[3],
        .root = lh_get_be32(in + AT_ROOT),
        .count = lh_get_be64(in + AT_COUNT),
        .block_bytes = lh_get_be64(in + AT_BLOCK_BYTES),
        .returned = lh_get_be64(in + AT_RETURNED),
        .reliable = in[AT_RELIABLE] == 1,
        .form = in[AT_FORM],
        .paths = lh_get_be32(in + AT_PATHS),
    };
    memcpy(signature->schedule, in + AT_SCHEDULE, SIGNATURE_NAME_MAX);
    return true;
}

/* ---- comparing --------------------------------------------------------------------------------------- */

struct comparison {
    uint32_t ranks[2];
    char *text;
    size_t size;
};

static bool names_differ(const struct comparison *c, const char *what, const char *one, const char *other)
{
    if (strcmp(one, other) == 0)
        return false;
    snprintf(c->text, c->size, "%s %s at rank %u, %s at rank %u", what, one, c->ranks[0], other,
             c->ranks[1]);
    return true;
}

static bool numbers_differ(const struct comparison *c, const char *what, uint64_t one, uint64_t other)
{
    if (one == other)
        return false;
    snprintf(c->text, c->size, "%s %llu at rank %u, %llu at rank %u", what, (unsigned long long)one,
             c->ranks[0], (unsigned long long)other, c->ranks[1]);
    return true;
}

static bool parts_differ(const struct comparison *c, const struct signature *a, const struct signature *b)
{
    char what[64];
    snprintf(what, sizeof what, "count from rank %u to rank %u:", c->ranks[0], c->ranks[1]);
    if (numbers_differ(c, what, a->count, b->returned))
        return true;
    snprintf(what, sizeof what, "count from rank %u to rank %u:", c->ranks[1], c->ranks[0]);
    return numbers_differ(c, what, a->returned, b->count);
}

static bool counts_differ(const struct comparison *c, const struct signature *a, const struct signature *b)
{
    return a->form == CALL_UNEVEN
               ? parts_differ(c, a, b)
               : numbers_differ(c, a->form == CALL_COMPARE ? "buffers" : "count", a->count, b->count);
}

bool signature_differs(const struct signature *one, uint32_t rank, const struct signature *other,
                       uint32_t other_rank, char *text, size_t size)
{
    const bool turned = rank > other_rank;
    const struct signature *a = turned ? other : one, *b = turned ? one : other;
    const struct comparison c = {
        .ranks = {turned ? other_rank : rank, turned ? rank : other_rank}, .text = text, .size = size};
    return names_differ(&c, "collective", call_name(a->collective, a->form),
                        call_name(b->collective, b->form)) ||
           names_differ(&c, "type", element_name(a->type), element_name(b->type)) ||
           counts_differ(&c, a, b) ||
           names_differ(&c, "reduction", lh_reduction_name(a->reduction),
                        lh_reduction_name(b->reduction)) ||
           numbers_differ(&c, "root", a->root, b->root) ||
           names_differ(&c, "schedule", a->schedule, b->schedule) ||
           numbers_differ(&c, "block_bytes", a->block_bytes, b->block_bytes) ||
           numbers_differ(&c, "reliable", a->reliable, b->reliable) ||
           numbers_differ(&c, "paths measured by lh_group_measure()", a->paths, b->paths);
}

/* ---- notice ---------------------------------------------------------------------------------------- */

/* Texts of peers are printed; a name of a file in one may have other bytes. */
static bool is_printed(uint8_t byte)
{
    return byte >= ' ' && byte <= '~';
}

size_t notice_encode(const struct notice *notice, uint8_t out[NOTICE_BYTES_MAX])
{
    size_t length = strnlen(notice->text, LH_COLLECTIVE_MESSAGE_MAX - 1);
    lh_put_be32(out, (uint32_t)-notice->error);
    lh_put_be32(out + 4, notice->rank);
    for (size_t i = 0; i < length; i++)
        out[8 + i] = is_printed((uint8_t)notice->text[i]) ? (uint8_t)notice->text[i] : (uint8_t)'?';
    return 8 + length;
}

bool notice_decode(const uint8_t *in, size_t bytes, struct notice *notice)
{
    if (bytes < 8 || bytes >= NOTICE_BYTES_MAX || lh_get_be32(in) > INT32_MAX ||
        !lh_error_known((int)lh_get_be32(in)))
        return false;
    for (size_t i = 8; i < bytes; i++)
        if (!is_printed(in[i]))
            return false;
    *notice = (struct notice){.error = -(int)lh_get_be32(in), .rank = lh_get_be32(in + 4)};
    memcpy(notice->text, in + 8, bytes - 8);
    return true;
}
