/*
 * test_probe_client.c - which measured rates a probe leaves to connections, and under which addresses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/probe_measure.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "history/path_file.h"
#include "support/paths_folder.h"

static struct lh_probe_result result;
static struct probe_session session;

/* A probe from 127.0.0.1 to 127.0.0.2, of which the rate was measured with that limit. */
static void measured(enum lh_probe_limit limit)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    result = (struct lh_probe_result){
        .mtu_bytes = 1024, .rate_bps = 1088e6, .rate_limit = limit, .rtt_min_ns = 25 * LH_NS_PER_MS};
    session = (struct probe_session){.result = &result, .attr.path_file = paths_file};
    inet_pton(AF_INET, "127.0.0.1", &from.sin_addr);
    inet_pton(AF_INET, "127.0.0.2", &to.sin_addr);
    session.port.fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(session.port.fds[0], (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(session.port.fds[0], (struct sockaddr *)&to, sizeof to), 0);
}

static bool remembered(struct path_record *record)
{
    lh_time age_ns;
    probe_remember(&session);
    close(session.port.fds[0]);
    return path_file_read(paths_file, "127.0.0.2", "127.0.0.1", record, &age_ns);
}

static void a_rate_of_the_path_is_remembered_as_payload(void **state)
{
    (void)state;
    static const enum lh_probe_limit limits[] = {LH_PROBE_LIMIT_PATH, LH_PROBE_LIMIT_SENDER,
                                                 LH_PROBE_LIMIT_RECEIVER};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct path_record record;
        remove(paths_file);
        measured(limits[i]);
        assert_true(remembered(&record));
        assert_true(record.rate_bps == 1024000000); /* 64 bytes of headers: IPv4 20, and 44 */
        assert_true(record.rtt_ns == 25 * LH_NS_PER_MS);
    }
}

static void a_rate_that_was_limited_by_the_order_is_not(void **state)
{
    (void)state;
    struct path_record record;
    measured(LH_PROBE_LIMIT_ASKED);
    assert_false(remembered(&record));
    measured(LH_PROBE_LIMIT_TIME);
    assert_false(remembered(&record));
    measured(LH_PROBE_LIMIT_PATH);
    result.mtu_bytes = 0; /* no connection will be possible */
    assert_false(remembered(&record));
    measured(LH_PROBE_LIMIT_PATH);
    session.attr.path_file = NULL;
    assert_false(remembered(&record));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PATHS_FOLDER(a_rate_of_the_path_is_remembered_as_payload),
        WITH_PATHS_FOLDER(a_rate_that_was_limited_by_the_order_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
