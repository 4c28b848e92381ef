/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/credit_link.h"

#include "support/flow_effects.h"

static struct netsim_credits *credits_of(uint32_t link)
{
    return &world.net.control.credits[link];
}

/* Sends full packets until there is no credit for another; returns their number. */
static uint32_t use_up(uint32_t link)
{
    const struct netsim_packet packet = data_packet();
    uint32_t sent = 0;
    for (; !is_paused(link); sent++)
        netsim_credits_on_sent(&world.net.control, link, &packet);
    return sent;
}

static void credits_are_used_up_and_a_limit_brings_more(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    uint32_t link = open_way(&config);
    uint64_t blocks = lh_cbfc_limit(&credits_of(link)->receiver);
    assert_int_equal(use_up(link), blocks / lh_cbfc_blocks(FRAME));
    assert_no_effect();
    netsim_credits_on_limit(&world.net.control, link, blocks); /* as before */
    assert_no_effect();
    assert_true(is_paused(link));
    netsim_credits_on_limit(&world.net.control, link, blocks + lh_cbfc_blocks(FRAME));
    assert_int_equal(take_effect(1, NETSIM_EFFECT_KICK).number, link);
    assert_int_equal(use_up(link), 1);
    netsim_world_close(&world);
}

static void a_packet_that_left_the_buffer_brings_its_credit_back(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    uint32_t link = open_way(&config);
    const struct netsim_packet packet = data_packet();
    uint64_t limit = lh_cbfc_limit(&credits_of(link)->receiver);
    netsim_credits_on_arrival(&world.net.control, link, &packet);
    assert_no_effect(); /* it occupies what it used */
    netsim_credits_on_departure(&world.net.control, link, &packet);
    assert_signal(1, link, LH_NETSIM_CREDIT, limit + lh_cbfc_blocks(FRAME));
    netsim_world_close(&world);
}

static void a_lost_packet_brings_its_credit_back(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    uint32_t link = open_way(&config);
    struct netsim_packet packet = data_packet();
    uint64_t limit = lh_cbfc_limit(&credits_of(link)->receiver);
    netsim_credits_on_lost(&world.net.control, link, &packet);
    assert_signal(1, link, LH_NETSIM_CREDIT, limit + lh_cbfc_blocks(FRAME));
    packet.flags = NETSIM_COPY;
    netsim_credits_on_lost(&world.net.control, link, &packet);
    packet = (struct netsim_packet){.wire_bytes = FRAME, .kind = LH_NETSIM_RAW};
    netsim_credits_on_lost(&world.net.control, link, &packet);
    assert_no_effect(); /* neither had any */
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credits_are_used_up_and_a_limit_brings_more),
        cmocka_unit_test(a_packet_that_left_the_buffer_brings_its_credit_back),
        cmocka_unit_test(a_lost_packet_brings_its_credit_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
