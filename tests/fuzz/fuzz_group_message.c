/* Whatever a rank sends to another of its group: read without harm, and what is taken for a signature, a
 * notice or a report is a possible one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "collective/operation_digest.h"
#include "group/agreement.h"

#define RANKS 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_signature(const uint8_t *data, size_t size)
{
    static const struct signature own = {.count = 1000, .block_bytes = 4096, .schedule = "ring"};
    struct signature signature, again;
    uint8_t body[SIGNATURE_BYTES];
    char text[64] = "";
    if (!signature_decode(data, size, &signature))
        return;
    bool differs = signature_differs(&signature, 0, &own, 1, text, sizeof text);
    assert(differs == (*text != '\0'));
    signature_encode(&signature, body);
    assert(signature_decode(body, sizeof body, &again));
    if (again.form == CALL_UNEVEN) { /* what one has for the other, that gets of it */
        again.count = signature.returned;
        again.returned = signature.count;
    }
    assert(!signature_differs(&signature, 0, &again, 1, text, sizeof text));
}

static void read_notice(const uint8_t *data, size_t size)
{
    struct notice notice, again;
    uint8_t body[NOTICE_BYTES_MAX];
    if (!notice_decode(data, size, &notice))
        return;
    assert(notice.error < 0 && lh_error_known(-notice.error));
    assert(notice_decode(body, notice_encode(&notice, body), &again));
    assert(again.error == notice.error && again.rank == notice.rank && !strcmp(again.text, notice.text));
}

/* The first byte: the rank, and whether an agreement is under way. */
static void read_report(const uint8_t *data, size_t size)
{
    const struct members members = {.size = RANKS};
    struct agreement agreement = {0};
    uint32_t failed = 0;
    if (size < 1 || agreement_init(&agreement, &members) != 0)
        return;
    agreement.active = data[0] & 0x80;
    agreement.round = 1;
    bool taken = agreement_on_report(&agreement, 1 + data[0] % (RANKS - 1), data + 1, size - 1);
    assert(!taken || agreement.next_group <= 1u << TAG_GROUP_BITS);
    while (agreement_next_failed(&agreement, &failed))
        assert(failed > 0 && failed++ < RANKS);
    agreement_free(&agreement);
}

/* A tag, and a body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tag tag;
    if (size < 8 || !tag_decode(lh_get_be64(data), &tag))
        return 0;
    assert(tag_encode(&tag) == lh_get_be64(data));
    if (tag.kind == TAG_SIGNATURE)
        read_signature(data + 8, size - 8);
    else if (tag.kind == TAG_AGREE)
        read_report(data + 8, size - 8);
    else
        read_notice(data + 8, size - 8);
    return 0;
}
