/*
 * The link emulation over an inner fabric that writes down what it gets and when.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "link/link.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "wire/roce_packet.h"

#define CHANNELS  3u
#define GIVEN_MAX 20000u
#define LKEY      77u

/* A packet that reached the inner fabric. */
struct given {
    lh_time at_ns;
    uint32_t channel; /* or FABRIC_CONTROL */
    uint32_t bytes;
    uint32_t immediate;
    uint32_t corrupt_bit;
    uint32_t lkey;
    bool borrowed;
    uint8_t first_byte;
    const uint8_t *payload;
};

static struct inner {
    struct fabric base;
    struct fabric_endpoint endpoint;
    lh_time now_ns;
    struct given given[GIVEN_MAX];
    uint32_t given_count;
    uint32_t takes; /* from one call, at most */
    uint32_t largest_batch;
    uint32_t memories; /* registered */
    uint8_t family;
    uint32_t endpoints;
    bool closed;
} inner;

static struct lh_stats stats;
static struct fabric *link_fabric;
static struct fabric_endpoint *endpoint;
static uint8_t payload[ROCE_MTU_MAX];

static lh_time inner_now(struct fabric *fabric)
{
    (void)fabric;
    return inner.now_ns;
}

static void inner_close(struct fabric *fabric)
{
    (void)fabric;
    inner.closed = true;
}

static int inner_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                                 struct fabric_endpoint **out)
{
    (void)attr;
    inner.endpoint.fabric = fabric;
    inner.endpoints++;
    *out = &inner.endpoint;
    return 0;
}

static void inner_endpoint_destroy(struct fabric_endpoint *which)
{
    (void)which;
    inner.endpoints--;
}

static void inner_endpoint_info(struct fabric_endpoint *which, struct qp_info_endpoint *info)
{
    (void)which;
    *info = (struct qp_info_endpoint){.family = inner.family, .control_port = 1};
}

static int inner_endpoint_connect(struct fabric_endpoint *which, const struct qp_info_endpoint *peer)
{
    (void)which;
    (void)peer;
    return 0;
}

static void write_down(uint32_t channel, const struct fabric_write *write)
{
    assert_true(inner.given_count < GIVEN_MAX);
    inner.given[inner.given_count++] = (struct given){
        .at_ns = inner.now_ns,
        .channel = channel,
        .bytes = write->bytes,
        .immediate = write->immediate,
        .corrupt_bit = write->corrupt_bit,
        .lkey = write->lkey,
        .borrowed = write->borrowed,
        .first_byte = write->bytes > 0 ? write->payload[0] : 0,
        .payload = write->payload,
    };
}

static int inner_post_writes(struct fabric_endpoint *which, uint32_t channel,
                             const struct fabric_write *writes, uint32_t count)
{
    (void)which;
    uint32_t taken = count < inner.takes ? count : inner.takes;
    inner.largest_batch = count > inner.largest_batch ? count : inner.largest_batch;
    for (uint32_t i = 0; i < taken; i++)
        write_down(channel, &writes[i]);
    return (int)taken;
}

static int inner_control_send(struct fabric_endpoint *which, const struct fabric_datagram *datagrams,
                              uint32_t count)
{
    (void)which;
    uint32_t taken = count < inner.takes ? count : inner.takes;
    for (uint32_t i = 0; i < taken; i++) {
        const struct fabric_write write = {.payload = datagrams[i].data,
                                           .bytes = datagrams[i].bytes,
                                           .corrupt_bit = datagrams[i].corrupt_bit};
        write_down(FABRIC_CONTROL, &write);
    }
    return (int)taken;
}

static int inner_memory_register(struct fabric *fabric, void *address, size_t bytes, uint32_t *lkey,
                                 void **handle)
{
    (void)fabric;
    (void)bytes;
    inner.memories++;
    *lkey = LKEY;
    *handle = address;
    return 0;
}

static void inner_memory_deregister(struct fabric *fabric, void *handle)
{
    (void)fabric;
    assert_non_null(handle);
    inner.memories--;
}

static lh_time inner_arrived(struct fabric_endpoint *which, uint32_t channel)
{
    (void)which;
    return 1000 + channel;
}

static const struct fabric_ops inner_ops = {
    .name = "written",
    .close = inner_close,
    .now = inner_now,
    .endpoint_create = inner_endpoint_create,
    .endpoint_destroy = inner_endpoint_destroy,
    .endpoint_info = inner_endpoint_info,
    .endpoint_connect = inner_endpoint_connect,
    .post_writes = inner_post_writes,
    .control_send = inner_control_send,
    .arrived = inner_arrived,
    .memory_register = inner_memory_register,
    .memory_deregister = inner_memory_deregister,
};

static struct lh_link_spec parse(const char *text)
{
    struct lh_link_spec spec;
    assert_int_equal(lh_link_parse(text, &spec), 0);
    return spec;
}

static void open_family(const char *text, uint8_t family)
{
    memset(&inner, 0, sizeof(inner));
    memset(&stats, 0, sizeof(stats));
    inner.base.ops = &inner_ops;
    inner.takes = FABRIC_BATCH_MAX;
    inner.family = family;
    struct lh_link_spec spec = parse(text);
    assert_int_equal(fabric_link_open(&inner.base, &spec, &link_fabric), 0);
    assert_string_equal(link_fabric->ops->name, "written");
    const struct fabric_endpoint_attr attr = {.channels = CHANNELS, .stats = &stats};
    assert_int_equal(link_fabric->ops->endpoint_create(link_fabric, &attr, &endpoint), 0);
    const struct qp_info_endpoint peer = {.family = family, .control_port = 2};
    assert_int_equal(link_fabric->ops->endpoint_connect(endpoint, &peer), 0);
}

static void open_link(const char *text)
{
    open_family(text, 6);
}

static void close_link(void)
{
    link_fabric->ops->endpoint_destroy(endpoint);
    link_fabric->ops->close(link_fabric);
    assert_int_equal(inner.memories, 0);
    assert_int_equal(inner.endpoints, 0);
    assert_true(inner.closed);
}

/* Posts `count` packets numbered from `first` in one call; how many were taken. */
static uint32_t post(uint32_t channel, uint32_t first, uint32_t count, uint32_t bytes)
{
    struct fabric_write writes[FABRIC_BATCH_MAX];
    for (uint32_t i = 0; i < count; i++)
        writes[i] =
            (struct fabric_write){.payload = payload, .bytes = bytes, .immediate = first + i, .lkey = 5};
    int taken = link_fabric->ops->post_writes(endpoint, channel, writes, count);
    assert_true(taken >= 0);
    return (uint32_t)taken;
}

static lh_time pump(uint32_t channel, lh_time now)
{
    inner.now_ns = now;
    return link_fabric->ops->pump(endpoint, channel, now);
}

/* Pumps every lane at each time that any of them asks for, until none asks. */
static void run(void)
{
    for (uint32_t turn = 0; turn < 1000000; turn++) {
        lh_time next_ns = pump(FABRIC_CONTROL, inner.now_ns);
        for (uint32_t channel = 0; channel < CHANNELS; channel++) {
            lh_time asked_ns = pump(channel, inner.now_ns);
            next_ns = asked_ns < next_ns ? asked_ns : next_ns;
        }
        if (next_ns == LH_TIME_NEVER)
            return;
        inner.now_ns = next_ns;
    }
    fail_msg("never came to rest");
}

/* ---- time
 * --------------------------------------------------------------------------------------------------------
 */

/* 1000 bytes of payload on the wire over IPv6: 1084 bytes, 8672 ns at 1 Gbit/s. */
#define WIRE_BYTES 1084u
#define WIRE_NS    8672u

static void packets_leave_at_their_nanosecond(void **state)
{
    (void)state;
    open_link("rate=1Gbit,delay=1ms");
    assert_int_equal(post(0, 0, 3, 1000), 3);
    for (uint32_t i = 1; i <= 3; i++) {
        lh_time due_ns = LH_NS_PER_MS + i * WIRE_NS;
        assert_int_equal(pump(0, due_ns - 1), due_ns);
        assert_int_equal(inner.given_count, i - 1);
        pump(0, due_ns);
        assert_int_equal(inner.given_count, i);
        assert_int_equal(inner.given[i - 1].immediate, i - 1);
    }
    assert_int_equal(pump(0, 2 * LH_NS_PER_MS), LH_TIME_NEVER);
    close_link();
}

static void ipv4_headers_are_shorter(void **state)
{
    (void)state;
    open_family("rate=1Gbit", 4);
    assert_int_equal(post(0, 0, 1, 1000), 1);
    assert_int_equal(pump(0, 0), (WIRE_BYTES - 20) * 8);
    close_link();
}

static void payload_is_padded_on_the_wire(void **state)
{
    (void)state;
    open_link("rate=1Gbit");
    assert_int_equal(post(0, 0, 1, 997), 1);
    assert_int_equal(pump(0, 0), WIRE_NS);
    close_link();
}

static void all_lanes_share_the_bottleneck(void **state)
{
    (void)state;
    open_link("rate=1Gbit");
    assert_int_equal(post(0, 0, 1, 1000), 1);
    assert_int_equal(post(2, 1, 1, 1000), 1);
    const struct fabric_datagram datagram = {.data = payload, .bytes = 100};
    assert_int_equal(link_fabric->ops->control_send(endpoint, &datagram, 1), 1);
    assert_int_equal(pump(0, 0), WIRE_NS);
    assert_int_equal(pump(2, 0), 2 * WIRE_NS);
    assert_int_equal(pump(FABRIC_CONTROL, 0), 2 * WIRE_NS + (48 + 12 + 100 + 4) * 8);
    assert_int_equal(pump(1, 0), LH_TIME_NEVER);
    run();
    assert_int_equal(inner.given_count, 3);
    assert_int_equal(inner.given[2].channel, FABRIC_CONTROL);
    assert_int_equal(inner.given[2].bytes, 100);
    close_link();
}

/* Owners read the clock each for himself: one who read it earlier may come later. */
static void time_does_not_go_back_for_the_link(void **state)
{
    (void)state;
    open_link("delay=1ms");
    inner.now_ns = 1000;
    assert_int_equal(post(0, 0, 1, 100), 1);
    inner.now_ns = 900;
    assert_int_equal(post(1, 1, 1, 100), 1);
    assert_int_equal(pump(1, 1000), 1000 + LH_NS_PER_MS);
    close_link();
}

/* A channel's packets are given to the inner fabric by that channel's pump, and by no other call. */
static void only_its_own_pump_lets_a_packet_go(void **state)
{
    (void)state;
    open_link("delay=1ms");
    assert_int_equal(post(1, 0, 1, 10), 1);
    pump(0, 2 * LH_NS_PER_MS);
    pump(FABRIC_CONTROL, 2 * LH_NS_PER_MS);
    assert_int_equal(post(0, 1, 1, 10), 1);
    assert_int_equal(inner.given_count, 0);
    pump(1, 2 * LH_NS_PER_MS);
    assert_int_equal(inner.given_count, 1);
    close_link();
}

static void the_order_of_a_channel_is_kept(void **state)
{
    (void)state;
    open_link("rate=10Gbit,delay=2ms,queue=1MiB");
    for (uint32_t i = 0; i < 600; i++)
        assert_int_equal(post(i % CHANNELS, i, 1, i % 1500), 1);
    run();
    uint32_t last[CHANNELS] = {0};
    for (uint32_t i = 0; i < inner.given_count; i++) {
        const struct given *given = &inner.given[i];
        assert_true(given->immediate == given->channel ||
                    given->immediate == last[given->channel] + CHANNELS);
        last[given->channel] = given->immediate;
    }
    assert_int_equal(inner.given_count, 600);
    close_link();
}

/* ---- push back --------------------------------------------------------------------------------------- */

static void a_full_queue_pushes_back_and_says_until_when(void **state)
{
    (void)state;
    open_link("rate=1Gbit,queue=4KiB,delay=1ms");
    /* Taken while 4096 or fewer bytes are ahead. */
    assert_int_equal(post(0, 0, 10, 1000), 4);
    assert_int_equal(stats.tx_backpressure, 1);
    lh_time ready_ns = (4 * WIRE_BYTES - 4096) * 8;
    assert_int_equal(pump(0, 0), ready_ns);
    assert_int_equal(pump(0, ready_ns - 1), ready_ns);
    assert_int_equal(pump(0, ready_ns), ready_ns); /* now; and once only */
    assert_int_equal(pump(0, ready_ns), LH_NS_PER_MS + WIRE_NS);
    assert_int_equal(post(0, 4, 10, 1000), 1);
    /* What waits in the delay line is not queued. */
    inner.now_ns = LH_NS_PER_MS;
    close_link();
}

static void a_tail_drop_queue_drops_instead(void **state)
{
    (void)state;
    open_link("rate=1Gbit,queue=4KiB,drop=tail");
    assert_int_equal(post(0, 0, 10, 1000), 10);
    assert_int_equal(stats.link_dropped, 6);
    assert_int_equal(stats.tx_wire_bytes, 6 * WIRE_BYTES); /* of those that the inner fabric cannot count */
    assert_int_equal(stats.tx_backpressure, 0);
    run();
    assert_int_equal(inner.given_count, 4);
    close_link();
}

static void what_is_held_is_bounded(void **state)
{
    (void)state;
    open_link("delay=1ms"); /* no rate: 64 MiB */
    uint32_t taken = 0;
    for (uint32_t got = 1; got > 0; taken += got)
        got = post(taken / 8 % CHANNELS, taken, 8, ROCE_MTU_MAX);
    const uint32_t each = ROCE_MTU_MAX + sizeof(struct link_packet) + sizeof(struct ring_block);
    assert_int_equal(taken, LINK_HELD_UNLIMITED_BYTES / each);
    assert_true(stats.tx_backpressure > 0);
    /* Until the oldest goes; its lane is not this one. */
    uint32_t refused = taken / 8 % CHANNELS;
    assert_int_equal(pump(refused, 5), LH_NS_PER_MS);
    assert_int_equal(post(refused, taken, 1, ROCE_MTU_MAX), 0);
    pump(0, LH_NS_PER_MS);
    assert_int_equal(post(refused, taken, 1, ROCE_MTU_MAX), 1);
    close_link();
}

static void the_bound_is_what_the_link_can_hold(void **state)
{
    (void)state;
    struct lh_link_spec spec = parse("rate=8Gbit,delay=4ms,queue=1MiB");
    /* 1 byte a nanosecond; a packet that is held back stays a quarter longer. */
    assert_int_equal(link_held_bytes(&spec), 5 * LH_NS_PER_MS + 1048576 + LINK_HELD_SLACK_BYTES);
    spec = parse("rate=400Gbit,delay=10min");
    assert_int_equal(link_held_bytes(&spec), LINK_HELD_MAX_BYTES);
    spec = parse("delay=1ms");
    assert_int_equal(link_held_bytes(&spec), LINK_HELD_UNLIMITED_BYTES);
}

/* At full rate, with pushes back obeyed, the memory never runs out before the queue does. */
static void a_full_rate_is_reached(void **state)
{
    (void)state;
    open_link("rate=10Gbit,delay=2ms,queue=128KiB");
    uint32_t taken = 0;
    lh_time start_ns = 0;
    while (inner.now_ns < 20 * LH_NS_PER_MS && inner.given_count + 200 < GIVEN_MAX) {
        taken += post(0, taken, FABRIC_BATCH_MAX, ROCE_MTU_MAX);
        inner.now_ns = pump(0, inner.now_ns);
    }
    double bits = 8.0 * (ROCE_MTU_MAX + 84) * inner.given_count;
    double span_ns = (double)(inner.given[inner.given_count - 1].at_ns - 2 * LH_NS_PER_MS - start_ns);
    assert_true(bits / span_ns > 9.9 && bits / span_ns < 10.1);
    close_link();
}

/* ---- faults
 * ---------------------------------------------------------------------------------------------------------
 */

static void post_many(uint32_t count, uint32_t bytes)
{
    for (uint32_t i = 0; i < count; i += 50)
        assert_int_equal(post(0, i, 50, bytes), 50);
}

static void the_lost_are_counted(void **state)
{
    (void)state;
    open_link("loss=0.2,delay=1us");
    post_many(10000, 100);
    run();
    assert_in_range(stats.link_dropped, 2000 - 200, 2000 + 200);
    assert_int_equal(inner.given_count, 10000 - stats.link_dropped);
    close_link();
}

static void a_duplicate_goes_twice(void **state)
{
    (void)state;
    open_link("duplicate=1,delay=1ms,jitter=1ms");
    payload[0] = 42;
    post_many(1000, 100);
    memset(payload, 0, sizeof(payload)); /* it was copied */
    run();
    assert_int_equal(inner.given_count, 2000);
    assert_int_equal(stats.link_duplicated, 1000);
    uint8_t seen[1000] = {0};
    for (uint32_t i = 0; i < inner.given_count; i++) {
        seen[inner.given[i].immediate]++;
        assert_int_equal(inner.given[i].first_byte, 42);
        assert_true(i == 0 || inner.given[i].at_ns >= inner.given[i - 1].at_ns);
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(seen[i], 2);
    close_link();
}

static void the_reordered_are_overtaken(void **state)
{
    (void)state;
    open_link("reorder=0.1,rate=1Gbit,delay=1ms,queue=4MiB");
    post_many(2000, 1000);
    run();
    assert_int_equal(inner.given_count, 2000);
    assert_in_range(stats.link_reordered, 120, 280);
    uint32_t late = 0;
    uint32_t highest = 0;
    for (uint32_t i = 0; i < inner.given_count; i++) {
        late += inner.given[i].immediate < highest;
        highest = inner.given[i].immediate > highest ? inner.given[i].immediate : highest;
    }
    /* Those in the last quarter of a millisecond have nobody behind them. */
    assert_in_range(late, stats.link_reordered - 20, stats.link_reordered);
    close_link();
}

static void the_corrupted_carry_a_bit(void **state)
{
    (void)state;
    open_link("corrupt=0.1,delay=1us");
    post_many(10000, 100);
    run();
    uint32_t corrupted = 0;
    for (uint32_t i = 0; i < inner.given_count; i++) {
        corrupted += inner.given[i].corrupt_bit != 0;
        assert_true(inner.given[i].corrupt_bit <= 8 * (100 + 84));
    }
    assert_int_equal(corrupted, stats.link_corrupted);
    assert_in_range(corrupted, 850, 1150);
    close_link();
}

/* Zero means none, so the first bit of the packet is number one. */
static void every_bit_can_be_hit(void **state)
{
    (void)state;
    open_link("corrupt=1,delay=1us");
    post_many(15000, 0);
    run();
    const uint32_t bits = 8 * 84;
    bool hit[8 * 84 + 1] = {0};
    for (uint32_t i = 0; i < inner.given_count; i++) {
        assert_in_range(inner.given[i].corrupt_bit, 1, bits);
        hit[inner.given[i].corrupt_bit] = true;
    }
    for (uint32_t bit = 1; bit <= bits; bit++)
        assert_true(hit[bit]);
    close_link();
}

static uint64_t fates_of(const char *text)
{
    uint64_t hash = 0;
    open_link(text);
    post_many(2000, 100);
    run();
    for (uint32_t i = 0; i < inner.given_count; i++)
        hash = (hash ^ inner.given[i].immediate ^ inner.given[i].at_ns << 20) * 0x9E3779B97F4A7C15u;
    close_link();
    return hash;
}

static void one_seed_has_one_fate(void **state)
{
    (void)state;
    const char *text = "loss=0.1,jitter=1ms,duplicate=0.1,seed=3";
    assert_int_equal(fates_of(text), fates_of(text));
    assert_int_not_equal(fates_of(text), fates_of("loss=0.1,jitter=1ms,duplicate=0.1,seed=4"));
}

/* ---- the inner fabric -------------------------------------------------------------------------------- */

static void what_the_inner_fabric_does_not_take_waits_in_order(void **state)
{
    (void)state;
    open_link("delay=1us");
    assert_int_equal(post(0, 0, 64, 100), 64);
    assert_int_equal(post(0, 64, 36, 100), 36);
    inner.takes = 7;
    assert_int_equal(pump(0, 1000), 1000 + LINK_RETRY_NS);
    assert_int_equal(inner.given_count, 7);
    inner.takes = 0;
    assert_int_equal(pump(0, 2000), 2000 + LINK_RETRY_NS);
    inner.takes = FABRIC_BATCH_MAX;
    assert_int_equal(pump(0, 3000), LH_TIME_NEVER);
    assert_int_equal(inner.given_count, 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(inner.given[i].immediate, i);
    close_link();
}

static void one_pump_gives_a_bounded_number_of_batches(void **state)
{
    (void)state;
    open_link("delay=1us");
    post_many(1000, 100);
    assert_int_equal(pump(0, 1000), 1000); /* at once again */
    assert_int_equal(inner.given_count, LINK_PUMP_BATCHES * FABRIC_BATCH_MAX);
    assert_int_equal(inner.largest_batch, FABRIC_BATCH_MAX);
    run();
    assert_int_equal(inner.given_count, 1000);
    close_link();
}

/* The device need not know the link's memory, which may be gigabytes. */
static void a_copy_is_lent(void **state)
{
    (void)state;
    open_link("delay=1us");
    assert_int_equal(inner.memories, 0);
    payload[0] = 9;
    post(0, 0, 1, 100);
    payload[0] = 0;
    run();
    assert_true(inner.given[0].borrowed);
    assert_int_equal(inner.given[0].first_byte, 9);
    uint32_t lkey = 0;
    void *handle = NULL;
    assert_int_equal(link_fabric->ops->memory_register(link_fabric, payload, 1, &lkey, &handle), 0);
    assert_int_equal(inner.memories, 1);
    assert_int_equal(lkey, LKEY);
    link_fabric->ops->memory_deregister(link_fabric, handle);
    close_link();
}

static void none_passes_straight_through(void **state)
{
    (void)state;
    open_link("none");
    assert_int_equal(inner.memories, 0);
    assert_int_equal(post(1, 0, 5, 100), 5);
    assert_int_equal(inner.given_count, 5);
    assert_int_equal(inner.given[0].channel, 1);
    assert_int_equal(inner.given[0].lkey, 5);
    assert_ptr_equal(inner.given[0].payload, payload);
    const struct fabric_datagram datagram = {.data = payload, .bytes = 100, .corrupt_bit = 3};
    assert_int_equal(link_fabric->ops->control_send(endpoint, &datagram, 1), 1);
    assert_int_equal(inner.given[5].corrupt_bit, 3);
    assert_int_equal(pump(1, 7), LH_TIME_NEVER);
    close_link();
}

/* The inner fabric has no pump to say when it takes more; ours hides that, so it must say itself. */
static void passing_through_a_full_inner_fabric_says_when_to_retry(void **state)
{
    (void)state;
    open_link("none");
    inner.takes = 2;
    assert_int_equal(post(0, 0, 5, 100), 2);
    assert_int_equal(pump(0, 7), 7 + LINK_RETRY_NS);
    assert_int_equal(pump(0, 9), 7 + LINK_RETRY_NS);
    assert_int_equal(pump(0, 7 + LINK_RETRY_NS), 7 + LINK_RETRY_NS);
    assert_int_equal(pump(0, 8 + LINK_RETRY_NS), LH_TIME_NEVER);
    close_link();
}

/* ---- while it runs ----------------------------------------------------------------------------------- */

static void a_change_leaves_what_is_in_flight(void **state)
{
    (void)state;
    open_link("delay=2ms");
    assert_int_equal(post(0, 0, 1, 100), 1);
    struct lh_link_spec spec = parse("delay=1ms");
    fabric_link_set(endpoint, &spec);
    assert_int_equal(post(0, 1, 1, 100), 1);
    assert_int_equal(pump(0, 0), LH_NS_PER_MS);
    spec = parse("none");
    fabric_link_set(endpoint, &spec);
    assert_int_equal(post(0, 2, 1, 100), 1);
    assert_int_equal(inner.given_count, 1);
    run();
    assert_int_equal(inner.given_count, 3);
    assert_int_equal(inner.given[1].immediate, 1);
    assert_int_equal(inner.given[1].at_ns, LH_NS_PER_MS);
    assert_int_equal(inner.given[2].immediate, 0);
    assert_int_equal(inner.given[2].at_ns, 2 * LH_NS_PER_MS);
    close_link();
}

static void a_change_leaves_what_waits_for_the_bottleneck(void **state)
{
    (void)state;
    open_link("rate=1Gbit");
    assert_int_equal(post(0, 0, 10, 1000), 10);
    struct lh_link_spec spec = parse("rate=2Gbit");
    fabric_link_set(endpoint, &spec);
    assert_int_equal(post(1, 10, 1, 1000), 1);
    assert_int_equal(pump(1, 0), 10 * WIRE_NS + WIRE_NS / 2);
    close_link();
}

static void a_change_can_start_emulation(void **state)
{
    (void)state;
    open_link("none");
    struct lh_link_spec spec = parse("loss=1");
    fabric_link_set(endpoint, &spec);
    assert_int_equal(post(0, 0, 5, 100), 5);
    assert_int_equal(stats.link_dropped, 5);
    run();
    assert_int_equal(inner.given_count, 0);
    close_link();
}

static void a_longer_link_gets_more_memory_and_keeps_its_packets(void **state)
{
    (void)state;
    open_link("rate=1Gbit,delay=1ms");
    assert_int_equal(post(0, 0, 2, 100), 2);
    struct lh_link_spec spec = parse("rate=10Gbit,delay=10ms");
    fabric_link_set(endpoint, &spec);
    assert_int_equal(post(0, 2, 2, 100), 2);
    pump(0, 2 * LH_NS_PER_MS);
    assert_int_equal(inner.given_count, 2);
    spec = parse("rate=1Gbit,delay=1ms"); /* less: the memory stays */
    fabric_link_set(endpoint, &spec);
    run();
    assert_int_equal(inner.given_count, 4);
    close_link();
}

static void an_endpoint_dies_with_packets_in_flight(void **state)
{
    (void)state;
    open_link("delay=1ms,duplicate=0.5,jitter=1ms");
    post_many(500, 100);
    inner.takes = 3;
    pump(0, 3 * LH_NS_PER_MS);
    close_link();
}

static void arrival_times_are_the_inner_fabrics(void **state)
{
    (void)state;
    open_link("delay=1ms");
    assert_int_equal(link_fabric->ops->arrived(endpoint, 1), 1001);
    close_link();
}

/* ---- what the inner fabric does by itself -------------------------------------------------------------- */

/* The last call that a link passed on, and its arguments. */
static struct passed {
    const char *call;
    const void *of;
    uint64_t number;
    const void *first, *second;
} passed;

static int inner_slot_bind(struct fabric_endpoint *which, uint32_t slot, const struct fabric_slot *what,
                           struct fabric_slot_key *key)
{
    passed = (struct passed){"slot_bind", which, slot, what, key};
    return -LH_ERANGE;
}

static void inner_slot_unbind(struct fabric_endpoint *which, uint32_t slot)
{
    passed = (struct passed){.call = "slot_unbind", .of = which, .number = slot};
}

static void inner_slots_idle(struct fabric_endpoint *which)
{
    passed = (struct passed){.call = "slots_idle", .of = which};
}

static int inner_poll(struct fabric_endpoint *which, uint32_t channel, struct fabric_arrival *arrivals,
                      uint32_t count)
{
    passed = (struct passed){"poll", which, channel, arrivals, NULL};
    return (int)count - 1;
}

static int inner_control_poll(struct fabric_endpoint *which, struct fabric_control_arrival *arrivals,
                              uint32_t count)
{
    passed = (struct passed){.call = "control_poll", .of = which, .first = arrivals};
    return (int)count - 2;
}

static void inner_control_proven(struct fabric_endpoint *which,
                                 const struct fabric_control_arrival *arrival)
{
    passed = (struct passed){.call = "control_proven", .of = which, .first = arrival};
}

static uint32_t inner_poll_fds(struct fabric_endpoint *which, uint32_t channel, int *fds)
{
    passed = (struct passed){"poll_fds", which, channel, fds, NULL};
    return 2;
}

static void inner_punch(struct fabric_endpoint *which, uint32_t proof)
{
    passed = (struct passed){.call = "punch", .of = which, .number = proof};
}

static bool inner_takes_pieces(struct fabric_endpoint *which)
{
    passed = (struct passed){.call = "takes_pieces", .of = which};
    return true;
}

static void inner_count_drops(struct fabric_endpoint *which)
{
    passed = (struct passed){.call = "count_drops", .of = which};
}

static const char *inner_warning(struct fabric *fabric)
{
    passed = (struct passed){.call = "warning", .of = fabric};
    return "buffers are small";
}

static uint64_t inner_released(struct fabric_endpoint *which, uint32_t channel)
{
    (void)which;
    (void)channel;
    return 0;
}

static int failing_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                                   struct fabric_endpoint **out)
{
    (void)fabric;
    (void)attr;
    (void)out;
    return lh_fail(LH_ERANGE, "as it likes");
}

static int failing_endpoint_connect(struct fabric_endpoint *which, const struct qp_info_endpoint *peer)
{
    (void)which;
    return lh_fail(LH_EADDR, "not to family %u", peer->family);
}

static struct fabric_peer_traits inner_traits(const struct qp_info_endpoint *peer)
{
    (void)peer;
    return (struct fabric_peer_traits){.drops_unread = true};
}

static struct fabric_ops full_ops(void)
{
    struct fabric_ops ops = inner_ops;
    ops.slot_bind = inner_slot_bind;
    ops.slot_unbind = inner_slot_unbind;
    ops.slots_idle = inner_slots_idle;
    ops.poll = inner_poll;
    ops.control_poll = inner_control_poll;
    ops.control_proven = inner_control_proven;
    ops.poll_fds = inner_poll_fds;
    ops.punch = inner_punch;
    ops.takes_pieces = inner_takes_pieces;
    ops.count_drops = inner_count_drops;
    ops.warning = inner_warning;
    ops.released = inner_released;
    ops.peer_traits = inner_traits;
    ops.outruns_path = ops.local_is_direct = ops.long_control = true;
    return ops;
}

static void was_passed(const char *call, const void *of, uint64_t number, const void *first)
{
    assert_non_null(passed.call);
    assert_string_equal(passed.call, call);
    assert_ptr_equal(passed.of, of);
    assert_int_equal(passed.number, number);
    assert_ptr_equal(passed.first, first);
    passed = (struct passed){0};
}

static void calls_are_passed_on(void **state)
{
    (void)state;
    const struct fabric_ops ops = full_ops();
    struct fabric_slot slot = {0};
    struct fabric_slot_key key;
    struct fabric_arrival arrivals[4];
    struct fabric_control_arrival control[4];
    int fds[FABRIC_POLL_FDS_MAX];
    open_link("delay=1ms");
    inner.base.ops = &ops; /* from here on it has them */
    const struct fabric_ops *link = link_fabric->ops;
    assert_int_equal(link->slot_bind(endpoint, 3, &slot, &key), -LH_ERANGE);
    assert_ptr_equal(passed.second, &key);
    was_passed("slot_bind", &inner.endpoint, 3, &slot);
    link->slot_unbind(endpoint, 4);
    was_passed("slot_unbind", &inner.endpoint, 4, NULL);
    link->slots_idle(endpoint);
    was_passed("slots_idle", &inner.endpoint, 0, NULL);
    assert_int_equal(link->poll(endpoint, 2, arrivals, 4), 3);
    was_passed("poll", &inner.endpoint, 2, arrivals);
    assert_int_equal(link->control_poll(endpoint, control, 4), 2);
    was_passed("control_poll", &inner.endpoint, 0, control);
    link->control_proven(endpoint, &control[1]);
    was_passed("control_proven", &inner.endpoint, 0, &control[1]);
    assert_int_equal(link->poll_fds(endpoint, 1, fds), 2);
    was_passed("poll_fds", &inner.endpoint, 1, fds);
    link->punch(endpoint, 0xABCD);
    was_passed("punch", &inner.endpoint, 0xABCD, NULL);
    link->count_drops(endpoint);
    was_passed("count_drops", &inner.endpoint, 0, NULL);
    assert_string_equal(link->warning(link_fabric), "buffers are small");
    was_passed("warning", &inner.base, 0, NULL);
    close_link();
}

static void calls_that_the_inner_fabric_lacks(void **state)
{
    (void)state;
    struct fabric_control_arrival arrival = {0};
    open_link("delay=1ms");
    const struct fabric_ops *link = link_fabric->ops;
    link->slots_idle(endpoint);
    link->punch(endpoint, 1);
    link->control_proven(endpoint, &arrival);
    link->count_drops(endpoint);
    assert_null(link->warning(link_fabric));
    assert_null(link->takes_pieces);
    assert_null(link->peer_traits);
    assert_false(link->outruns_path || link->local_is_direct || link->long_control);
    struct fabric_ops ops = inner_ops;
    ops.arrived = NULL;
    inner.base.ops = &ops;
    assert_int_equal(link->arrived(endpoint, 1), 0);
    close_link();
}

static void open_over(const struct fabric_ops *ops, const char *text)
{
    const struct lh_link_spec spec = parse(text);
    memset(&inner, 0, sizeof(inner));
    inner.base.ops = ops;
    inner.takes = FABRIC_BATCH_MAX;
    assert_int_equal(fabric_link_open(&inner.base, &spec, &link_fabric), 0);
}

static void what_an_inner_fabric_is_the_link_is(void **state)
{
    (void)state;
    const struct fabric_ops ops = full_ops();
    const struct fabric_endpoint_attr attr = {.channels = CHANNELS, .stats = &stats};
    open_over(&ops, "none");
    const struct fabric_ops *link = link_fabric->ops;
    assert_ptr_equal(link->peer_traits, inner_traits);
    assert_true(link->outruns_path && link->local_is_direct && link->long_control);
    assert_int_equal(link->endpoint_create(link_fabric, &attr, &endpoint), 0);
    assert_true(link->takes_pieces(endpoint));
    was_passed("takes_pieces", &inner.endpoint, 0, NULL);
    /* Without emulation payload is lent, for the link says at once that it is released. */
    assert_null(link->released);
    assert_int_equal(post(1, 7, 3, 100), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(inner.given[i].borrowed);
        assert_int_equal(inner.given[i].immediate, 7 + i);
    }
    close_link();
}

static void an_inner_fabric_may_fail(void **state)
{
    (void)state;
    struct fabric_ops ops = full_ops();
    const struct fabric_endpoint_attr attr = {.channels = CHANNELS, .stats = &stats};
    const struct qp_info_endpoint peer = {.family = 4};
    ops.endpoint_create = failing_endpoint_create;
    open_over(&ops, "delay=1ms");
    assert_int_equal(link_fabric->ops->endpoint_create(link_fabric, &attr, &endpoint), -LH_ERANGE);
    assert_string_equal(lh_last_error(), "as it likes");
    ops.endpoint_create = inner_endpoint_create;
    ops.endpoint_connect = failing_endpoint_connect;
    assert_int_equal(link_fabric->ops->endpoint_create(link_fabric, &attr, &endpoint), 0);
    assert_int_equal(link_fabric->ops->endpoint_connect(endpoint, &peer), -LH_EADDR);
    assert_string_equal(lh_last_error(), "not to family 4");
    close_link();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_leave_at_their_nanosecond),
        cmocka_unit_test(ipv4_headers_are_shorter),
        cmocka_unit_test(payload_is_padded_on_the_wire),
        cmocka_unit_test(all_lanes_share_the_bottleneck),
        cmocka_unit_test(time_does_not_go_back_for_the_link),
        cmocka_unit_test(only_its_own_pump_lets_a_packet_go),
        cmocka_unit_test(the_order_of_a_channel_is_kept),
        cmocka_unit_test(a_full_queue_pushes_back_and_says_until_when),
        cmocka_unit_test(a_tail_drop_queue_drops_instead),
        cmocka_unit_test(what_is_held_is_bounded),
        cmocka_unit_test(the_bound_is_what_the_link_can_hold),
        cmocka_unit_test(a_full_rate_is_reached),
        cmocka_unit_test(the_lost_are_counted),
        cmocka_unit_test(a_duplicate_goes_twice),
        cmocka_unit_test(the_reordered_are_overtaken),
        cmocka_unit_test(the_corrupted_carry_a_bit),
        cmocka_unit_test(every_bit_can_be_hit),
        cmocka_unit_test(one_seed_has_one_fate),
        cmocka_unit_test(what_the_inner_fabric_does_not_take_waits_in_order),
        cmocka_unit_test(one_pump_gives_a_bounded_number_of_batches),
        cmocka_unit_test(a_copy_is_lent),
        cmocka_unit_test(none_passes_straight_through),
        cmocka_unit_test(passing_through_a_full_inner_fabric_says_when_to_retry),
        cmocka_unit_test(a_change_leaves_what_is_in_flight),
        cmocka_unit_test(a_change_leaves_what_waits_for_the_bottleneck),
        cmocka_unit_test(a_change_can_start_emulation),
        cmocka_unit_test(a_longer_link_gets_more_memory_and_keeps_its_packets),
        cmocka_unit_test(an_endpoint_dies_with_packets_in_flight),
        cmocka_unit_test(arrival_times_are_the_inner_fabrics),
        cmocka_unit_test(calls_are_passed_on),
        cmocka_unit_test(calls_that_the_inner_fabric_lacks),
        cmocka_unit_test(what_an_inner_fabric_is_the_link_is),
        cmocka_unit_test(an_inner_fabric_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
