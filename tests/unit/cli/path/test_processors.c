/*
 * test_processors.c - the path has one processor, and what runs at its ends none of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/path/processors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void one_processor_is_not_divided(void **state)
{
    (void)state;
    cpu_set_t all, path, ends;
    CPU_ZERO(&all);
    assert_false(path_processors_divide(&all, &path, &ends));
    CPU_SET(CPU_SETSIZE - 1, &all);
    assert_false(path_processors_divide(&all, &path, &ends));
    assert_int_equal(CPU_COUNT(&path), 0);
    assert_int_equal(CPU_COUNT(&ends), 0);
}

static void the_first_is_the_paths(void **state)
{
    (void)state;
    cpu_set_t all, path, ends;
    CPU_ZERO(&all);
    CPU_SET(3, &all);
    CPU_SET(5, &all);
    CPU_SET(CPU_SETSIZE - 1, &all);
    assert_true(path_processors_divide(&all, &path, &ends));
    assert_int_equal(CPU_COUNT(&path), 1);
    assert_true(CPU_ISSET(3, &path));
    assert_int_equal(CPU_COUNT(&ends), 2);
    assert_true(CPU_ISSET(5, &ends) && CPU_ISSET(CPU_SETSIZE - 1, &ends));
}

/* In a child: this process goes on as before. */
static void the_process_moves_to_its_own(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t before, ends, now, both;
        bool right = sched_getaffinity(0, sizeof before, &before) == 0;
        bool divided = path_processors_take(&ends);
        right = right && sched_getaffinity(0, sizeof now, &now) == 0;
        CPU_AND(&both, &now, &ends);
        if (divided)
            right = right && CPU_COUNT(&now) == 1 && CPU_COUNT(&both) == 0 &&
                    CPU_COUNT(&ends) == CPU_COUNT(&before) - 1;
        else
            right = right && CPU_EQUAL(&now, &before) && CPU_COUNT(&ends) == 0;
        _exit(!right);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_processor_is_not_divided),
        cmocka_unit_test(the_first_is_the_paths),
        cmocka_unit_test(the_process_moves_to_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
