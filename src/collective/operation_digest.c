/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/signature.h"

#include <stdio.h>
#include <string.h>

#include <longhaul/collective.h>

#include "base/big_endian.h"
#include "collective/reduce/reduce.h"

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
