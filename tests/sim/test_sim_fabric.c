/*
 * The simulated fabric by itself: two endpoints, every kind of harm.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/prng.h"
#include "longhaul/error.h"
#include "support/sim_pair.h"
#include "wire/roce_packet.h"

static void open_pair(struct sim_pair *pair, const char *link, uint64_t seed)
{
    struct sim_pair_options options = {.world = "fabric", .seed = seed};
    assert_int_equal(lh_link_parse(link, &options.link), 0);
    print_message("link %s, seed %llu\n", link, (unsigned long long)seed);
    pair_open(pair, &options);
}

static const struct lh_stats *stats_of(const struct sim_pair *pair, uint32_t end)
{
    return &pair->ends[end].stats;
}

static void a_message_arrives_byte_for_byte(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "delay=5ms,rate=10Gbit", 1);
    pair_post_all(&pair, 0, 0, pair.packets);
    pair_settle(&pair, 1);
    assert_int_equal(pair_received(&pair, 1), pair.packets);
    assert_true(pair_exact(&pair, 1));
    assert_int_equal(lh_stats_bad_packets(stats_of(&pair, 1)), 0);
    /* 256 packets of 1024 + 84 bytes at 10 Gbit/s, then 5 ms. */
    assert_int_equal(sim_world_now(pair.world), 256 * (1024 + 84) * 8 / 10 + 5000000);
    pair_close(&pair);
}

static void short_and_empty_packets_arrive(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "none", 1);
    for (uint32_t bytes = 0; bytes < 9; bytes++) {
        struct fabric_write write = pair_write(&pair, 0, 0);
        write.bytes = bytes;
        struct fabric_arrival arrival;
        const struct fabric_ops *ops = pair.ends[0].fabric->ops;
        assert_int_equal(ops->post_writes(pair.ends[0].endpoint, 0, &write, 1), 1);
        sim_world_advance(pair.world, sim_world_now(pair.world));
        assert_int_equal(ops->poll(pair.ends[1].endpoint, 0, &arrival, 1), 1);
        assert_int_equal(arrival.bytes, bytes);
        assert_memory_equal(pair.ends[1].buffer, pair.message, bytes);
    }
    pair_close(&pair);
}

static void a_packet_arrives_at_its_nanosecond_and_no_sooner(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "delay=1ms", 1);
    assert_true(pair_post(&pair, 0, 0));
    assert_int_equal(sim_world_next_event(pair.world), 1000000);
    sim_world_advance(pair.world, 999999);
    assert_int_equal(pair_poll(&pair, 1), 0);
    sim_world_advance(pair.world, 1000000);
    assert_int_equal(pair_poll(&pair, 1), 1);
    assert_int_equal(sim_world_next_event(pair.world), LH_TIME_NEVER);
    pair_close(&pair);
}

static void a_full_link_pushes_back_and_says_until_when(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "rate=1Gbit,queue=4KiB", 1);
    const struct fabric_ops *ops = pair.ends[0].fabric->ops;
    struct fabric_endpoint *endpoint = pair.ends[0].endpoint;
    uint32_t taken = 0;
    while (pair_post(&pair, 0, taken))
        taken++;
    /* 1108 bytes each on the wire: taken while 4096 or fewer are ahead. */
    assert_int_equal(taken, 4);
    assert_int_equal(stats_of(&pair, 0)->tx_backpressure, 1);
    lh_time ready_ns = ops->pump(endpoint, pair_channel_of(&pair, taken), 0);
    assert_int_equal(ready_ns, (4 * 1108 - 4096) * 8);
    sim_world_advance(pair.world, ready_ns - 1);
    assert_false(pair_post(&pair, 0, taken));
    sim_world_advance(pair.world, ready_ns);
    assert_true(pair_post(&pair, 0, taken));
    assert_int_equal(ops->pump(endpoint, pair_channel_of(&pair, taken), ready_ns), LH_TIME_NEVER);
    pair_close(&pair);
}

/* What arrives now is given back when time has gone on and it was read; until then nothing is due. */
static void an_empty_pool_is_not_asked_again_at_this_moment(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "none", 1);
    sim_world_few_packets(pair.world);
    const struct fabric_ops *ops = pair.ends[0].fabric->ops;
    struct fabric_endpoint *endpoint = pair.ends[0].endpoint;
    uint32_t taken = 0;
    while (pair_post(&pair, 0, taken))
        taken++;
    uint32_t channel = pair_channel_of(&pair, taken);
    assert_int_equal(taken, 32);
    assert_int_equal(stats_of(&pair, 0)->tx_backpressure, 1);
    assert_int_equal(sim_world_next_event(pair.world), 0);
    lh_time again_ns = ops->pump(endpoint, channel, 0);
    assert_true(again_ns > 0 && again_ns < LH_NS_PER_MS);
    sim_world_advance(pair.world, 0);
    assert_true(ops->pump(endpoint, channel, 0) > 0);
    assert_int_equal(pair_poll(&pair, 1), 32);
    assert_int_equal(ops->pump(endpoint, channel, 0), 0);
    assert_true(pair_post(&pair, 0, taken));
    assert_int_equal(ops->pump(endpoint, channel, 0), LH_TIME_NEVER);
    pair_close(&pair);
}

static void the_link_loses_its_share(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "loss=0.1", 3);
    uint32_t received = 0;
    for (uint32_t round = 0; round < 100; round++) {
        pair_post_all(&pair, 0, 0, pair.packets);
        received += pair_settle(&pair, 1);
    }
    /* 25600 draws of chance 0.1: 2560 +- 48; five deviations. */
    assert_in_range(100 * pair.packets - received, 2560 - 240, 2560 + 240);
    assert_int_equal(stats_of(&pair, 0)->link_dropped, 100 * pair.packets - received);
    assert_true(pair_exact(&pair, 1));
    pair_close(&pair);
}

static void damage_never_reaches_a_buffer(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "corrupt=0.5", 4);
    uint32_t received = 0;
    for (uint32_t round = 0; round < 20; round++) {
        pair_unbind(&pair, 1);
        pair_bind(&pair, 1, 0);
        pair_post_all(&pair, 0, 0, pair.packets);
        received += pair_settle(&pair, 1);
        assert_true(pair_exact(&pair, 1));
    }
    uint64_t corrupted = stats_of(&pair, 0)->link_corrupted;
    uint64_t caught = lh_stats_bad_packets(stats_of(&pair, 1));
    assert_true(corrupted > 2000 && corrupted < 3120);
    assert_int_equal(received + caught, 20 * pair.packets);
    /* One byte of 1064 is masked in the iCRC (and means nothing): damage there goes unseen and does no
     * harm. */
    assert_in_range(corrupted - caught, 0, 20);
    pair_close(&pair);
}

/* The same through the write itself, every bit of a small packet. */
static void each_single_bit_is_caught(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "none", 5);
    const struct fabric_ops *ops = pair.ends[0].fabric->ops;
    const uint32_t bits = 8 * (ROCE_WRITE_IMM_HEADER_BYTES + 8 + ROCE_ICRC_BYTES);
    uint32_t arrived = 0;
    for (uint32_t bit = 0; bit < bits; bit++) {
        struct fabric_write write = pair_write(&pair, 0, 0);
        write.bytes = 5;
        write.corrupt_bit = bit + 1;
        assert_int_equal(ops->post_writes(pair.ends[0].endpoint, 0, &write, 1), 1);
        sim_world_advance(pair.world, sim_world_now(pair.world));
        uint32_t got = pair_poll(&pair, 1);
        assert_true(got == 0 || bit / 8 == 4); /* the masked byte */
        arrived += got;
    }
    assert_int_equal(arrived, 8);
    assert_int_equal(lh_stats_bad_packets(stats_of(&pair, 1)), bits - 8);
    pair_close(&pair);
}

static void duplicates_change_nothing(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "duplicate=1,delay=1ms,jitter=1ms", 6);
    pair_post_all(&pair, 0, 0, pair.packets);
    assert_int_equal(pair_settle(&pair, 1), 2 * pair.packets);
    assert_int_equal(pair_received(&pair, 1), pair.packets);
    assert_int_equal(stats_of(&pair, 0)->link_duplicated, pair.packets);
    assert_true(pair_exact(&pair, 1));
    pair_close(&pair);
}

/* Sent to a slot that is open, delivered while it is open, polled when it is closed. */
static void a_packet_is_judged_when_it_is_polled(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "delay=1ms", 7);
    pair_post_all(&pair, 0, 0, pair.packets);
    sim_world_advance(pair.world, LH_NS_PER_MS);
    pair_unbind(&pair, 1);
    assert_int_equal(pair_poll(&pair, 1), 0);
    assert_int_equal(stats_of(&pair, 1)->rx_late_packets, pair.packets);
    assert_true(pair_exact(&pair, 1));
    pair_close(&pair);
}

static void packets_of_an_earlier_binding_change_nothing(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "delay=1ms", 8);
    pair_post_all(&pair, 0, 0, 10);
    pair_unbind(&pair, 1);
    pair_bind(&pair, 1, 1); /* the next generation */
    pair_settle(&pair, 1);
    assert_int_equal(stats_of(&pair, 1)->rx_late_packets, 10);
    pair_post_all(&pair, 0, 0, 10);
    pair_unbind(&pair, 1);
    pair_bind(&pair, 1, 1); /* the same generation: the key tells */
    pair_settle(&pair, 1);
    assert_int_equal(stats_of(&pair, 1)->bad_key, 10);
    assert_int_equal(pair_received(&pair, 1), 0);
    assert_true(pair_exact(&pair, 1));
    pair_close(&pair);
}

/* Data that is always there takes every place in the queue that comes free. */
static void data_does_not_starve_control(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "rate=1Gbit,queue=4KiB", 1);
    pair_speak_while_full(&pair);
    pair_close(&pair);
}

static void control_arrives_whole(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "delay=1ms", 9);
    const struct fabric_ops *ops = pair.ends[0].fabric->ops;
    struct fabric_datagram datagrams[3] = {
        {.data = pair.message, .bytes = 1},
        {.data = pair.message, .bytes = CONTROL_LONG_MAX},
        {.data = pair.message + 5, .bytes = 31},
    };
    assert_int_equal(ops->control_send(pair.ends[0].endpoint, datagrams, 3), 3);
    sim_world_advance(pair.world, LH_NS_PER_MS);
    struct fabric_control_arrival arrivals[4];
    assert_int_equal(ops->control_poll(pair.ends[1].endpoint, arrivals, 2), 2);
    assert_int_equal(ops->control_poll(pair.ends[1].endpoint, arrivals + 2, 2), 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(arrivals[i].bytes, datagrams[i].bytes);
        assert_memory_equal(arrivals[i].data, datagrams[i].data, datagrams[i].bytes);
    }
    pair_close(&pair);
}

static void a_full_receive_queue_drops(void **state)
{
    (void)state;
    struct sim_pair pair;
    struct sim_pair_options options = {.world = "fabric", .channels = 1, .receive_buffer_bytes = 16 * 1024};
    pair_open(&pair, &options);
    uint32_t room = 16 * 1024 / (1024 + 36);
    for (uint32_t round = 1; round <= 3; round++) {
        for (uint32_t packet = 0; packet < 100; packet++)
            assert_true(pair_post(&pair, 0, packet));
        sim_world_advance(pair.world, 0);
        assert_int_equal(pair_poll(&pair, 1), room);
        assert_int_equal(stats_of(&pair, 1)->rx_socket_drops, round * (100 - room));
        assert_int_equal(sim_world_counts(pair.world).overflowed, round * (100 - room));
    }
    struct qp_info_endpoint info;
    pair.ends[1].fabric->ops->endpoint_info(pair.ends[1].endpoint, &info);
    assert_int_equal(info.receive_buffer_bytes, 16 * 1024);
    pair_close(&pair);
}

static void a_cut_link_passes_nothing_until_it_heals(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "delay=1ms", 10);
    assert_true(pair_post(&pair, 0, 0)); /* already on the way */
    sim_world_cut(pair.world, 0, 1, true);
    assert_true(pair_post(&pair, 0, 1));
    assert_true(pair_post(&pair, 1, 0)); /* the other direction still works */
    assert_int_equal(pair_settle(&pair, 1), 1);
    assert_int_equal(pair_poll(&pair, 0), 1);
    sim_world_partition(pair.world, true);
    assert_true(pair_post(&pair, 0, 1));
    assert_true(pair_post(&pair, 1, 1));
    assert_int_equal(pair_settle(&pair, 1) + pair_poll(&pair, 0), 0);
    sim_world_partition(pair.world, false);
    assert_true(pair_post(&pair, 0, 1));
    assert_int_equal(pair_settle(&pair, 1), 1);
    assert_int_equal(sim_world_counts(pair.world).cut, 3);
    pair_close(&pair);
}

static void the_link_changes_while_it_runs(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "delay=2ms", 11);
    assert_true(pair_post(&pair, 0, 0));
    struct lh_link_spec faster;
    assert_int_equal(lh_link_parse("delay=1ms", &faster), 0);
    sim_world_set_link(pair.world, &faster);
    assert_true(pair_post(&pair, 0, 1));
    sim_world_advance(pair.world, LH_NS_PER_MS);
    assert_int_equal(pair_poll(&pair, 1), 1);
    assert_int_equal(sim_world_next_event(pair.world), 2 * LH_NS_PER_MS);
    sim_world_set_link(pair.world, NULL);
    assert_true(pair_post(&pair, 0, 2));
    assert_int_equal(sim_world_next_event(pair.world), LH_NS_PER_MS);
    pair_close(&pair);
}

static void a_change_leaves_what_waits_for_the_bottleneck(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "rate=1Gbit", 11);
    pair_post_all(&pair, 0, 0, 10);
    struct lh_link_spec spec;
    assert_int_equal(lh_link_parse("rate=2Gbit", &spec), 0);
    sim_world_set_link(pair.world, &spec);
    assert_true(pair_post(&pair, 0, 10));
    pair_settle(&pair, 1);
    assert_int_equal(sim_world_now(pair.world), 10 * 1108 * 8 + 1108 * 4);
    pair_close(&pair);
}

/* Which of the first 64 packets arrive. */
static uint64_t losses_of(struct sim_pair *pair)
{
    pair_unbind(pair, 1);
    pair_bind(pair, 1, 0);
    pair_post_all(pair, 0, 0, 64);
    pair_settle(pair, 1);
    return atomic_load(&pair->ends[1].received[0]);
}

static void each_seed_and_each_change_draws_anew(void **state)
{
    (void)state;
    uint64_t losses[3];
    struct sim_pair pair;
    struct lh_link_spec spec;
    for (uint32_t i = 0; i < 2; i++) {
        open_pair(&pair, "loss=0.5", 30 + i);
        losses[i] = losses_of(&pair);
        assert_int_equal(lh_link_parse("loss=0.5", &spec), 0);
        sim_world_set_link(pair.world, &spec);
        losses[2] = losses_of(&pair);
        assert_int_not_equal(losses[i], losses[2]);
        pair_close(&pair);
    }
    assert_int_not_equal(losses[0], losses[1]);
}

/* ---- taps and hostile bytes -------------------------------------------------------------------------- */

/* Drops control, and keeps a copy of the last data packet. */
struct recorder {
    struct sim_datagram datagram;
    uint8_t bytes[SIM_DATAGRAM_MAX];
    uint32_t seen;
};

static bool record(void *context, struct sim_datagram *datagram)
{
    struct recorder *recorder = context;
    if (datagram->control)
        return false;
    recorder->seen++;
    recorder->datagram = *datagram;
    recorder->datagram.data = recorder->bytes;
    memcpy(recorder->bytes, datagram->data, datagram->bytes);
    return true;
}

static void a_tap_drops_control_only_and_replays(void **state)
{
    (void)state;
    struct sim_pair pair;
    struct recorder recorder = {0};
    open_pair(&pair, "none", 12);
    sim_world_tap(pair.world, record, &recorder);
    const struct fabric_ops *ops = pair.ends[0].fabric->ops;
    struct fabric_datagram datagram = {.data = pair.message, .bytes = 40};
    assert_int_equal(ops->control_send(pair.ends[0].endpoint, &datagram, 1), 1);
    assert_true(pair_post(&pair, 0, 0));
    assert_int_equal(pair_settle(&pair, 1), 1);
    struct fabric_control_arrival arrival;
    assert_int_equal(ops->control_poll(pair.ends[1].endpoint, &arrival, 1), 0);
    assert_int_equal(recorder.seen, 1);
    /* Replayed: found to be a duplicate; after the slot has moved on: late. */
    assert_int_equal(sim_world_inject(pair.world, &recorder.datagram), 0);
    assert_int_equal(pair_settle(&pair, 1), 1);
    pair_unbind(&pair, 1);
    pair_bind(&pair, 1, 1);
    recorder.datagram.at_ns = 77;
    assert_int_equal(sim_world_inject(pair.world, &recorder.datagram), 0);
    assert_int_equal(sim_world_next_event(pair.world), 77);
    assert_int_equal(pair_settle(&pair, 1), 0);
    assert_int_equal(stats_of(&pair, 1)->rx_late_packets, 1);
    assert_true(pair_exact(&pair, 1));
    pair_close(&pair);
}

static bool inject_again(void *context, struct sim_datagram *datagram)
{
    assert_int_equal(sim_world_inject(context, datagram), 0);
    return true;
}

static void a_tap_may_inject(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "none", 13);
    sim_world_tap(pair.world, inject_again, pair.world);
    assert_true(pair_post(&pair, 0, 0));
    assert_int_equal(pair_settle(&pair, 1), 2);
    pair_close(&pair);
}

/* Spoils one field of a good packet and makes the iCRC right again; returns how many arrivals that made. */
static uint32_t forge(struct sim_pair *pair, const struct recorder *good, size_t at, uint8_t flip)
{
    struct recorder forged = *good;
    forged.datagram.data = forged.bytes;
    forged.bytes[at] ^= flip;
    sim_datagram_seal(&forged.datagram);
    assert_int_equal(sim_world_inject(pair->world, &forged.datagram), 0);
    return pair_settle(pair, 1);
}

static void forged_fields_are_counted_by_name(void **state)
{
    (void)state;
    struct sim_pair pair;
    struct recorder good = {0};
    open_pair(&pair, "none", 14);
    sim_world_tap(pair.world, record, &good);
    assert_true(pair_post(&pair, 0, 0));
    assert_int_equal(pair_settle(&pair, 1), 1);
    pair_unbind(&pair, 1);
    /* Bound again so that nothing is marked; the good packet's key does not fit any more, so it is put
     * right. */
    pair_bind(&pair, 1, 0);
    for (uint32_t i = 0; i < 4; i++)
        good.bytes[20 + i] = (uint8_t)(pair.ends[1].key.rkey >> (24 - 8 * i));
    sim_datagram_seal(&good.datagram);
    const struct lh_stats *stats = stats_of(&pair, 1);
    uint32_t arrivals = 0;
    arrivals += forge(&pair, &good, 0, ROCE_UC_WRITE_ONLY_IMM ^ ROCE_UC_SEND_ONLY);
    assert_int_equal(stats->bad_header, 1);
    arrivals += forge(&pair, &good, 0, 0xFF); /* no opcode at all */
    assert_int_equal(stats->bad_header, 2);
    arrivals += forge(&pair, &good, 7, 0x80); /* destination QP */
    assert_int_equal(stats->bad_qpn, 1);
    arrivals += forge(&pair, &good, 12, 0x80); /* VA */
    assert_int_equal(stats->bad_range, 1);
    arrivals += forge(&pair, &good, 23, 0x01); /* key */
    assert_int_equal(stats->bad_key, 1);
    arrivals += forge(&pair, &good, 27, 0x01); /* DMA length */
    assert_int_equal(stats->bad_length, 1);
    arrivals += forge(&pair, &good, 30, 0x10); /* packet offset in the immediate */
    assert_int_equal(stats->bad_range, 2);
    good.datagram.from = 2; /* another host, which knows all the numbers */
    arrivals += forge(&pair, &good, 4, 0);
    assert_int_equal(stats->bad_source, 1);
    assert_int_equal(arrivals, 0);
    assert_int_equal(pair_received(&pair, 1), 0);
    assert_true(pair_exact(&pair, 1));
    /* The packet itself is good: with only the byte changed that switches may change, it arrives. */
    good.datagram.from = 0;
    assert_int_equal(forge(&pair, &good, 4, 0xFF), 1);
    assert_true(pair_exact(&pair, 1));
    pair_close(&pair);
}

static void random_bytes_only_count(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "none", 15);
    struct qp_info_endpoint info;
    const struct fabric_ops *ops = pair.ends[1].fabric->ops;
    ops->endpoint_info(pair.ends[1].endpoint, &info);
    struct lh_prng prng;
    lh_prng_seed(&prng, 15);
    uint8_t bytes[SIM_DATAGRAM_MAX];
    const uint32_t rounds = 20000;
    for (uint32_t round = 0; round < rounds; round++) {
        struct sim_datagram datagram = {.data = bytes, .to = 1, .source_port = 7};
        datagram.bytes = (uint32_t)lh_prng_below(&prng, round % 2 ? 80 : SIM_DATAGRAM_MAX + 1);
        datagram.destination_port =
            lh_prng_chance(&prng, 0.5) ? info.control_port : info.channel_port[round % 2];
        for (uint32_t i = 0; i < datagram.bytes; i += 8) {
            uint64_t word = lh_prng_next(&prng);
            memcpy(bytes + i, &word, datagram.bytes - i < 8 ? datagram.bytes - i : 8);
        }
        bytes[0] =
            (uint8_t[]){ROCE_UC_SEND_ONLY, ROCE_UC_WRITE_ONLY, ROCE_UC_WRITE_ONLY_IMM, bytes[0]}[round % 4];
        bytes[2] = 0xFF;
        bytes[3] = 0xFF;
        bytes[1] &= 0x70;
        if (datagram.bytes >= 16)
            sim_datagram_seal(&datagram);
        assert_int_equal(sim_world_inject(pair.world, &datagram), 0);
        sim_world_advance(pair.world, sim_world_now(pair.world));
        struct fabric_control_arrival control;
        assert_int_equal(pair_poll(&pair, 1), 0);
        assert_int_equal(ops->control_poll(pair.ends[1].endpoint, &control, 1), 0);
    }
    assert_int_equal(lh_stats_bad_packets(stats_of(&pair, 1)), rounds);
    assert_true(pair_exact(&pair, 1));
    pair_close(&pair);
}

/* Right in every field, from the peer, and longer than any control message may be. */
static void a_control_packet_that_is_too_long_is_refused(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "none", 15);
    struct qp_info_endpoint peer;
    struct qp_info_endpoint own;
    const struct fabric_ops *ops = pair.ends[1].fabric->ops;
    ops->endpoint_info(pair.ends[0].endpoint, &peer);
    ops->endpoint_info(pair.ends[1].endpoint, &own);
    for (uint32_t excess = 0; excess <= 4; excess += 4) {
        uint8_t bytes[SIM_DATAGRAM_MAX] = {0};
        const struct roce_packet packet = {
            .opcode = ROCE_UC_SEND_ONLY,
            .dest_qpn = own.control_qpn,
            .payload_bytes = ROCE_MTU_MAX + ROCE_WRITE_IMM_HEADER_BYTES - ROCE_SEND_HEADER_BYTES,
        };
        struct sim_datagram datagram = {
            .data = bytes,
            .source_port = peer.control_port,
            .destination_port = own.control_port,
            .to = 1,
        };
        datagram.bytes =
            (uint32_t)roce_encode_header(&packet, bytes) + packet.payload_bytes + excess + ROCE_ICRC_BYTES;
        sim_datagram_seal(&datagram);
        assert_int_equal(sim_world_inject(pair.world, &datagram), 0);
        sim_world_advance(pair.world, 0);
        struct fabric_control_arrival arrival;
        assert_int_equal(ops->control_poll(pair.ends[1].endpoint, &arrival, 1), excess == 0);
    }
    assert_int_equal(stats_of(&pair, 1)->bad_length, 1);
    pair_close(&pair);
}

static void what_cannot_be_injected_is_refused(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "none", 16);
    uint8_t byte = 0;
    struct sim_datagram datagram = {.data = &byte, .bytes = SIM_DATAGRAM_MAX + 1};
    assert_int_equal(sim_world_inject(pair.world, &datagram), -LH_EINVAL);
    datagram = (struct sim_datagram){.data = &byte, .bytes = 1, .to = SIM_HOSTS_MAX};
    assert_int_equal(sim_world_inject(pair.world, &datagram), -LH_EINVAL);
    datagram = (struct sim_datagram){.data = &byte, .bytes = 1, .to = 1, .destination_port = 5};
    assert_int_equal(sim_world_inject(pair.world, &datagram), 0);
    sim_world_advance(pair.world, 1);
    assert_int_equal(sim_world_counts(pair.world).unknown, 1);
    pair_close(&pair);
}

/* ---- the world --------------------------------------------------------------------------------------- */

static uint64_t trace_of(uint64_t seed)
{
    struct sim_pair pair;
    open_pair(
        &pair,
        "delay=1ms,jitter=500us,rate=1Gbit,loss=0.05,burst=3,reorder=0.05,duplicate=0.05,corrupt=0.05",
        seed);
    for (uint32_t round = 0; round < 4; round++) {
        pair_post_all(&pair, 0, 0, pair.packets);
        pair_post_all(&pair, 1, 0, pair.packets);
        pair_settle(&pair, 1);
        pair_poll(&pair, 0);
    }
    uint64_t trace = sim_world_trace(pair.world);
    pair_close(&pair);
    return trace;
}

static void one_seed_has_one_trace(void **state)
{
    (void)state;
    assert_int_equal(trace_of(21), trace_of(21));
    assert_int_not_equal(trace_of(21), trace_of(22));
}

static int open_device(const char *address, struct fabric **fabric)
{
    const struct fabric_attr attr = {.address = address};
    return fabric_sim_ops.open(&attr, fabric);
}

static void names_and_devices_are_checked(void **state)
{
    (void)state;
    struct fabric *fabric = NULL;
    assert_null(sim_world_create("", 1, NULL));
    assert_null(sim_world_create("a/b", 1, NULL));
    assert_null(sim_world_create("a name that is far too long for a world", 1, NULL));
    struct sim_world *world = sim_world_create("w", 1, NULL);
    assert_non_null(world);
    assert_null(sim_world_create("w", 1, NULL));
    const char *const wrong[] = {"", "w", "w/", "w/8", "w/00", "w/x", "v/0", "w/0/0"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(open_device(wrong[i], &fabric), -LH_EADDR);
        assert_non_null(strstr(lh_last_error(), "simulated"));
    }
    assert_int_equal(open_device("w/7", &fabric), 0);
    fabric_sim_ops.close(fabric);
    sim_world_destroy(world);
    assert_int_equal(open_device("w/7", &fabric), -LH_EADDR);
}

static void a_peer_of_another_kind_is_refused(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "none", 17);
    const struct fabric_ops *ops = pair.ends[0].fabric->ops;
    struct qp_info_endpoint good;
    ops->endpoint_info(pair.ends[1].endpoint, &good);
    struct qp_info_endpoint info = good;
    info.fabric = QP_INFO_UDP;
    assert_int_equal(ops->endpoint_connect(pair.ends[0].endpoint, &info), -LH_EADDR);
    info = good;
    info.address[3] = 1;
    assert_int_equal(ops->endpoint_connect(pair.ends[0].endpoint, &info), -LH_EADDR);
    info = good;
    info.channels = 3;
    assert_int_equal(ops->endpoint_connect(pair.ends[0].endpoint, &info), -LH_EHANDSHAKE);
    pair_close(&pair);
}

/* Ports of a destroyed endpoint are not given out again at once: what is on the way to it hits nobody. */
static void a_new_endpoint_gets_no_old_packets(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "delay=1ms", 18);
    pair_post_all(&pair, 0, 0, 8);
    struct pair_end *end = &pair.ends[1];
    struct qp_info_endpoint before;
    struct qp_info_endpoint after;
    end->fabric->ops->endpoint_info(end->endpoint, &before);
    end->fabric->ops->endpoint_destroy(end->endpoint);
    struct fabric_endpoint_attr attr = pair.attr;
    attr.stats = &end->stats;
    assert_int_equal(end->fabric->ops->endpoint_create(end->fabric, &attr, &end->endpoint), 0);
    end->fabric->ops->endpoint_info(end->endpoint, &after);
    assert_int_not_equal(before.control_port, after.control_port);
    assert_int_not_equal(before.control_qpn, after.control_qpn);
    assert_int_equal(pair_settle(&pair, 1), 0);
    assert_int_equal(sim_world_counts(pair.world).unknown, 8);
    pair_close(&pair);
}

static void ports_run_out_and_come_back(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_create("ports", 1, NULL);
    struct fabric *fabric;
    struct lh_stats stats = {0};
    struct fabric_endpoint *endpoints[SIM_PORTS_MAX / 33];
    struct fabric_endpoint *one_more;
    struct fabric_endpoint_attr attr = {.channels = 32,
                                        .generations = 1,
                                        .mtu_bytes = 1024,
                                        .slots = 1,
                                        .slot_bytes = 1024,
                                        .stripe_packets = 1};
    attr.stats = &stats;
    assert_int_equal(open_device("ports/0", &fabric), 0);
    for (uint32_t i = 0; i < SIM_PORTS_MAX / 33; i++)
        assert_int_equal(fabric->ops->endpoint_create(fabric, &attr, &endpoints[i]), 0);
    assert_int_equal(fabric->ops->endpoint_create(fabric, &attr, &one_more), -LH_ENOMEM);
    fabric->ops->endpoint_destroy(endpoints[0]);
    assert_int_equal(fabric->ops->endpoint_create(fabric, &attr, &endpoints[0]), 0);
    for (uint32_t i = 0; i < SIM_PORTS_MAX / 33; i++)
        fabric->ops->endpoint_destroy(endpoints[i]);
    fabric->ops->close(fabric);
    sim_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_arrives_byte_for_byte),
        cmocka_unit_test(short_and_empty_packets_arrive),
        cmocka_unit_test(a_packet_arrives_at_its_nanosecond_and_no_sooner),
        cmocka_unit_test(a_full_link_pushes_back_and_says_until_when),
        cmocka_unit_test(an_empty_pool_is_not_asked_again_at_this_moment),
        cmocka_unit_test(the_link_loses_its_share),
        cmocka_unit_test(damage_never_reaches_a_buffer),
        cmocka_unit_test(each_single_bit_is_caught),
        cmocka_unit_test(duplicates_change_nothing),
        cmocka_unit_test(a_packet_is_judged_when_it_is_polled),
        cmocka_unit_test(packets_of_an_earlier_binding_change_nothing),
        cmocka_unit_test(data_does_not_starve_control),
        cmocka_unit_test(control_arrives_whole),
        cmocka_unit_test(a_full_receive_queue_drops),
        cmocka_unit_test(a_cut_link_passes_nothing_until_it_heals),
        cmocka_unit_test(the_link_changes_while_it_runs),
        cmocka_unit_test(a_change_leaves_what_waits_for_the_bottleneck),
        cmocka_unit_test(each_seed_and_each_change_draws_anew),
        cmocka_unit_test(a_tap_drops_control_only_and_replays),
        cmocka_unit_test(a_tap_may_inject),
        cmocka_unit_test(forged_fields_are_counted_by_name),
        cmocka_unit_test(random_bytes_only_count),
        cmocka_unit_test(a_control_packet_that_is_too_long_is_refused),
        cmocka_unit_test(what_cannot_be_injected_is_refused),
        cmocka_unit_test(one_seed_has_one_trace),
        cmocka_unit_test(names_and_devices_are_checked),
        cmocka_unit_test(a_peer_of_another_kind_is_refused),
        cmocka_unit_test(a_new_endpoint_gets_no_old_packets),
        cmocka_unit_test(ports_run_out_and_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
