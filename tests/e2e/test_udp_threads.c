/*
 * The udp fabric as it is used: a thread for each channel at both ends, one for control, all at once. For
 * the thread sanitizer above all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_state.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/own_network.h"
#include "support/udp_pair.h"

#define CHANNELS 4u
#define ROUNDS   6u

struct run {
    struct udp_pair pair;
    struct udp_message *message;
    /* Of each channel: packets that arrived. The sender stays at most a window ahead. */
    _Atomic uint32_t arrived[CHANNELS];
    uint32_t wanted[CHANNELS];
    _Atomic uint32_t control_arrived;
    _Atomic bool over;
};

/* How the packets of both endpoints arrive. */
enum way {
    TWO_FABRICS,
    ONE_FABRIC,
    CHANGING, /* one fabric, and direct sockets for some of the time */
};

struct worker {
    struct run *run;
    uint32_t channel;
};

static void *send_channel(void *context)
{
    const struct worker *worker = context;
    struct run *run = worker->run;
    uint32_t sent = 0;
    for (uint32_t p = 0; p < run->message->packets;) {
        struct fabric_write writes[16];
        uint32_t count = 0;
        for (; count < 16 && p < run->message->packets; p++) {
            if (fabric_channel_of(p, run->pair.attr.stripe_packets, CHANNELS) == worker->channel)
                writes[count++] = udp_pair_write(&run->pair, run->message, p);
        }
        while (sent + count > atomic_load(&run->arrived[worker->channel]) + UDP_PAIR_WINDOW)
            sched_yield();
        for (uint32_t done = 0; done < count;) {
            int taken = run->pair.sender.fabric->ops->post_writes(
                run->pair.sender.endpoint, worker->channel, writes + done, count - done);
            assert_true(taken >= 0);
            done += (uint32_t)taken;
        }
        sent += count;
    }
    return NULL;
}

static void *receive_channel(void *context)
{
    const struct worker *worker = context;
    struct run *run = worker->run;
    uint32_t arrived = 0;
    while (arrived < run->wanted[worker->channel]) { /* the test's time limit ends what hangs */
        struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
        int got = run->pair.receiver.fabric->ops->poll(run->pair.receiver.endpoint, worker->channel,
                                                       arrivals, FABRIC_BATCH_MAX);
        assert_true(got >= 0);
        if (got == FABRIC_POLL_AGAIN) /* another thread was reading */
            got = 0;
        for (int i = 0; i < got; i++) {
            uint32_t packet = immediate_part(run->pair.attr.split, arrivals[i].immediate).packet;
            uint64_t bit = (uint64_t)1 << (packet % 64);
            assert_false(atomic_fetch_or(&run->message->received[packet / 64], bit) & bit);
        }
        arrived += (uint32_t)got;
        atomic_store(&run->arrived[worker->channel], arrived);
        if (got == 0)
            sched_yield();
    }
    return NULL;
}

/* Both endpoints' control, in one thread, so that neither inbox fills. */
static void *exchange_control(void *context)
{
    struct run *run = context;
    const struct fabric_ops *ops = run->pair.sender.fabric->ops;
    struct udp_side *sides[2] = {&run->pair.sender, &run->pair.receiver};
    static const uint8_t text[100];
    struct fabric_datagram datagram = {text, sizeof text, 0};
    struct fabric_control_arrival arrivals[4];
    while (!atomic_load(&run->over)) {
        for (size_t i = 0; i < 2; i++) {
            assert_true(ops->control_send(sides[i]->endpoint, &datagram, 1) >= 0);
            int got = ops->control_poll(sides[i]->endpoint, arrivals, 4);
            assert_true(got >= 0);
            atomic_fetch_add(&run->control_arrived, (uint32_t)got);
        }
        sched_yield();
    }
    return NULL;
}

static void set_slots(struct udp_fabric *fabric, uint32_t socket_slots)
{
    pthread_mutex_lock(&fabric->lock);
    for (uint32_t i = 0; i < CHANNELS; i++)
        fabric->ports[i]->slots_max = socket_slots;
    pthread_mutex_unlock(&fabric->lock);
}

/* Reads for all endpoints, and takes the direct sockets away now and then. */
static void *poll_shared(void *context)
{
    struct run *run = context;
    struct fabric *fabric = run->pair.receiver.fabric;
    struct udp_endpoint *receiver = (struct udp_endpoint *)run->pair.receiver.endpoint;
    for (uint32_t round = 1; !atomic_load(&run->over); round++) {
        fabric->ops->shared_poll(fabric);
        fabric->ops->count_drops(run->pair.receiver.endpoint);
        struct udp_direct *direct = udp_direct_of(receiver->channels[round % CHANNELS]);
        if (round == 50)
            set_slots((struct udp_fabric *)fabric, 1);
        if (round % 16 == 0 && direct != NULL)
            atomic_store(&direct->leave, true);
        sched_yield();
    }
    return NULL;
}

static void open_pair(struct udp_pair *pair, const struct fabric_endpoint_attr *attr, enum way way)
{
    assert_true(udp_pair_open_as(pair, "udp:[::1]", way == TWO_FABRICS ? "udp:[::1]" : NULL, attr, false));
    if (way != CHANGING)
        return;
    udp_pair_leave(pair);
    struct fabric *fabric = pair->sender.fabric;
    set_slots((struct udp_fabric *)fabric, 0);
    udp_pair_join(pair, fabric, fabric, attr);
}

static void run_once(struct run *run, uint32_t slot, enum way way)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.channels = CHANNELS;
    open_pair(&run->pair, &attr, way);
    run->message = udp_pair_bind(&run->pair, slot, 0, (uint64_t)8 << 20 | 77);
    for (uint32_t p = 0; p < run->message->packets; p++)
        run->wanted[fabric_channel_of(p, attr.stripe_packets, CHANNELS)]++;
    pthread_t threads[2 * CHANNELS + 2];
    struct worker workers[CHANNELS];
    for (uint32_t i = 0; i < CHANNELS; i++) {
        workers[i] = (struct worker){run, i};
        assert_int_equal(pthread_create(&threads[2 * i], NULL, send_channel, &workers[i]), 0);
        assert_int_equal(pthread_create(&threads[2 * i + 1], NULL, receive_channel, &workers[i]), 0);
    }
    assert_int_equal(pthread_create(&threads[2 * CHANNELS], NULL, exchange_control, run), 0);
    if (way == CHANGING)
        assert_int_equal(pthread_create(&threads[2 * CHANNELS + 1], NULL, poll_shared, run), 0);
    for (uint32_t i = 0; i < 2 * CHANNELS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&run->over, true);
    pthread_join(threads[2 * CHANNELS], NULL);
    if (way == CHANGING)
        pthread_join(threads[2 * CHANNELS + 1], NULL);
    run->message->arrived = run->message->packets; /* each bit was set once */
    udp_message_assert_whole(run->message);
    udp_pair_assert_no_bad(&run->pair);
    assert_true(atomic_load(&run->control_arrived) > 0);
    udp_pair_close(&run->pair);
}

static void test_all_at_once(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct run *run = calloc(1, sizeof *run);
        assert_non_null(run);
        run_once(run, i, (enum way)(i % 3));
        free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_at_once),
    };
    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
