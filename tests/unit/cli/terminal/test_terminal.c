/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void is(const char *text, size_t bytes)
{
    assert_int_equal(cli_utf8_bytes(text, strlen(text)), bytes);
}

static void characters(void **state)
{
    (void)state;
    is("a\xff", 1);
    is("\x7f", 1);
    is("\xc2\x80", 2);
    is("µ", 2);
    is("\xe0\xa0\x80", 3);
    is("…x", 3);
    is("\xed\x9f\xbf", 3);
    is("\xf0\x90\x80\x80", 4);
    is("\xf4\x8f\xbf\xbf", 4);
}

static void what_is_none(void **state)
{
    (void)state;
    is("", 0);
    is("\x80", 0);
    is("\xff", 0);
    is("\xc2", 0);         /* cut off */
    is("\xc2z", 0);        /* not continued */
    is("\xe2\x80", 0);     /* cut off */
    is("\xc1\xbf", 0);     /* too long for what it is */
    is("\xe0\x9f\xbf", 0); /* the same */
    is("\xf0\x8f\xbf\xbf", 0);
    is("\xed\xa0\x80", 0); /* a surrogate */
    is("\xf4\x90\x80\x80", 0);
    is("\xf8\x88\x80\x80\x80", 0);
}

/* What follows the bytes that there are is not looked at. */
static void the_end(void **state)
{
    (void)state;
    assert_int_equal(cli_utf8_bytes("µ", 1), 0);
    assert_int_equal(cli_utf8_bytes("a", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test(the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
