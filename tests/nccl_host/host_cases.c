/*
 * host_cases.c - what NCCL may do with the plugin, case by case. Each case has a process of its own, for the
 * plugin reads its settings once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "nccl_host/host_net.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANG_S    120
#define FRAME     ((size_t)64 << 10) /* of a window of 1 MiB */
#define REQUESTS  256
#define GROUP_MAX 8

static const struct net *begin(void)
{
    const struct net *net = net_load(net_newest(VERSION_LAST));
    net_init(net);
    return net;
}

static void wait_for(const struct net *net, void *request, int *sizes)
{
    while (!net_test(net, request, sizes))
        sched_yield();
}

/* One message from end to end. */
static void exchange(const struct net *net, struct net_pair pair, size_t bytes)
{
    unsigned char *from = malloc(bytes + 1), *to = malloc(bytes + 1);
    int size = -1, tag = 3;
    CHECK(from && to);
    memset(from, 0x5A, bytes + 1);
    memset(to, 0, bytes + 1);
    void *data = to, *receive = net_irecv(net, pair.recv, 1, &data, &bytes, &tag), *send = NULL;
    while (!send)
        send = net_isend(net, pair.send, from, bytes, tag);
    wait_for(net, send, NULL);
    wait_for(net, receive, &size);
    CHECK(size == (int)bytes && !memcmp(from, to, bytes));
    free(from);
    free(to);
}

/* ---- loading, settings --------------------------------------------------------------------------------- */

static void case_versions(void)
{
    CHECK(net_newest(VERSION_LAST) == VERSION_LAST && net_newest(15) == VERSION_LAST);
    CHECK(!net_load(VERSION_FIRST - 1));
    setenv("LONGHAUL_RATE", "2Gbit", 1);
    setenv("LONGHAUL_RTT", "25ms", 1);
    for (int version = VERSION_FIRST; version <= VERSION_LAST; version++) {
        const struct net *net = net_load(version);
        struct net_properties properties;
        CHECK(net && !strcmp(net_name(net), "Longhaul"));
        net_init(net);
        CHECK(version > VERSION_FIRST || strstr(net_last_info(), "table v6") != NULL);
        CHECK(version > VERSION_FIRST || strstr(net_last_info(), "NCCL_MIN_NCHANNELS=1 ") != NULL);
        int count = net_devices(net);
        CHECK(count >= 1 && !net_warnings());
        for (int device = 0; device < count; device++) {
            CHECK(!net_try_properties(net, device, &properties));
            CHECK(properties.name && *properties.name && properties.guid == (uint64_t)device);
            CHECK(properties.memory_kinds == NCCL_MEMORY_HOST && properties.speed == 2000);
            CHECK(properties.latency > 12499 && properties.latency < 12501);
            CHECK(properties.max_comms == 65536 && properties.max_recvs == 1);
            CHECK(version < 9 || (properties.from_v9.count == 1 && properties.from_v9.first == device));
            CHECK(version < 9 || properties.from_v9.max_p2p_bytes == (size_t)1 << 30);
            CHECK(version < 9 || properties.from_v9.max_collective_bytes == (size_t)1 << 30);
        }
        CHECK(net_try_properties(net, count, &properties) && net_try_properties(net, -1, &properties));
        CHECK(net_warnings() == 2);
        struct net_pair pair = net_connect_pair(net);
        exchange(net, pair, 100000);
        net_close_pair(net, pair);
        net_finalize(net);
    }
}

static void case_twice(void)
{
    const char *path = getenv("NCCL_HOST_PLUGIN");
    const struct net *net = begin();
    void *library = dlopen(path ? path : "libnccl-net-longhaul.so", RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    struct net_pair pair = net_connect_pair(net);
    for (int i = 0; i < 20; i++) { /* also as NCCL closes it, once a communicator */
        CHECK(!dlclose(library));
        library = dlopen(path ? path : "libnccl-net-longhaul.so", RTLD_NOW | RTLD_LOCAL);
        CHECK(library);
        net_init(net);
        exchange(net, pair, 1000);
        net_finalize(net);
    }
    net_close_pair(net, pair);
    dlclose(library);
}

/* In a process of its own: init with a variable. Returns its result; *count: of devices. */
static int init_with(const char *name, const char *value, int *count)
{
    int channel[2], answer[2] = {-1, -1}, status = 0;
    CHECK(!pipe(channel));
    pid_t child = fork();
    if (child == 0) {
        CHECK(!setenv(name, value, 1));
        const struct net *net = net_load(VERSION_LAST);
        answer[0] = net_try_init(net);
        answer[1] = answer[0] ? 0 : net_devices(net);
        if (answer[0] && (net_warnings() != 1 || !strstr(net_last_warning(), value)))
            fail("%s=%s: not one warning with the value: %s", name, value, net_last_warning());
        CHECK(answer[0] || !net_warnings());
        CHECK(write(channel[1], answer, sizeof answer) == sizeof answer);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(read(channel[0], answer, sizeof answer) == sizeof answer);
    close(channel[0]);
    close(channel[1]);
    *count = answer[1];
    return answer[0];
}

static void case_settings(void)
{
    static const char *const wrong[][2] = {
        {"LONGHAUL_RELIABILITY", "sr-nonsense"},
        {"LONGHAUL_RELIABILITY", "bounded:deadline=5ms"},
        {"LONGHAUL_RELIABILITY", " "},
        {"LONGHAUL_CONGESTION", "cubic?"},
        {"LONGHAUL_WINDOW", "16 MiB of it"},
        {"LONGHAUL_WINDOW", "0"},
        {"LONGHAUL_WINDOW", "1023KiB"},
        {"LONGHAUL_WINDOW", "2GiB"},
        {"LONGHAUL_WINDOW", "-1"},
        {"LONGHAUL_RATE", "fast"},
        {"LONGHAUL_RATE", "1"},
        {"LONGHAUL_RATE", "101Tbit"},
        {"LONGHAUL_RTT", "25"},
        {"LONGHAUL_RTT", "0ms"},
        {"LONGHAUL_RTT", "61s"},
        {"LONGHAUL_PEER_TIMEOUT", "never"},
        {"LONGHAUL_PEER_TIMEOUT", "25h"},
        {"LONGHAUL_LINK", "loss=2"},
        {"LONGHAUL_SOCKET_IFNAME", "eth,"},
        {"LONGHAUL_SOCKET_IFNAME", "^"},
        {"LONGHAUL_SOCKET_IFNAME", "=no-such-interface"},
        {"NCCL_SOCKET_IFNAME", "=,lo"},
        {"LONGHAUL_KEY_FILE", "/nonexistent/key"},
    };
    static const struct {
        const char *name, *value;
        int least; /* devices */
    } right[] = {
        {"LONGHAUL_SOCKET_IFNAME", "=lo", 1},
        {"LONGHAUL_SOCKET_IFNAME", "l", 1},
        {"LONGHAUL_SOCKET_IFNAME", "nothing,lo", 1},
        {"LONGHAUL_SOCKET_IFNAME", "^nothing", 1},
        {"NCCL_SOCKET_IFNAME", "lo", 1},
        {"LONGHAUL_SOCKET_IFNAME", "", 1},
        {"LONGHAUL_RELIABILITY", "sr-nack", 1},
        {"LONGHAUL_CONGESTION", "bbr", 1},
        {"LONGHAUL_WINDOW", "1GiB", 1},
        {"LONGHAUL_WINDOW", "", 1},
        {"LONGHAUL_LINK", "rtt=1ms,loss=1e-3", 1},
        {"LONGHAUL_UNKNOWN", "x", 1},
    };
    int count;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (init_with(wrong[i][0], wrong[i][1], &count) == 0)
            fail("%s=%s: accepted", wrong[i][0], wrong[i][1]);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        if (init_with(right[i].name, right[i].value, &count) != 0 || count < right[i].least)
            fail("%s=%s: refused", right[i].name, right[i].value);
    CHECK(!init_with("LONGHAUL_SOCKET_IFNAME", "=lo", &count) && count == 1);
}

static void case_memory(void)
{
    const struct net *net = begin();
    struct net_pair pair = net_connect_pair(net);
    void *handle = NULL;
    char data[64];
    CHECK(!net_try_reg(net, pair.send, data, sizeof data, NCCL_MEMORY_HOST, &handle) && handle);
    net_dereg(net, pair.send, handle);
    CHECK(net_try_reg(net, pair.send, data, sizeof data, 2, &handle) == NCCL_INVALID_USAGE);
    CHECK(net_try_reg_dma_buf(net, pair.send, &handle) == NCCL_INVALID_USAGE);
    CHECK(net_warnings() == 2);
    net_close_pair(net, pair);
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

static void case_handles(void)
{
    const struct net *net = begin();
    char handle[NCCL_HANDLE_BYTES], changed[NCCL_HANDLE_BYTES];
    void *listen = net_listen(net, handle), *comm = NULL;
    struct dice dice = {1};
    for (int i = 0; i < 200; i++) { /* of another plugin, of another release, or damaged */
        memcpy(changed, handle, sizeof changed);
        if (i < 8)
            changed[i] ^= 0x10;
        else if (i < 16)
            memset(changed + 8, i < 12 ? 0xFF : 0, i < 12 ? (size_t)(4 + 4 * (i % 2)) : 16);
        else
            for (size_t j = 0; j < sizeof changed; j++)
                changed[j] = (char)dice_throw(&dice);
        CHECK(net_try_connect(net, 0, changed, &comm) == NCCL_INVALID_USAGE && !comm);
    }
    CHECK(net_try_connect(net, 99, handle, &comm) == NCCL_INVALID_USAGE);
    net_close_listen(net, listen);
    net_warnings();
    /* A listener that is gone: an error, not a wait. */
    int where = 24, result = 0;
    memcpy(changed, handle, sizeof changed);
    CHECK(strchr(changed + where, ':'));
    strcpy(strrchr(changed + where, ':'), ":1"); // NOLINT: shorter
    while (!result && !comm) {
        result = net_try_connect(net, 0, changed, &comm);
        sched_yield();
    }
    CHECK(result == NCCL_REMOTE_ERROR && !comm && net_warnings() == 1);
}

/* A listen comm takes several connections, each in the order of its own retries. */
static void case_many(void)
{
    enum { MANY = 40 };
    const struct net *net = begin();
    static char handles[MANY][NCCL_HANDLE_BYTES];
    void *listen[MANY], *send[MANY] = {0}, *recv[MANY] = {0};
    int open = 0;
    for (int i = 0; i < MANY; i++) {
        listen[i] = i % 4 ? listen[i - i % 4] : net_listen(net, handles[i]);
        memcpy(handles[i], handles[i - i % 4], sizeof handles[i]);
    }
    while (open < 2 * MANY) {
        for (int i = MANY - 1; i >= 0; i--) {
            void **ends[] = {&send[i], &recv[i]};
            for (int end = 0; end < 2; end++)
                if (!*ends[end]) {
                    *ends[end] = end ? net_accept(net, listen[i]) : net_connect(net, handles[i]);
                    open += *ends[end] != NULL;
                }
        }
        sched_yield();
    }
    for (int i = 0; i < MANY; i += 4)
        net_close_listen(net, listen[i]);
    for (int i = 0; i < MANY; i++) {
        net_close_send(net, send[i]);
        net_close_recv(net, recv[i]);
    }
    CHECK(!net_warnings());
}

/* Strangers who reach the port, and do not know a token, take no place for long: neither those that send a
 * wrong one, nor those of a listen comm that is gone. */
static void case_strangers(void)
{
    enum { STRANGERS = 100, AT = 16 }; /* AT: of the token in a handle */
    const struct net *net = begin();
    char handle[NCCL_HANDLE_BYTES], wrong[NCCL_HANDLE_BYTES], gone[NCCL_HANDLE_BYTES];
    void *closed = net_listen(net, gone), *listen = net_listen(net, handle);
    net_close_listen(net, closed);
    void *send[STRANGERS] = {0}, *recv = NULL, *own = NULL;
    for (int i = 0; i < STRANGERS; i++) {
        memcpy(wrong, i % 2 ? handle : gone, sizeof wrong);
        wrong[AT] ^= (char)(i % 2);
        while (!send[i])
            send[i] = net_connect(net, wrong);
    }
    CHECK(!net_accept(net, listen));
    while (!own)
        own = net_connect(net, handle);
    while (!recv)
        recv = net_accept(net, listen);
    exchange(net, (struct net_pair){own, recv}, 5000);
    for (int i = 0; i < STRANGERS; i++)
        net_close_send(net, send[i]);
    net_close_listen(net, listen);
    net_close_pair(net, (struct net_pair){own, recv});
}

static void *pairs_run(void *context)
{
    const struct net *net = context;
    for (int i = 0; i < 10; i++) {
        struct net_pair pair = net_connect_pair(net);
        exchange(net, pair, 300000);
        net_close_pair(net, pair);
    }
    return NULL;
}

static void case_threads(void)
{
    const struct net *net = begin();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_create(&threads[i], NULL, pairs_run, (void *)(uintptr_t)net));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* The child of a process that has opened the plugin. */
static void case_fork(void)
{
    const struct net *net = begin();
    struct net_pair pair = net_connect_pair(net);
    char handle[NCCL_HANDLE_BYTES];
    void *listen = net_listen(net, handle), *comm = NULL;
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        CHECK(net_try_init(net) == NCCL_INVALID_USAGE);
        CHECK(net_try_connect(net, 0, handle, &comm) == NCCL_INVALID_USAGE);
        CHECK(net_try_accept(net, listen, &comm) == NCCL_INVALID_USAGE);
        CHECK(net_try_isend(net, pair.send, handle, 1, 0, &comm) == NCCL_INVALID_USAGE && !comm);
        net_close_listen(net, listen);
        net_close_pair(net, pair);
        _exit(0); /* without a sanitizer's look at the parent's memory */
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    exchange(net, pair, 5000);
    net_close_listen(net, listen);
    net_close_pair(net, pair);
}

/* ---- closing ------------------------------------------------------------------------------------------- */

/* Ends after each number of steps of connecting and sending, in whatever state that is. */
static void case_close(void)
{
    const struct net *net = begin();
    unsigned char *data = calloc(1, 4 * FRAME);
    CHECK(data);
    for (int steps = 0; steps < 60; steps++) {
        char handle[NCCL_HANDLE_BYTES];
        void *listen = net_listen(net, handle), *send = NULL, *recv = NULL, *buffer = data + FRAME;
        size_t bytes = 3 * FRAME;
        int tag = 0, left = steps;
        /* Each turn waits for what it began, so that steps mean the same each time. */
        if (left-- > 0)
            send = net_connect(net, handle);
        while (left > 0 && !send)
            send = net_connect(net, handle);
        if (left-- > 0)
            while (!recv)
                recv = net_accept(net, listen);
        bool early = steps % 3 == 0;
        if (early)
            net_close_listen(net, listen);
        for (; left > 0 && send && recv; left--) {
            if (left % 2)
                net_irecv(net, recv, 1, &buffer, &bytes, &tag);
            else
                net_isend(net, send, data, FRAME, tag);
        }
        if (send && steps % 2)
            net_close_send(net, send);
        if (recv)
            net_close_recv(net, recv);
        if (send && steps % 2 == 0)
            net_close_send(net, send);
        if (!early)
            net_close_listen(net, listen);
    }
    free(data);
}

/* What was accepted arrives, though the comm is closed, and its process ends, as soon as sends are done. */
static void case_linger(void)
{
    enum { MESSAGES = 40 };
    int to_sender[2], status = 1, tag = 0;
    char handle[NCCL_HANDLE_BYTES];
    size_t bytes = 2 * FRAME;
    unsigned char *data = malloc(bytes);
    CHECK(!pipe(to_sender) && data);
    pid_t sender = start_process(HANG_S);
    if (sender == 0) {
        const struct net *net = begin();
        void *comm = NULL;
        CHECK(read(to_sender[0], handle, sizeof handle) == sizeof handle);
        while (!comm)
            comm = net_connect(net, handle);
        for (int i = 0; i < MESSAGES; i++) {
            void *request = NULL;
            memset(data, i, bytes);
            while (!request)
                request = net_isend(net, comm, data, bytes, tag);
            wait_for(net, request, NULL);
        }
        net_close_send(net, comm);
        net_finalize(net);
        exit(0);
    }
    const struct net *net = begin();
    void *listen = net_listen(net, handle), *comm = NULL, *buffer = data;
    CHECK(write(to_sender[1], handle, sizeof handle) == sizeof handle);
    while (!comm)
        comm = net_accept(net, listen);
    for (int i = 0; i < MESSAGES; i++) {
        void *request = net_irecv(net, comm, 1, &buffer, &bytes, &tag);
        wait_for(net, request, NULL);
        CHECK(data[0] == i && data[bytes - 1] == i && !memcmp(data, data + 1, bytes - 1));
    }
    CHECK(waitpid(sender, &status, 0) == sender && status == 0);
    net_close_listen(net, listen);
    net_close_recv(net, comm);
    CHECK(!net_warnings());
    free(data);
}

/* Hosts with windows of other sizes: the sender keeps to that of the receiver. */
static void case_windows(void)
{
    static const char *const windows[][2] = {{"1MiB", "256MiB"}, {"256MiB", "1MiB"}};
    int to_sender[2], status = 1, tag = 0;
    size_t bytes = (size_t)32 << 20;
    unsigned char *data = malloc(bytes);
    char handle[NCCL_HANDLE_BYTES];
    for (int i = 0; i < 2; i++) {
        CHECK(!pipe(to_sender) && data);
        pid_t ends[2];
        for (int end = 0; end < 2; end++) {
            ends[end] = start_process(HANG_S);
            if (ends[end] > 0)
                continue;
            setenv("LONGHAUL_WINDOW", windows[i][end], 1);
            const struct net *net = begin();
            void *listen = end ? net_listen(net, handle) : NULL, *comm = NULL, *request = NULL;
            CHECK((end ? write(to_sender[1], handle, sizeof handle)
                       : read(to_sender[0], handle, sizeof handle)) == sizeof handle);
            while (!comm)
                comm = end ? net_accept(net, listen) : net_connect(net, handle);
            void *buffer = data;
            memset(data, end ? 0 : 0x3C, bytes);
            while (!request)
                request = end ? net_irecv(net, comm, 1, &buffer, &bytes, &tag)
                              : net_isend(net, comm, data, bytes, tag);
            wait_for(net, request, NULL);
            CHECK(data[0] == 0x3C && !memcmp(data, data + 1, bytes - 1));
            if (end)
                net_close_recv(net, comm);
            else
                net_close_send(net, comm);
            exit(0);
        }
        for (int end = 0; end < 2; end++)
            CHECK(waitpid(ends[end], &status, 0) == ends[end] && status == 0);
        close(to_sender[0]);
        close(to_sender[1]);
    }
    free(data);
}

/* The sender's process does nothing more once its sends are done: delivery needs no poll of its own. */
static void case_no_poll(void)
{
    int to_sender[2], tag = 0;
    char handle[NCCL_HANDLE_BYTES], byte;
    size_t bytes = 12 * FRAME;
    unsigned char *data = malloc(bytes);
    setenv("LONGHAUL_LINK", "rtt=4ms,loss=0.02,seed=7", 1);
    CHECK(!pipe(to_sender) && data);
    pid_t sender = start_process(HANG_S);
    if (sender == 0) {
        const struct net *net = begin();
        void *comm = NULL, *request = NULL;
        close(to_sender[1]);
        CHECK(read(to_sender[0], handle, sizeof handle) == sizeof handle);
        while (!comm)
            comm = net_connect(net, handle);
        memset(data, 0x77, bytes);
        while (!request)
            request = net_isend(net, comm, data, bytes, tag);
        wait_for(net, request, NULL);
        CHECK(read(to_sender[0], &byte, 1) == 0); /* until the receiver has it */
        exit(0);
    }
    const struct net *net = begin();
    void *listen = net_listen(net, handle), *comm = NULL, *buffer = data;
    int status = 1;
    CHECK(write(to_sender[1], handle, sizeof handle) == sizeof handle);
    while (!comm)
        comm = net_accept(net, listen);
    wait_for(net, net_irecv(net, comm, 1, &buffer, &bytes, &tag), NULL);
    CHECK(data[0] == 0x77 && !memcmp(data, data + 1, bytes - 1));
    close(to_sender[1]);
    CHECK(waitpid(sender, &status, 0) == sender && status == 0);
    net_close_listen(net, listen);
    net_close_recv(net, comm);
    free(data);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* A receive that is shorter than its send: an error of the caller's, and the end of the comm. */
static void case_oversize(void)
{
    const struct net *net = begin();
    for (int i = 0; i < 4; i++) {
        size_t sizes[GROUP_MAX] = {1000, 5000, 3 * FRAME, 10}, sent = sizes[i] + 1;
        struct net_pair pair = net_connect_pair(net);
        unsigned char *data = calloc(2, sent);
        int tag = 0, done = 0, result = 0;
        void *buffer = data, *request = net_irecv(net, pair.recv, 1, &buffer, &sizes[i], &tag),
             *next = NULL;
        CHECK(data);
        net_isend(net, pair.send, data + sent, sent, tag);
        while (!result) {
            result = net_try_test(net, request, &done, NULL);
            CHECK(!done);
            sched_yield();
        }
        CHECK(result == NCCL_INVALID_USAGE && data[sizes[i]] == 0);
        CHECK(net_try_irecv(net, pair.recv, 1, &buffer, &sizes[i], &tag, &next) == NCCL_INVALID_USAGE &&
              !next);
        CHECK(net_warnings() == 2);
        net_close_pair(net, pair);
        free(data);
    }
}

/* More sends and receives than there are requests, and more bytes than a window: NULL, never an error. */
static void case_exhaustion(void)
{
    setenv("LONGHAUL_WINDOW", "1MiB", 1);
    const struct net *net = begin();
    struct net_pair pair = net_connect_pair(net);
    static unsigned char data[FRAME], landed[FRAME];
    void *sends[REQUESTS + 1], *receives[REQUESTS + 1], *buffer = landed;
    size_t bytes = sizeof landed;
    int posted = 0, tag = 0, done = 0;
    memset(data, 1, sizeof data);
    while (posted <= REQUESTS &&
           (sends[posted] = net_isend(net, pair.send, data, sizeof data, tag)) != NULL)
        posted++;
    CHECK(posted == REQUESTS); /* 16 MiB: sixteen windows */
    while (net_test(net, sends[done], NULL))
        done++;
    CHECK(done >= 16 && done < REQUESTS); /* a window is done without a receive */
    for (posted = 0; posted <= REQUESTS; posted++)
        if (!(receives[posted] = net_irecv(net, pair.recv, 1, &buffer, &bytes, &tag)))
            break;
    CHECK(posted == REQUESTS);
    for (int i = 0; i < REQUESTS; i++) {
        int size = 0;
        while (!net_test(net, receives[i], &size))
            if (done < REQUESTS)
                done += net_test(net, sends[done], NULL);
        CHECK(size == (int)sizeof data);
    }
    for (; done < REQUESTS; done++)
        wait_for(net, sends[done], NULL);
    CHECK(!net_warnings());
    net_close_pair(net, pair);
}

static void case_groups(void)
{
    const struct net *net = begin();
    struct net_pair pair = net_connect_pair(net);
    char memory[GROUP_MAX + 1][16], text[] = "abcdefgh";
    void *data[GROUP_MAX + 1], *request = NULL, *second;
    size_t bytes[GROUP_MAX + 1];
    int tags[GROUP_MAX + 1], sizes[GROUP_MAX] = {0};
    for (int i = 0; i <= GROUP_MAX; i++) {
        data[i] = memory[i];
        bytes[i] = sizeof memory[i];
        tags[i] = i;
    }
    CHECK(net_try_irecv(net, pair.recv, 0, data, bytes, tags, &request) == NCCL_INVALID_USAGE);
    CHECK(net_try_irecv(net, pair.recv, GROUP_MAX + 1, data, bytes, tags, &request) == NCCL_INVALID_USAGE);
    CHECK(net_warnings() == 2 && !request);
    /* Tag 1 is a group ahead of tag 0, and both receives are posted. */
    request = net_irecv(net, pair.recv, 2, data, bytes, tags);
    second = net_irecv(net, pair.recv, 2, data + 2, bytes, tags);
    static const int order[] = {1, 1, 0, 0};
    for (int i = 0; i < 4; i++)
        wait_for(net, net_isend(net, pair.send, text + 2 * i, (size_t)(i % 3), order[i]), NULL);
    wait_for(net, request, sizes);
    CHECK(sizes[0] == 2 && sizes[1] == 0 && !memcmp(memory[0], "ef", 2));
    wait_for(net, second, sizes);
    CHECK(sizes[0] == 0 && sizes[1] == 1 && memory[3][0] == 'c');
    net_close_pair(net, pair);
}

/* A message whose tag no group has stays parked; too many of them are an error, not a hang. */
static void case_parked(void)
{
    const struct net *net = begin();
    struct net_pair pair = net_connect_pair(net);
    static unsigned char data[16 * FRAME], landed[2][FRAME];
    void *buffers[] = {landed[0], landed[1]}, *request, *send = NULL;
    size_t bytes[] = {FRAME, FRAME};
    int tags[] = {1, 2}, result = 0, done = 0, sent = 0;
    request = net_irecv(net, pair.recv, 2, buffers, bytes, tags);
    while (!result) {
        if (!send)
            send = net_isend(net, pair.send, data, sizeof data, 3);
        else if (net_test(net, send, NULL)) {
            send = NULL;
            sent++;
        }
        result = net_try_test(net, request, &done, NULL);
        CHECK(!done);
    }
    CHECK(result == NCCL_INTERNAL_ERROR && net_warnings() == 1 && sent >= 64);
    net_close_pair(net, pair);
    /* Empty ones count, too. */
    pair = net_connect_pair(net);
    request = net_irecv(net, pair.recv, 2, buffers, bytes, tags);
    for (result = 0, send = NULL; !result; result = net_try_test(net, request, &done, NULL)) {
        if (!send)
            send = net_isend(net, pair.send, data, 0, 3);
        if (send && net_test(net, send, NULL))
            send = NULL;
    }
    CHECK(result == NCCL_INTERNAL_ERROR && net_warnings() == 1);
    net_close_pair(net, pair);
}

/* ---- what the LL protocols need ------------------------------------------------------------------------ */

enum { LINE_WORDS = 16, LINES = 2048, STEPS = 24 };

struct watch {
    const uint64_t *words; /* of the slot */
    int step;              /* that is being received; below 0: the end */
};

/* Reads the slot as a GPU would while it is being received: word i is of a step only when all before are. */
static void *watch_run(void *context)
{
    struct watch *watch = context;
    uint64_t passes = 0;
    for (int step; (step = __atomic_load_n(&watch->step, __ATOMIC_ACQUIRE)) >= 0; passes++) {
        size_t last = 0;
        for (size_t i = LINES * LINE_WORDS; i-- > 0 && !last;)
            if (__atomic_load_n(&watch->words[i], __ATOMIC_ACQUIRE) >> 32 >= (uint64_t)step)
                last = i + 1;
        for (size_t i = 0; i < last; i++)
            CHECK(__atomic_load_n(&watch->words[i], __ATOMIC_RELAXED) >> 32 >= (uint64_t)step);
    }
    return NULL;
}

static void case_lines(void)
{
    setenv("LONGHAUL_LINK", "rtt=2ms,loss=0.01,reorder=0.01,duplicate=0.01,seed=3", 1);
    const struct net *net = begin();
    struct net_pair pair = net_connect_pair(net);
    size_t bytes = (size_t)LINES * LINE_WORDS * sizeof(uint64_t);
    uint64_t *from = malloc(bytes), *to = aligned_alloc(128, bytes);
    struct watch watch = {.words = to, .step = 1};
    pthread_t thread;
    int tag = 0;
    CHECK(from && to);
    for (size_t i = 0; i < LINES * LINE_WORDS; i++)
        __atomic_store_n(&to[i], 0, __ATOMIC_RELAXED);
    CHECK(!pthread_create(&thread, NULL, watch_run, &watch));
    for (int step = 1; step <= STEPS; step++) {
        void *buffer = to, *receive, *send = NULL;
        __atomic_store_n(&watch.step, step, __ATOMIC_RELEASE);
        for (size_t i = 0; i < LINES * LINE_WORDS; i++)
            from[i] = (uint64_t)step << 32 | i;
        receive = net_irecv(net, pair.recv, 1, &buffer, &bytes, &tag);
        while (!send)
            send = net_isend(net, pair.send, from, bytes, tag);
        wait_for(net, send, NULL);
        wait_for(net, receive, NULL);
        for (size_t i = 0; i < LINES * LINE_WORDS; i++)
            CHECK(to[i] == ((uint64_t)step << 32 | i));
    }
    /* Late packets: nothing changes a slot that is done. */
    for (int turn = 0; turn < 20; turn++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        for (size_t i = 0; i < LINES * LINE_WORDS; i++)
            CHECK(to[i] == ((uint64_t)STEPS << 32 | i));
    }
    __atomic_store_n(&watch.step, -1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    net_close_pair(net, pair);
    free(from);
    free(to);
}

/* ---- the list ------------------------------------------------------------------------------------------ */

int cases_main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"versions", case_versions},     {"twice", case_twice},
        {"settings", case_settings},     {"memory", case_memory},
        {"handles", case_handles},       {"many", case_many},
        {"threads", case_threads},       {"fork", case_fork},
        {"close", case_close},           {"linger", case_linger},
        {"no_poll", case_no_poll},       {"oversize", case_oversize},
        {"strangers", case_strangers},   {"windows", case_windows},
        {"groups", case_groups},         {"parked", case_parked},
        {"exhaustion", case_exhaustion}, {"lines", case_lines},
    };
    int run = 0, failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool chosen = argc < 2;
        for (int j = 1; j < argc; j++)
            chosen |= !strcmp(argv[j], cases[i].name);
        if (!chosen)
            continue;
        int status = 1;
        pid_t child = start_process(HANG_S);
        if (child == 0) {
            cases[i].run();
            exit(0);
        }
        bool passed = child > 0 && waitpid(child, &status, 0) == child && status == 0;
        printf("%s %s\n", passed ? "passed" : "FAILED", cases[i].name);
        fflush(stdout);
        failed += !passed;
        run++;
    }
    if (!run)
        fail("there is no such case");
    printf("%d passed, %d failed\n", run - failed, failed);
    return failed != 0;
}
