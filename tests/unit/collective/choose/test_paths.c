/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collective/schedule/schedule_table.h"
#include "support/near.h"

/* One block from one rank to another. */
static double broadcast_s(const struct path_figures *path, double bytes, uint32_t blocks)
{
    const struct schedule *schedule = schedule_find(COLLECTIVE_BROADCAST, "binomial-tree");
    const struct schedule_shape shape = {.ranks = 2, .blocks = blocks};
    const struct flow_network network = paths_network(path, path, 1e6);
    void *memory = malloc(flow_time_memory(&shape));
    double seconds = flow_time(schedule, &shape, bytes, &network, NULL, memory);
    free(memory);
    return seconds;
}

static void test_path(void **state)
{
    (void)state;
    struct path_figures path = {.rtt_ns = 10000000, .rate_bps = 1000000000, .packet_bytes = 1000};
    assert_near(broadcast_s(&path, 1e6, 1), 5e-3 + PATHS_MESSAGE_S + 8e-3, 1e-3);
    path.loss = 1000000; /* 1e-3: of a thousand packets one, so a round trip */
    assert_near(broadcast_s(&path, 1e6, 1), 15e-3 + PATHS_MESSAGE_S + 8e-3, 1e-3);
    path.loss *= 100; /* but no more than one */
    assert_near(broadcast_s(&path, 1e6, 1), 15e-3 + PATHS_MESSAGE_S + 8e-3, 1e-3);
    path.rate_bps = 0;
    path.loss = 0;
    assert_near(broadcast_s(&path, 1e6, 1), 5e-3 + PATHS_MESSAGE_S + 8e6 / PATHS_RATE_BPS, 1e-3);
}

/* Small blocks of a transfer share a message. */
static void test_messages(void **state)
{
    const struct path_figures path = {.rtt_ns = 0};
    (void)state;
    double one = broadcast_s(&path, 16, 1), many = broadcast_s(&path, 16, 16);
    assert_near(one, many, 1e-3);
    assert_true(broadcast_s(&path, 16, 17) > one + PATHS_MESSAGE_S / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_path), cmocka_unit_test(test_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
