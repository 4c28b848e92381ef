/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/coding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/hybrid/params.h"

#define CHUNK  64u
#define CHUNKS 300u

/* Any of the rows stand for any of the data, as many as are missing. */
static void test_what_is_lost_is_recovered(void **state)
{
    (void)state;
    static uint8_t message[CHUNKS * CHUNK], received[CHUNKS * CHUNK], extra[CHUNKS * CHUNK];
    static uint8_t chunks[CHUNKS], rows[CHUNKS];
    struct lh_coding coding = {.chunks = CHUNKS, .chunk_bytes = CHUNK, .bytes = CHUNKS * CHUNK - 5};
    assert_int_equal(hybrid_parse("", coding.params), 0);
    uint32_t groups = hybrid_coding.groups(coding.params, CHUNKS);
    struct ec_layout layout = hybrid_layout_of(coding.params, CHUNKS);
    assert_int_equal(groups, layout.groups);
    assert_int_equal(hybrid_coding.extra_chunks(coding.params, CHUNKS), groups * layout.places);
    assert_int_equal(hybrid_coding.transfer_chunks_max(coding.params, 1024), 1024);
    for (size_t i = 0; i < coding.bytes; i++)
        message[i] = (uint8_t)(i * 37 >> 3);
    coding.message = message;
    coding.extra = extra;
    for (uint32_t g = 0; g < groups; g++)
        hybrid_coding.encode(&coding, g, 2, 3);
    memcpy(received, message, sizeof message);
    memset(chunks, 1, sizeof chunks);
    for (uint32_t lost = 0; lost < 3 * groups; lost++) {
        chunks[lost * 51] = 0;
        memset(received + (size_t)lost * 51 * CHUNK, 0, CHUNK);
    }
    for (uint32_t g = 0; g < groups; g++) {
        struct ec_group group = ec_layout_group(&layout, g);
        for (uint32_t r = 2; r < 5; r++)
            rows[group.first_place + r * group.stride] = 1;
    }
    coding.room = received;
    coding.message = received;
    uint32_t recovered = 0;
    for (uint32_t g = 0; g < groups; g++)
        recovered += hybrid_coding.decode(&coding, g, chunks, rows);
    assert_int_equal(recovered, 3 * groups);
    assert_memory_equal(received, message, coding.bytes);
}

static void test_a_single_chunk_has_no_parity(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(hybrid_parse("", params), 0);
    assert_int_equal(hybrid_coding.extra_chunks(params, 1), 0);
    assert_int_equal(hybrid_layout_of(params, 1).places, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_lost_is_recovered),
        cmocka_unit_test(test_a_single_chunk_has_no_parity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
