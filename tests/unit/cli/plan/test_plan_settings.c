/*
 * test_plan_settings.c - links out of JSON files: what is taken, passed over, and refused with which words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"
#define take take_member
#include "cli/plan/plan_parts.h"

#include <string.h>
#include <stdio.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct cli_link_file parse(const char *text)
{
    struct cli_link_file link = {0};
    char wrong[CLI_LINK_FILE_WRONG_MAX] = "";
    if (cli_link_file_parse(text, strlen(text), &link, wrong))
        fail_msg("%s: %s", text, wrong);
    return link;
}

static void refuse_text(const char *text, size_t bytes, const char *words)
{
    struct cli_link_file link = {.loss = -7};
    char wrong[CLI_LINK_FILE_WRONG_MAX] = "";
    if (!cli_link_file_parse(text, bytes, &link, wrong))
        fail_msg("taken, but wrong: %s", text);
    if (!strstr(wrong, words))
        fail_msg("%s: \"%s\" has no \"%s\"", text, wrong, words);
    assert_true(link.loss == -7);
}

static void a_whole_link(void **state)
{
    (void)state;
    struct cli_link_file link =
        parse(" {\"bandwidth_bps\":4e11,\r\n\t\"rtt_s\" : 0.025 ,\"loss\":1E-5,\"burst_packets\":3.5}\n");
    assert_true(link.bandwidth_bps == 4e11 && link.rtt_s == 0.025);
    assert_true(link.loss == 1e-5 && link.burst_packets == 3.5 && isnan(link.loss_high));
    link = parse("{\"loss_high\": 2e-5, \"loss\": 1e-5}");
    assert_true(link.loss == 1e-5 && link.loss_high == 2e-5);
}

static void the_mtu_of_a_probe(void **state)
{
    (void)state;
    for (int mtu = 256; mtu <= 8896; mtu += 64) {
        char text[64];
        snprintf(text, sizeof text, "{\"mtu_bytes\": %d, \"path_mtu_bytes\": 1500}", mtu);
        assert_true(parse(text).mtu_bytes == mtu);
    }
    assert_true(isnan(parse("{\"mtu_bytes\": 0}").mtu_bytes)); /* the path takes none */
    assert_true(isnan(parse("{\"mtu_bytes\": null}").mtu_bytes));
    static const char *const wrong[] = {"{\"mtu_bytes\": 128}", "{\"mtu_bytes\": 1000}",
                                        "{\"mtu_bytes\": 8960}", "{\"mtu_bytes\": 1024.5}",
                                        "{\"mtu_bytes\": -1024}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuse_text(wrong[i], strlen(wrong[i]), "256 to 8896");
}

static void what_is_not_there(void **state)
{
    (void)state;
    struct cli_link_file link = parse("{}");
    assert_true(isnan(link.bandwidth_bps) && isnan(link.rtt_s));
    assert_true(isnan(link.loss) && isnan(link.burst_packets));
    link = parse("{\"loss\": null, \"rtt_s\": 1e-3, \"Loss\": 5, \"los\": 6, \"losses\": 7}");
    assert_true(isnan(link.loss) && link.rtt_s == 1e-3);
}

static void other_members_are_passed_over(void **state)
{
    (void)state;
    struct cli_link_file link = parse("{\"a\": [], \"b\": {}, \"c\": [1, -2.5e+3, 0, \"\\\"\\u00fF\\n é\"],"
                                      "\"d\": {\"loss\": 0.5, \"e\": [[true, false, null]]}, \"loss\": 0}");
    assert_true(link.loss == 0);
}

static void how_deep(void **state)
{
    (void)state;
    char text[2 * CLI_JSON_DEPTH_MAX + 16] = "{\"a\":";
    size_t used = strlen(text);
    memset(text + used, '[', CLI_JSON_DEPTH_MAX - 1);
    memset(text + used + CLI_JSON_DEPTH_MAX - 1, ']', CLI_JSON_DEPTH_MAX - 1);
    used += 2 * (CLI_JSON_DEPTH_MAX - 1);
    memcpy(text + used, "}", 2);
    parse(text);
    snprintf(text, sizeof text, "{\"a\":");
    used = strlen(text);
    memset(text + used, '[', CLI_JSON_DEPTH_MAX);
    memset(text + used + CLI_JSON_DEPTH_MAX, ']', CLI_JSON_DEPTH_MAX);
    used += (size_t)2 * CLI_JSON_DEPTH_MAX;
    memcpy(text + used, "}", 2);
    refuse_text(text, strlen(text), "invalid JSON at byte 22");
}

static void what_is_refused(void **state)
{
    (void)state;
    static const char *const not_json[] = {
        "",
        "{",
        "}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":5.}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":nan}",
        "{\"a\":1e999}",
        "{\"a\":Infinity}",
        "{\"a\":0x10}",
        "{} {}",
        "{\"a\":1 2}",
        "[1,]",
        "[1",
        "\"a",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\xff\"",
        "tru",
        "nulll",
        "{\"a\":[}",
    };
    for (size_t i = 0; i < sizeof not_json / sizeof not_json[0]; i++)
        refuse_text(not_json[i], strlen(not_json[i]), "invalid JSON");
    refuse_text("{}\0", 3, "invalid JSON at byte 3");
    refuse_text("[]", 2, "not an object");
    refuse_text("7", 1, "not an object");
    static const char *const wrong[][2] = {
        {"{\"loss\": 1}", "loss 1: out of range"},
        {"{\"loss\": -0.1}", "loss -0.1"},
        {"{\"loss\": \"0.1\"}", "loss: invalid number"},
        {"{\"loss\": [0.1]}", "loss: invalid number"},
        {"{\"loss\": 0.1, \"loss\": 0.2}", "loss: given twice"},
        {"{\"loss_high\": 1}", "loss_high 1: out of range"},
        {"{\"loss\": 0.2, \"loss_high\": 0.1}", "loss_high 0.1: below loss 0.2"},
        {"{\"rtt_s\": 0}", "rtt_s 0"},
        {"{\"rtt_s\": 1e6}", "rtt_s 1e+06"},
        {"{\"bandwidth_bps\": -4e9}", "bandwidth_bps -4e+09"},
        {"{\"bandwidth_bps\": 1e18}", "bandwidth_bps 1e+18"},
        {"{\"burst_packets\": -1}", "burst_packets -1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuse_text(wrong[i][0], strlen(wrong[i][0]), wrong[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_link),      cmocka_unit_test(the_mtu_of_a_probe),
        cmocka_unit_test(what_is_not_there), cmocka_unit_test(other_members_are_passed_over),
        cmocka_unit_test(how_deep),          cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
