/*
 * bench_receive_worker.c - how many packet completions a second one core folds into bitmaps, for chunks of
 * 1 to 64 packets; then two threads on two channels. The reference is the paper's: 3.2 Tbit/s of 4 KiB
 * packets are 97.7 million completions a second, which its DPA reaches with 128 threads (section
 * 5.4.3).
 *
 * usage: bench_receive_worker [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "report.h"
#include "sdr/message_table.h"

#define MTU         4096u
#define BATCH       64u
#define PACKETS     16384u  /* of a message: 64 MiB */
#define PACKETS_TWO 262144u /* for two threads: 1 GiB, so that meeting at the end costs nothing */
#define RUNS        9u
#define COMPLETIONS (UINT64_C(16) << 20) /* a run */
#define PAPER       97.7e6
#define STRIPE      64u

struct bench {
    struct message_table table;
    uint32_t packets; /* of a message */
    struct lh_stats stats;
    struct fabric_arrival *arrivals; /* of one use of the slots, in batches */
    uint32_t count;
    uint32_t messages;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct fabric_arrival arrival(uint32_t message, uint32_t packet)
{
    struct immediate_fields fields = {message, packet, 0};
    return (struct fabric_arrival){immediate_join(IMMEDIATE_SPLIT_10_18_4, fields), MTU, 0};
}

static void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory)
        abort();
    return memset(memory, 0, (bytes + 63) / 64 * 64);
}

/* messages 1: packets in order. 2: those of two messages in turn, which no run of one word covers. */
static void setup(struct bench *bench, uint32_t packets, uint32_t chunk_packets, uint32_t messages)
{
    struct message_shape shape = {.slots = 4,
                                  .mtu_bytes = MTU,
                                  .chunk_packets = chunk_packets,
                                  .slot_bytes = (uint64_t)packets * MTU,
                                  .generations = 1,
                                  .split = IMMEDIATE_SPLIT_10_18_4};
    *bench = (struct bench){.packets = packets, .messages = messages, .count = packets * messages};
    message_table_init(&bench->table, &shape, zeroed(shape.slots * sizeof(struct message_slot)));
    uint32_t room = message_table_room(&bench->table, shape.slot_bytes);
    for (uint32_t m = 0; m < messages; m++)
        message_slot_set_memory(&bench->table, m, zeroed(message_table_bytes(&bench->table, room)), room);
    bench->arrivals = zeroed(bench->count * sizeof *bench->arrivals);
    for (uint32_t i = 0; i < bench->count; i++)
        bench->arrivals[i] = arrival(i % messages, i / messages);
}

static void teardown(struct bench *bench)
{
    for (uint32_t m = 0; m < bench->messages; m++)
        free((void *)bench->table.slots[m].packets);
    free(bench->table.slots);
    free(bench->arrivals);
}

static void feed(struct bench *bench, const struct fabric_arrival *arrivals, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += BATCH)
        message_table_on_arrivals(&bench->table, arrivals + i, BATCH, &bench->stats);
}

static void open_all(struct bench *bench)
{
    for (uint32_t m = 0; m < bench->messages; m++)
        message_slot_open(&bench->table, m, (uint64_t)bench->packets * MTU);
}

/* Whoever is fast and wrong is not fast. */
static void close_all(struct bench *bench)
{
    for (uint32_t m = 0; m < bench->messages; m++) {
        if (message_slot_chunks_arrived(&bench->table.slots[m]) != bench->table.chunks_max)
            abort();
        message_slot_close(&bench->table, m);
    }
}

/* Completions a second; opening and closing the slots is part of it, as in life. */
static double run_once(struct bench *bench)
{
    double from = seconds();
    for (uint64_t done = 0; done < COMPLETIONS; done += bench->count) {
        open_all(bench);
        feed(bench, bench->arrivals, bench->count);
        close_all(bench);
    }
    return (double)COMPLETIONS / (seconds() - from);
}

static double median_of(uint32_t chunk_packets, uint32_t messages)
{
    struct bench bench;
    double rates[RUNS];
    setup(&bench, PACKETS, chunk_packets, messages);
    run_once(&bench);
    for (uint32_t i = 0; i < RUNS; i++)
        rates[i] = run_once(&bench);
    teardown(&bench);
    return report_quantile(rates, RUNS, 0.5);
}

/* ---- two threads, each with the stripes of its channel, on one message ---- */

struct worker {
    struct bench *bench;
    struct fabric_arrival *arrivals;
    pthread_barrier_t *barrier;
};

static void *work(void *argument)
{
    const struct worker *worker = argument;
    for (uint64_t done = 0; done < COMPLETIONS; done += PACKETS_TWO) {
        pthread_barrier_wait(worker->barrier); /* the slot is open */
        feed(worker->bench, worker->arrivals, PACKETS_TWO / 2);
        pthread_barrier_wait(worker->barrier); /* everything is there */
    }
    return NULL;
}

/* Thread 0 is the caller's. */
static double run_two(struct worker workers[2])
{
    pthread_t thread;
    double working = 0;
    if (pthread_create(&thread, NULL, work, &workers[1]))
        abort();
    for (uint64_t done = 0; done < COMPLETIONS; done += PACKETS_TWO) {
        open_all(workers[0].bench);
        pthread_barrier_wait(workers[0].barrier);
        double from = seconds();
        feed(workers[0].bench, workers[0].arrivals, PACKETS_TWO / 2);
        pthread_barrier_wait(workers[0].barrier);
        working += seconds() - from;
        close_all(workers[0].bench);
    }
    pthread_join(thread, NULL);
    return (double)COMPLETIONS / working;
}

static double median_of_two(uint32_t chunk_packets)
{
    struct bench bench;
    struct worker workers[2];
    pthread_barrier_t barrier;
    double rates[RUNS];
    setup(&bench, PACKETS_TWO, chunk_packets, 1);
    pthread_barrier_init(&barrier, NULL, 2);
    for (uint32_t c = 0; c < 2; c++) {
        uint32_t count = 0;
        workers[c] =
            (struct worker){&bench, zeroed(PACKETS_TWO / 2 * sizeof(struct fabric_arrival)), &barrier};
        for (uint32_t i = 0; i < PACKETS_TWO; i++)
            if (i / STRIPE % 2 == c)
                workers[c].arrivals[count++] = bench.arrivals[i];
    }
    run_two(workers);
    for (uint32_t i = 0; i < RUNS; i++)
        rates[i] = run_two(workers);
    pthread_barrier_destroy(&barrier);
    for (uint32_t c = 0; c < 2; c++)
        free(workers[c].arrivals);
    teardown(&bench);
    return report_quantile(rates, RUNS, 0.5);
}

static void report(FILE *json, const char *shape, uint32_t chunk_packets, double rate)
{
    char name[64];
    snprintf(name, sizeof name, "receive_worker_%schunk_%u", shape, chunk_packets);
    printf("%-36s %8.1f %8.2f\n", name, rate / 1e6, rate / PAPER);
    report_line(json, name, rate, "completions/s", "paper, 3.2 Tbit/s of 4 KiB packets", PAPER, RUNS);
}

int main(int argc, char **argv)
{
    FILE *json = report_open(argc, argv);
    printf("%-36s %8s %8s\n", "median of 9 runs", "million/s", "of paper");
    for (uint32_t chunk = 1; chunk <= 64; chunk *= 2)
        report(json, "", chunk, median_of(chunk, 1));
    for (uint32_t chunk = 1; chunk <= 64; chunk *= 8)
        report(json, "interleaved_", chunk, median_of(chunk, 2));
    for (uint32_t chunk = 1; chunk <= 64; chunk *= 8)
        report(json, "two_threads_", chunk, median_of_two(chunk));
    if (json)
        fclose(json);
    return 0;
}
