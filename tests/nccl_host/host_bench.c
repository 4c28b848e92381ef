/*
 * host_bench.c - the rate between two ranks with NCCL's own window: rank 0 sends, rank 1 receives. A channel
 * has a buffer of 4 MiB in slices of 1 MiB, as NCCL's Simple protocol with its defaults.
 *
 * --acknowledge shows what a plugin gets whose sends are done when the peer has them: a slot is free when an
 * empty message of rank 1 has come back for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "nccl_host/host_net.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHANNELS_MAX 32
#define SLOTS_MAX    8
#define WARM_UP_S    2.0

struct options {
    int rank, channels, slots;
    size_t slice;
    double seconds;
    bool acknowledge;
    const char *meet;
};

struct channel {
    void *data, *acknowledgements; /* comms */
    unsigned char *slot[SLOTS_MAX];
    void *request[SLOTS_MAX], *answer[SLOTS_MAX]; /* of the data; of the acknowledgement */
    uint64_t posted, done;
};

static struct channel channels[CHANNELS_MAX];

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- meeting: handles in files ------------------------------------------------------------------------- */

static void write_handle(const struct options *options, const char *name, const char *handle)
{
    char path[512], final[512];
    snprintf(path, sizeof path, "%s/.%s", options->meet, name);
    snprintf(final, sizeof final, "%s/%s", options->meet, name);
    FILE *file = fopen(path, "we");
    if (!file || fwrite(handle, NCCL_HANDLE_BYTES, 1, file) != 1 || fclose(file) || rename(path, final))
        fail("%s: %s", final, strerror(errno));
}

static bool read_handle(const struct options *options, const char *name, char *handle)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", options->meet, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool whole = fread(handle, NCCL_HANDLE_BYTES, 1, file) == 1;
    fclose(file);
    return whole;
}

/* Connects one comm: this rank listens or connects. */
static void *meet(const struct net *net, const struct options *options, const char *name, bool listens)
{
    char handle[NCCL_HANDLE_BYTES];
    void *comm = NULL, *listen = listens ? net_listen(net, handle) : NULL;
    if (listens)
        write_handle(options, name, handle);
    while (!listens && !read_handle(options, name, handle))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    while (!comm) {
        comm = listens ? net_accept(net, listen) : net_connect(net, handle);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    if (listens)
        net_close_listen(net, listen);
    return comm;
}

static void connect_channels(const struct net *net, const struct options *options)
{
    char name[32];
    for (int i = 0; i < options->channels; i++) {
        snprintf(name, sizeof name, "data%d", i);
        channels[i].data = meet(net, options, name, options->rank == 1);
        snprintf(name, sizeof name, "answer%d", i);
        if (options->acknowledge)
            channels[i].acknowledgements = meet(net, options, name, options->rank == 0);
        for (int j = 0; j < options->slots; j++) {
            channels[i].slot[j] = malloc(options->slice);
            CHECK(channels[i].slot[j]);
            memset(channels[i].slot[j], j, options->slice);
        }
    }
}

/* ---- the two ranks ------------------------------------------------------------------------------------- */

static bool send_turn(const struct net *net, const struct options *options, struct channel *channel)
{
    uint64_t slots = (uint64_t)options->slots, oldest = channel->done % slots,
             next = channel->posted % slots;
    if (channel->done < channel->posted) {
        bool done = !channel->request[oldest] || net_test(net, channel->request[oldest], NULL);
        if (done)
            channel->request[oldest] = NULL;
        if (done && options->acknowledge && !net_test(net, channel->answer[oldest], NULL))
            return false;
        channel->done += done;
    }
    if (channel->posted - channel->done == slots)
        return false;
    channel->request[next] = net_isend(net, channel->data, channel->slot[next], options->slice, 0);
    if (!channel->request[next])
        return false;
    if (options->acknowledge) {
        static char nothing[8];
        void *data = nothing;
        size_t bytes = sizeof nothing;
        int tag = 0;
        channel->answer[next] = net_irecv(net, channel->acknowledgements, 1, &data, &bytes, &tag);
        CHECK(channel->answer[next]);
    }
    channel->posted++;
    return true;
}

/* Returns the bytes of a slice that arrived, else 0. */
static size_t receive_turn(const struct net *net, const struct options *options, struct channel *channel)
{
    uint64_t slots = (uint64_t)options->slots, oldest = channel->done % slots,
             next = channel->posted % slots;
    int bytes = 0, tag = 0;
    if (channel->posted - channel->done < slots) {
        void *data = channel->slot[next];
        channel->request[next] = net_irecv(net, channel->data, 1, &data, &options->slice, &tag);
        channel->posted += channel->request[next] != NULL;
    }
    if (channel->done == channel->posted || !net_test(net, channel->request[oldest], &bytes))
        return 0;
    if (options->acknowledge) { /* its own request is done at once: the message is empty */
        while (channel->answer[oldest] && !net_test(net, channel->answer[oldest], NULL))
            continue;
        channel->answer[oldest] = net_isend(net, channel->acknowledgements, channel->slot[oldest], 0, 0);
        CHECK(channel->answer[oldest]);
    }
    channel->done++;
    return (size_t)bytes;
}

/* Rank 1 says that it has ended, and waits until rank 0 has: an error of rank 0 would be one of the path. */
static void end_together(const struct options *options)
{
    char handle[NCCL_HANDLE_BYTES] = "";
    write_handle(options, options->rank ? "stop" : "stopped", handle);
    while (options->rank && !read_handle(options, "stopped", handle))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void send_all(const struct net *net, const struct options *options)
{
    char path[512];
    snprintf(path, sizeof path, "%s/stop", options->meet);
    for (double looked = seconds(), now; access(path, F_OK);)
        do {
            bool moved = false;
            for (int i = 0; i < options->channels; i++)
                moved |= send_turn(net, options, &channels[i]);
            if (!moved)
                sched_yield();
            now = seconds();
        } while (now - looked < 0.1 || (looked = now, false));
}

static void receive_all(const struct net *net, const struct options *options)
{
    double first = 0, began = 0, now = 0;
    uint64_t bytes = 0;
    while (first == 0 || now - first < options->seconds) {
        size_t arrived = 0;
        for (int i = 0; i < options->channels; i++)
            arrived += receive_turn(net, options, &channels[i]);
        if (!arrived)
            sched_yield();
        now = seconds();
        if (arrived && first == 0)
            first = now;
        if (began > 0)
            bytes += arrived;
        else if (first > 0 && now - first >= WARM_UP_S)
            began = now;
    }
    printf(
        "{\"channels\": %d, \"acknowledge\": %s, \"slots\": %d, \"slice_bytes\": %zu, \"seconds\": %.2f, "
        "\"bytes\": %llu, \"rate_bps\": %.0f}\n",
        options->channels, options->acknowledge ? "true" : "false", options->slots, options->slice,
        now - began, (unsigned long long)bytes, 8 * (double)bytes / (now - began));
    fflush(stdout);
}

static void parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--acknowledge")) {
            options->acknowledge = true;
            continue;
        }
        if (!strcmp(argv[i], "--rank"))
            options->rank = atoi(value);
        else if (!strcmp(argv[i], "--meet"))
            options->meet = value;
        else if (!strcmp(argv[i], "--channels"))
            options->channels = atoi(value);
        else if (!strcmp(argv[i], "--slots"))
            options->slots = atoi(value);
        else if (!strcmp(argv[i], "--slice"))
            options->slice = strtoull(value, NULL, 0);
        else if (!strcmp(argv[i], "--seconds"))
            options->seconds = atof(value);
        else
            fail("%s: unknown (use --rank, --meet, --channels, --slots, --slice, --seconds, --acknowledge)",
                 argv[i]);
        i++;
    }
    if (!options->meet || options->rank < 0 || options->rank > 1 || options->channels < 1 ||
        options->channels > CHANNELS_MAX || options->slots < 1 || options->slots > SLOTS_MAX ||
        options->slice < 1 || options->seconds <= WARM_UP_S)
        fail("--rank 0 or 1, --meet FOLDER, --channels 1 to %d, --slots 1 to %d, --seconds above %.0f",
             CHANNELS_MAX, SLOTS_MAX, WARM_UP_S);
}

/* bench --rank R --meet FOLDER [--channels N] [--slots N] [--slice BYTES] [--seconds S] [--acknowledge] */
int bench_main(int argc, char **argv)
{
    struct options options = {
        .rank = -1, .channels = 1, .slots = 4, .slice = (size_t)1 << 20, .seconds = 10};
    parse(argc, argv, &options);
    const struct net *net = net_load(net_newest(VERSION_LAST));
    net_init(net);
    connect_channels(net, &options);
    if (options.rank == 0)
        send_all(net, &options);
    else
        receive_all(net, &options);
    end_together(&options);
    for (int i = 0; i < options.channels; i++) {
        struct channel *channel = &channels[i];
        bool sends = options.rank == 0;
        (sends ? net_close_send : net_close_recv)(net, channel->data);
        if (options.acknowledge)
            (sends ? net_close_recv : net_close_send)(net, channel->acknowledgements);
        for (int j = 0; j < options.slots; j++)
            free(channel->slot[j]);
    }
    net_finalize(net);
    return 0;
}
