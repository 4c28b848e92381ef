/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_pair.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define SETTLE_NS (200 * LH_NS_PER_MS)
#define STALL_NS  (100 * LH_NS_PER_S) /* no message takes that long: one that does waits for nothing */

static void die(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, lh_last_error());
    exit(1);
}

static struct lh_connection *open_end(const char *device, const struct sim_pair_plan *plan)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.device = device;
    attr.reliability = plan->scheme;
    attr.workers = LH_NO_WORKERS;
    attr.mtu_bytes = 4096;
    attr.chunk_bytes = plan->chunk_bytes;
    attr.slot_bytes = plan->slot_bytes;
    attr.slots = plan->slots;
    attr.window_bytes = plan->window_bytes;
    attr.receive_buffer_bytes = 2 * plan->window_bytes;
    struct lh_connection *connection;
    if (lh_open(&attr, &connection))
        die(plan->scheme);
    return connection;
}

static void attach(struct lh_connection *to, struct lh_connection *from)
{
    char blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    if (lh_blob(from, blob, &bytes) || lh_attach(to, blob, bytes))
        die("attach");
}

static lh_time earlier(lh_time a, lh_time b)
{
    return a < b ? a : b;
}

/* Lets both ends act until nothing is due now, then moves time on. */
static void turn(struct sim_pair *pair)
{
    lh_time next_a;
    lh_time next_b;
    if (lh_progress(pair->sender, &next_a) || lh_progress(pair->receiver, &next_b))
        die("progress");
    lh_time now = sim_world_now(pair->world);
    lh_time next = earlier(next_a, next_b);
    if (next <= now)
        return;
    next = earlier(next, sim_world_next_event(pair->world));
    if (next < now + pair->grain_ns)
        next = now + pair->grain_ns;
    if (next != LH_TIME_NEVER)
        sim_world_advance(pair->world, next);
}

static struct lh_link_spec link_of(const char *text)
{
    struct lh_link_spec link;
    if (lh_link_parse(text, &link))
        die(text);
    return link;
}

void sim_pair_open(struct sim_pair *pair, const struct sim_pair_plan *plan)
{
    struct lh_link_spec link = link_of(plan->link);
    struct lh_link_spec back = link_of(plan->link_back ? plan->link_back : plan->link);
    /* What one pair gives back the next takes: packets of a long link are hundreds of MiB, and the kernel
     * would clear them each time. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    *pair = (struct sim_pair){.grain_ns = plan->grain_ns};
    pair->world = sim_world_create("bench", plan->seed, &link);
    if (!pair->world)
        die("world");
    sim_world_set_direction(pair->world, 1, 0, &back);
    if (plan->burst)
        sim_world_tap(pair->world, burst_loss_passes, plan->burst);
    pair->sender = open_end("sim:bench/0", plan);
    pair->receiver = open_end("sim:bench/1", plan);
    attach(pair->sender, pair->receiver);
    attach(pair->receiver, pair->sender);
    lh_time end = sim_world_now(pair->world) + SETTLE_NS;
    while (sim_world_now(pair->world) < end)
        turn(pair);
}

void sim_pair_close(struct sim_pair *pair)
{
    lh_close(pair->sender);
    lh_close(pair->receiver);
    sim_world_destroy(pair->world);
}

double sim_pair_message(struct sim_pair *pair, const uint8_t *from, uint8_t *to, size_t bytes)
{
    struct lh_request *send;
    struct lh_request *recv;
    struct lh_result sent = {0};
    struct lh_result received = {0};
    if (lh_recv(pair->receiver, to, bytes, NULL, &recv) || lh_send(pair->sender, from, bytes, NULL, &send))
        die("post");
    lh_time end = sim_world_now(pair->world) + STALL_NS;
    while ((lh_test(send, &sent) == 0 || lh_test(recv, &received) == 0) && sim_world_now(pair->world) < end)
        turn(pair);
    if (sent.error || received.error || received.bytes != bytes || sent.bytes != bytes) {
        fprintf(stderr, "bench: message of %zu bytes: errors %d and %d, %llu bytes sent, %llu received\n",
                bytes, sent.error, received.error, (unsigned long long)sent.bytes,
                (unsigned long long)received.bytes);
        exit(1);
    }
    lh_request_free(send);
    lh_request_free(recv);
    return (double)(sent.ended_ns - sent.started_ns) / 1e9;
}
