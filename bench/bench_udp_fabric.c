/*
 * The udp fabric by itself, one way over loopback: placement, all checks and the iCRC at both ends, but no
 * SDR layer. A credit in shared memory stands for its flow control. To be read beside bench_udp_raw.
 *
 * usage: bench_udp_fabric [--device udp:[::1]] [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/device_registry.h"

#include <stdlib.h>
#include <string.h>

#include <longhaul/error.h>

#include "report.h"
#include "two_cores.h"

#define SLOTS 2u /* one fills while the other is bound again */

struct side {
    struct fabric *fabric;
    struct fabric_endpoint *endpoint;
    struct qp_info_endpoint info;
    struct lh_stats stats;
};

struct run {
    struct bench_credit credit;
    struct side sender;
    struct side receiver;
    uint8_t *source;
    uint8_t *destination;
    _Atomic uint64_t *received;
    /* Of the message that is sent next: the receiver binds, then counts messages up. */
    _Alignas(64) _Atomic uint64_t bound;
    struct fabric_slot_key keys[SLOTS];
};

static void check(int error)
{
    if (error >= 0)
        return;
    fprintf(stderr, "bench_udp_fabric: %s\n", lh_last_error());
    exit(1);
}

static void open_side(struct side *side, const char *device)
{
    struct fabric_endpoint_attr attr = {
        .channels = 1,
        .generations = 4,
        .mtu_bytes = BENCH_MTU,
        .slots = SLOTS,
        .slot_bytes = BENCH_MESSAGE_BYTES,
        .stripe_packets = 16,
        .split = IMMEDIATE_SPLIT_10_18_4,
        .stats = &side->stats,
    };
    check(fabric_open(device, 0, &side->fabric));
    check(side->fabric->ops->endpoint_create(side->fabric, &attr, &side->endpoint));
    side->fabric->ops->endpoint_info(side->endpoint, &side->info);
}

static void *send_all(void *context)
{
    struct run *run = context;
    const struct fabric_ops *ops = run->sender.fabric->ops;
    struct fabric_write writes[60]; /* four bursts of 15 */
    uint64_t sent = 0;
    for (uint64_t message = 0;; message++) {
        uint32_t slot = (uint32_t)(message % SLOTS);
        while (atomic_load_explicit(&run->bound, memory_order_acquire) <= message) {
            if (atomic_load_explicit(&run->credit.over, memory_order_relaxed))
                return NULL;
        }
        for (uint32_t packet = 0; packet < BENCH_MESSAGE_PACKETS;) {
            if (!bench_may_send(&run->credit, sent))
                return NULL;
            uint32_t count = 0;
            for (; count < 60 && packet + count < BENCH_MESSAGE_PACKETS; count++) {
                uint64_t offset = (uint64_t)(packet + count) * BENCH_MTU;
                struct immediate_fields fields = {slot, packet + count, 0};
                writes[count] = (struct fabric_write){
                    .payload = run->source + offset,
                    .bytes = BENCH_MTU,
                    .va = run->keys[slot].base + offset,
                    .rkey = run->keys[slot].rkey,
                    .immediate = immediate_join(IMMEDIATE_SPLIT_10_18_4, fields),
                    .generation = (uint8_t)(message % 4),
                };
            }
            int taken = ops->post_writes(run->sender.endpoint, 0, writes, count);
            check(taken);
            packet += (uint32_t)taken;
            sent += (uint32_t)taken;
        }
    }
}

static void bind_next(struct run *run, uint64_t message)
{
    uint32_t slot = (uint32_t)(message % SLOTS);
    const size_t words = BENCH_MESSAGE_PACKETS / 64;
    struct fabric_slot what = {
        .base = run->destination,
        .length_bytes = BENCH_MESSAGE_BYTES,
        .generation = (uint8_t)(message % 4),
        .received = run->received + slot * words,
    };
    memset((void *)(run->received + slot * words), 0, words * sizeof *run->received);
    check(run->receiver.fabric->ops->slot_bind(run->receiver.endpoint, slot, &what, &run->keys[slot]));
    atomic_store_explicit(&run->bound, message + 1, memory_order_release);
}

static void *receive_all(void *context)
{
    struct run *run = context;
    const struct fabric_ops *ops = run->receiver.fabric->ops;
    uint64_t arrived = 0;
    uint64_t message = 0;
    bind_next(run, 0);
    while (!atomic_load_explicit(&run->credit.over, memory_order_relaxed)) {
        struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
        int got = ops->poll(run->receiver.endpoint, 0, arrivals, FABRIC_BATCH_MAX);
        check(got);
        if (got == FABRIC_POLL_AGAIN)
            continue;
        for (int i = 0; i < got; i++) {
            struct immediate_fields fields = immediate_part(IMMEDIATE_SPLIT_10_18_4, arrivals[i].immediate);
            _Atomic uint64_t *words = run->received + fields.message * (BENCH_MESSAGE_PACKETS / 64);
            uint64_t word = atomic_load_explicit(&words[fields.packet / 64], memory_order_relaxed);
            atomic_store_explicit(&words[fields.packet / 64], word | (uint64_t)1 << (fields.packet % 64),
                                  memory_order_relaxed);
        }
        arrived += (uint32_t)got;
        if (arrived == (message + 1) * BENCH_MESSAGE_PACKETS) {
            ops->slot_unbind(run->receiver.endpoint, (uint32_t)(message % SLOTS));
            message++;
            bind_next(run, message);
        }
        atomic_store_explicit(&run->credit.arrived, arrived, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct run run;
    const char *device = "udp:[::1]";
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--device") == 0)
            device = argv[i + 1];
    }
    open_side(&run.sender, device);
    open_side(&run.receiver, device);
    check(run.sender.fabric->ops->endpoint_connect(run.sender.endpoint, &run.receiver.info));
    check(run.receiver.fabric->ops->endpoint_connect(run.receiver.endpoint, &run.sender.info));
    run.source = malloc(BENCH_MESSAGE_BYTES);
    run.destination = malloc(BENCH_MESSAGE_BYTES);
    run.received = calloc(SLOTS * BENCH_MESSAGE_PACKETS / 64, sizeof *run.received);
    if (run.source == NULL || run.destination == NULL || run.received == NULL)
        return 1;
    memset(run.source, 1, BENCH_MESSAGE_BYTES);
    memset(run.destination, 2, BENCH_MESSAGE_BYTES);
    double gbps = bench_run(&run.credit, send_all, receive_all, &run);
    const struct lh_stats *stats = &run.receiver.stats;
    printf("bad packets %llu; dropped by the kernel %llu\n",
           (unsigned long long)lh_stats_bad_packets(stats), (unsigned long long)stats->rx_socket_drops);
    printf("udp fabric alone on %s, iCRC on: %.1f Gbit/s\n", device, gbps);
    FILE *json = report_open(argc, argv);
    report_line(json, "udp_fabric", gbps, "Gbit/s", "", 0, 1);
    if (json != NULL)
        fclose(json);
    return 0;
}
