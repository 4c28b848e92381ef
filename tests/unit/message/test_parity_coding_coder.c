/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/parity_coding.h"

#include <stdatomic.h>

#include "unit/message/fake_scheme.h"
#include "unit/message/fake_sdr.h"

#define CHUNK 64u

static uint8_t data[4 * CHUNK];
static uint8_t extra[4 * CHUNK];
static const uint8_t lost_second[4] = {1, 0, 1, 1};
static const struct lh_coding coding = {
    .chunks = 4, .chunk_bytes = CHUNK, .bytes = sizeof data, .message = data, .room = data, .extra = extra};
static struct coder_threads coder_threads;
static int owner; /* its address is its name */
static int other;

static struct coder *begin(uint32_t threads)
{
    fake_sdr_reset();
    fake_scheme_reset();
    memset(data, 0, sizeof data);
    coder_threads_init(&coder_threads, threads);
    struct coder *coder = coder_create(&coder_threads, sdr_context_store(&context));
    coder_bind(coder, &context, &qp);
    return coder;
}

static void end(struct coder *coder)
{
    coder_destroy(coder);
    coder_threads_end(&coder_threads);
}

static struct coder_job encode_job(uint32_t number)
{
    return (struct coder_job){
        .owner = &owner, .ops = &fake_coding, .coding = &coding, .rows = 1, .number = number};
}

static struct coder_job decode_job(void)
{
    return (struct coder_job){
        .owner = &other, .ops = &fake_coding, .coding = &coding, .groups = 4, .chunks = lost_second};
}

static void test_at_once_without_threads(void **state)
{
    (void)state;
    struct coder *coder = begin(LH_NO_CODERS);
    struct coder_result result;
    struct coder_job job = encode_job(3);
    assert_true(coder_submit(coder, &job, &result));
    assert_true(result.owner == &owner && !result.decoded && result.number == 3);
    assert_int_equal(extra[0], 0xEE);
    job = decode_job();
    assert_true(coder_submit(coder, &job, &result));
    assert_true(result.owner == &other && result.decoded && result.recovered == 1);
    assert_int_equal(data[CHUNK], 0xDD);
    assert_false(coder_has_results(coder) || coder_collect(coder, &result));
    end(coder);
}

static void test_results_of_threads_are_collected(void **state)
{
    (void)state;
    struct coder *coder = begin(2);
    struct coder_result result;
    static uint8_t parity[8][CHUNK]; /* each job writes to its own */
    struct lh_coding codings[8];
    uint32_t numbers = 0;
    for (uint32_t i = 0; i < 8; i++) {
        struct coder_job job = encode_job(i);
        codings[i] = coding;
        codings[i].extra = parity[i];
        job.coding = &codings[i];
        assert_false(coder_submit(coder, &job, &result));
    }
    for (uint32_t left = 8; left > 0;) /* each job ends */
        if (coder_collect(coder, &result)) {
            numbers |= 1u << result.number;
            left--;
        }
    assert_int_equal(numbers, 0xFF);
    assert_false(coder_has_results(coder));
    end(coder);
    assert_int_equal(qp.kicks, 8);
}

/* Jobs begin when the gate opens, so that they wait meanwhile. */
static atomic_bool gate;

static void wait_for_gate(const struct lh_coding *own, uint32_t group, uint32_t first, uint32_t rows)
{
    (void)own, (void)group, (void)first, (void)rows;
    while (!atomic_load(&gate))
        ;
}

static const struct lh_scheme_coding gated = {.encode = wait_for_gate};

static void test_a_job_too_many_is_done_at_once(void **state)
{
    (void)state;
    struct coder *coder = begin(1);
    struct coder_result result;
    atomic_store(&gate, false);
    for (uint32_t i = 0; i < CODER_JOBS_MAX; i++) {
        struct coder_job job = encode_job(i);
        job.ops = i == 0 ? &gated : &fake_coding;
        assert_false(coder_submit(coder, &job, &result));
    }
    struct coder_job job = encode_job(CODER_JOBS_MAX);
    assert_true(coder_submit(coder, &job, &result));
    assert_int_equal(result.number, CODER_JOBS_MAX);
    atomic_store(&gate, true);
    coder_drop(coder, &owner);
    assert_false(coder_has_results(coder));
    end(coder);
}

/* Nothing is computed for an owner that was dropped; the others' results stay. */
static void test_drop(void **state)
{
    (void)state;
    struct coder *coder = begin(1);
    struct coder_result result;
    atomic_store(&gate, false);
    struct coder_job job = encode_job(0);
    job.ops = &gated;
    job.owner = &other;
    assert_false(coder_submit(coder, &job, &result));
    job = encode_job(1);
    assert_false(coder_submit(coder, &job, &result));
    coder_drop(coder, &owner);
    atomic_store(&gate, true);
    while (!coder_collect(coder, &result))
        ;
    assert_ptr_equal(result.owner, &other);
    end(coder);
    assert_int_equal(fake.encodes, 0);
}

static atomic_bool started;

static void start_and_wait(const struct lh_coding *own, uint32_t group, uint32_t first, uint32_t rows)
{
    atomic_store(&started, true);
    wait_for_gate(own, group, first, rows);
}

/* What runs already cannot be taken back: its end is waited for, and its result is nobody's. */
static void test_drop_what_runs(void **state)
{
    (void)state;
    static const struct lh_scheme_coding running = {.encode = start_and_wait};
    struct coder *coder = begin(1);
    struct coder_result result;
    atomic_store(&gate, false);
    atomic_store(&started, false);
    struct coder_job job = encode_job(0);
    job.ops = &running;
    assert_false(coder_submit(coder, &job, &result));
    while (!atomic_load(&started))
        ;
    atomic_store(&gate, true);
    coder_drop(coder, &owner);
    assert_false(coder_has_results(coder));
    assert_false(coder_collect(coder, &result));
    end(coder);
}

/* Only decoding is finished: what is encoded for the sender goes on. */
static void test_finish_decoding(void **state)
{
    (void)state;
    struct coder *coder = begin(1);
    struct coder_result result;
    atomic_store(&gate, false);
    struct coder_job job = encode_job(0);
    job.ops = &gated;
    assert_false(coder_submit(coder, &job, &result));
    job = decode_job();
    assert_false(coder_submit(coder, &job, &result));
    assert_true(coder_finish_decoding(coder, &result)); /* here: the thread is busy */
    assert_true(result.owner == &other && result.recovered == 1);
    assert_false(coder_finish_decoding(coder, &result));
    atomic_store(&gate, true);
    coder_drop(coder, &owner);
    end(coder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_once_without_threads),
        cmocka_unit_test(test_results_of_threads_are_collected),
        cmocka_unit_test(test_a_job_too_many_is_done_at_once),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_drop_what_runs),
        cmocka_unit_test(test_finish_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
