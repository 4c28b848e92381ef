/*
 * flow_effects.h - for tests of single parts of flow control, in the world of long_link.h: no loop runs, the
 * test takes the effects itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_FLOW_EFFECTS_H
#define SUPPORT_FLOW_EFFECTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/long_link.h"

#define DATA 3u /* priority */

/* Opens the world with that way on its long link, and returns the link. */
static inline uint32_t open_way(const struct netsim_config *config)
{
    open_flows(config, 1000000, HOSTS);
    return (uint32_t)(long_link() - world.net.network.ports);
}

/* Takes the first of `count` effects, and asserts its kind. Timers are set, and stay. */
static inline struct netsim_effect take_effect(uint32_t count, enum netsim_effect_kind kind)
{
    struct netsim_effects *effects = &world.net.control.effects;
    assert_int_equal(effects->count, count);
    struct netsim_effect effect = effects->list[0];
    assert_int_equal(effect.kind, kind);
    effects->count--;
    for (uint32_t i = 0; i < effects->count; i++)
        effects->list[i] = effects->list[i + 1];
    if (kind == NETSIM_EFFECT_TIMER)
        netsim_event_schedule(&world.net.network.events, effect.number, effect.value);
    return effect;
}

static inline void assert_signal(uint32_t count, uint32_t link, enum lh_netsim_kind signal, uint64_t value)
{
    struct netsim_effect effect = take_effect(count, NETSIM_EFFECT_SIGNAL);
    assert_int_equal(effect.number, link);
    assert_int_equal(effect.signal, signal);
    assert_true(effect.value == value);
}

static inline void assert_no_effect(void)
{
    assert_int_equal(world.net.control.effects.count, 0);
}

static inline bool is_paused(uint32_t port)
{
    return (world.net.network.ports[port].paused >> DATA & 1) != 0;
}

/* A pause, resume or credit as it arrives. */
static inline struct netsim_packet signal_of(enum lh_netsim_kind kind, uint64_t value)
{
    return (struct netsim_packet){
        .cookie = value, .wire_bytes = LH_PFC_FRAME_BYTES, .kind = (uint8_t)kind, .priority = DATA};
}

static inline struct netsim_packet data_packet(void)
{
    return (struct netsim_packet){.wire_bytes = FRAME, .kind = LH_NETSIM_DATA, .priority = DATA};
}

#endif
