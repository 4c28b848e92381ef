/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/coding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHUNKS 20u /* 5 groups of 4: chunk c is of group c % 5 */
#define BYTES  64u

static void params_of(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    assert_int_equal(bounded_parse(text, params), 0);
}

static void test_without_a_code(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS], recovered[CHUNKS], chunks[CHUNKS] = {0};
    params_of("deadline=1s", params);
    assert_int_equal(bounded_coding.transfer_chunks_max(params, 1), 1);
    assert_int_equal(bounded_coding.transfer_chunks_max(params, 1000), 1000);
    assert_int_equal(bounded_coding.extra_chunks(params, 1000), 0);
    assert_int_equal(bounded_coding.groups(params, 1000), 0);
    memset(recovered, 1, sizeof recovered);
    assert_int_equal(bounded_coding.recoverable(params, CHUNKS, chunks, NULL, recovered), 0);
    assert_memory_equal(recovered, chunks, sizeof chunks);
    struct bounded_params read = bounded_params_of(params);
    struct ec_layout layout = bounded_layout_of(&read, CHUNKS);
    assert_int_equal(bounded_layout_end(&layout), CHUNKS);
}

/* Group 0 lacks three of its chunks, group 1 two: it has two of parity. */
static void test_recovers_what_it_can(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS], chunks[CHUNKS], recovered[CHUNKS], message[CHUNKS * BYTES],
        wanted[CHUNKS * BYTES];
    uint8_t extra[256 * BYTES], extra_bitmap[256] = {0};
    params_of("deadline=1s,code=mds,k=4,m=2", params);
    uint32_t extras = bounded_coding.extra_chunks(params, CHUNKS);
    assert_in_range(extras, 10, 256);
    for (size_t i = 0; i < sizeof message; i++)
        wanted[i] = message[i] = (uint8_t)(i * 31 + i / 7);
    struct lh_coding coding = {.chunks = CHUNKS,
                               .chunk_bytes = BYTES,
                               .bytes = sizeof message,
                               .message = message,
                               .room = message,
                               .extra = extra};
    memcpy(coding.params, params, sizeof params);
    for (uint32_t g = 0; g < bounded_coding.groups(params, CHUNKS); g++)
        bounded_coding.encode(&coding, g, 0, 2);
    memset(chunks, 1, sizeof chunks);
    memset(extra_bitmap, 1, 10);
    static const uint8_t lost[] = {0, 5, 15, 1, 16};
    for (size_t i = 0; i < sizeof lost; i++) {
        chunks[lost[i]] = 0;
        memset(message + lost[i] * BYTES, 0xee, BYTES);
    }
    assert_int_equal(bounded_coding.recoverable(params, CHUNKS, chunks, extra_bitmap, recovered), 2);
    for (uint32_t c = 0; c < CHUNKS; c++)
        assert_int_equal(recovered[c], c == 1 || c == 16);
    uint32_t count = 0;
    for (uint32_t g = 0; g < 5; g++)
        count += bounded_coding.decode(&coding, g, chunks, extra_bitmap);
    assert_int_equal(count, 2);
    for (uint32_t c = 0; c < CHUNKS; c++) {
        bool missing = c == 0 || c == 5 || c == 15;
        assert_int_equal(memcmp(message + c * BYTES, wanted + c * BYTES, BYTES) == 0, !missing);
        assert_true(!missing || message[c * BYTES] == 0xee);
    }
    struct bounded_params read = bounded_params_of(params);
    struct ec_layout layout = bounded_layout_of(&read, CHUNKS);
    assert_int_equal(bounded_layout_end(&layout), CHUNKS + 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_code),
        cmocka_unit_test(test_recovers_what_it_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
