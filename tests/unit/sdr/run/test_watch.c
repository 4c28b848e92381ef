/*
 * test_watch.c - what is readable is reported to who waits for it; descriptors that several have in
 * common, and those of layers above.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/run/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "sdr/run/run_queue.h"

#define ENTRIES 3u

static struct watch watch;
static struct run_entry entries[ENTRIES];
static struct watch_fds registered[ENTRIES];
static int fds[3];

static int begin(void **state)
{
    (void)state;
    watch_init(&watch);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        fds[i] = eventfd(0, EFD_NONBLOCK);
        registered[i] = (struct watch_fds){0};
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    watch_close(&watch);
    for (uint32_t i = 0; i < ENTRIES; i++)
        close(fds[i]);
    return 0;
}

static void wait_for(uint32_t entry, const int *wanted, uint32_t count)
{
    assert_int_equal(watch_set(&watch, &entries[entry], &registered[entry], wanted, count), 0);
}

static void write_to(int fd)
{
    const uint64_t one = 1;
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
}

static void drain(int fd)
{
    uint64_t drained;
    assert_int_equal(read(fd, &drained, sizeof drained), sizeof drained);
}

static void expect_ready(const struct run_entry *entry)
{
    struct watch_report report;
    watch_look(&watch, &report);
    assert_int_equal(report.other_count, 0);
    assert_int_equal(report.count, entry != NULL);
    if (entry)
        assert_ptr_equal(report.ready[0], entry);
}

static void test_each_has_its_own(void **state)
{
    (void)state;
    expect_ready(NULL);
    wait_for(0, &fds[0], 1);
    wait_for(1, &fds[1], 2);
    expect_ready(NULL);
    write_to(fds[2]);
    expect_ready(&entries[1]);
    drain(fds[2]);
    write_to(fds[0]);
    expect_ready(&entries[0]);
    wait_for(0, NULL, 0);
    expect_ready(NULL);
    assert_int_equal(watch.removed_count, 0); /* nobody else waits for it */
}

/* Who is left is to register again what others had in common with it. */
static void test_in_common(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ENTRIES; i++)
        wait_for(i, fds, 2);
    wait_for(0, fds, 2); /* again: as before */
    for (uint32_t i = 0; i < ENTRIES; i++) {
        wait_for(i, &fds[1], 1);
        assert_int_equal(watch.removed_count, i < ENTRIES - 1);
        if (watch.removed_count)
            assert_int_equal(watch.removed[--watch.removed_count], fds[0]);
    }
    for (uint32_t i = 0; i < ENTRIES; i++) {
        wait_for(i, NULL, 0);
        assert_int_equal(watch.removed_count, i < ENTRIES - 1);
        watch.removed_count = 0;
    }
}

static uint32_t calls;

static bool on_ready(void *context)
{
    assert_ptr_equal(context, &calls);
    calls++;
    return true;
}

static uint32_t others_ready(void)
{
    struct watch_report report;
    watch_look(&watch, &report);
    for (uint32_t i = 0; i < report.other_count; i++)
        report.others[i]->on_ready(report.others[i]->context);
    return report.other_count;
}

static void test_those_of_layers_above(void **state)
{
    (void)state;
    struct watch_other other = {.fd = fds[1], .on_ready = on_ready, .context = &calls};
    wait_for(0, &fds[0], 1);
    watch_remove_other(&watch, &other); /* not watched: nothing */
    assert_int_equal(watch_add_other(&watch, &other), 0);
    assert_int_equal(watch.others, 1);
    assert_int_equal(others_ready(), 0);
    watch_writable(&watch, &other, true); /* an eventfd is */
    assert_int_equal(others_ready(), 1);
    watch_writable(&watch, &other, false);
    assert_int_equal(others_ready(), 0);
    write_to(fds[1]);
    assert_int_equal(others_ready(), 1);
    assert_int_equal(calls, 2);
    watch_remove_other(&watch, &other);
    assert_int_equal(watch.others, 0);
    assert_int_equal(others_ready(), 0);
    write_to(fds[0]);
    expect_ready(&entries[0]);
    wait_for(0, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_has_its_own, begin, end),
        cmocka_unit_test_setup_teardown(test_in_common, begin, end),
        cmocka_unit_test_setup_teardown(test_those_of_layers_above, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
