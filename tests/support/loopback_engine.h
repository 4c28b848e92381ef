/*
 * loopback_engine.h - an engine over UDP on the loopback interface, for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_LOOPBACK_ENGINE_H
#define LH_TESTS_SUPPORT_LOOPBACK_ENGINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <longhaul/engine.h>
#include <longhaul/error.h>

/* A failure to create it ends the test. */
static inline struct lh_engine *loopback_engine(uint32_t channels, uint32_t workers)
{
    struct lh_engine_attr attr;
    struct lh_engine *engine;
    lh_engine_attr_init(&attr);
    attr.device = "udp:127.0.0.1";
    attr.channels = channels;
    attr.workers = workers;
    int error = lh_engine_create(&attr, &engine);
    if (error)
        fail_msg("lh_engine_create: %d, %s", error, lh_last_error());
    return engine;
}

#endif
