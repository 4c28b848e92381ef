/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_host/host_net.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define GROUP_MAX 16

struct net {
    int version;
    union {
        const struct nccl_net_v6 *v6;
        const struct nccl_net_v7 *v7;
        const struct nccl_net_v8 *v8;
        const struct nccl_net_v9 *v9;
        const struct nccl_net_v10 *v10;
        const struct nccl_net_v11 *v11;
        const struct nccl_net_v12 *v12;
        const void *any;
    } table;
    void *context; /* from v11 on */
};

char net_activity[64];

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "nccl_host: %s%s", net_activity, *net_activity ? ": " : "");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    /* Other threads run: no destructors. */
    _exit(1);
}

static void on_alarm(int number)
{
    (void)number;
    fail("hangs");
}

pid_t start_process(unsigned hang_s)
{
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGALRM, on_alarm);
        alarm(hang_s);
    }
    return process;
}

/* splitmix64 */
uint64_t dice_throw(struct dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* ---- NCCL's log ---------------------------------------------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int warnings;
static char last_warning[1024], last_info[1024];

__attribute__((format(printf, 5, 6))) static void logger(int level, unsigned long flags, const char *file,
                                                         int line, const char *format, ...)
{
    va_list arguments;
    bool is_warning = level == NCCL_LOG_WARN;
    (void)flags;
    (void)file;
    (void)line;
    pthread_mutex_lock(&log_lock);
    char *text = is_warning ? last_warning : last_info;
    va_start(arguments, format);
    vsnprintf(text, sizeof last_warning, format, arguments);
    va_end(arguments);
    warnings += is_warning;
    if (getenv("NCCL_DEBUG"))
        fprintf(stderr, "[%d] %s %s\n", (int)getpid(), is_warning ? "WARN" : "INFO", text);
    pthread_mutex_unlock(&log_lock);
}

int net_warnings(void)
{
    pthread_mutex_lock(&log_lock);
    int count = warnings;
    warnings = 0;
    pthread_mutex_unlock(&log_lock);
    return count;
}

const char *net_last_warning(void)
{
    return last_warning;
}

const char *net_last_info(void)
{
    return last_info;
}

/* ---- loading ------------------------------------------------------------------------------------------- */

static const void *find(int version)
{
    static void *library;
    char symbol[32];
    const char *path = getenv("NCCL_HOST_PLUGIN");
    if (!library) {
        library = dlopen(path ? path : "libnccl-net-longhaul.so", RTLD_NOW | RTLD_LOCAL);
        if (!library)
            fail("%s", dlerror());
    }
    snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", version);
    return dlsym(library, symbol);
}

const struct net *net_load(int version)
{
    static struct net nets[VERSION_LAST + 1];
    const void *table = find(version);
    if (!table)
        return NULL;
    nets[version].version = version;
    nets[version].table.any = table;
    return &nets[version];
}

int net_newest(int newest)
{
    while (newest > 0 && !find(newest))
        newest--;
    return newest;
}

int net_version(const struct net *net)
{
    return net->version;
}

/* The same member of each version's table, called with the same arguments. */
#define EACH(member, arguments)                                                                            \
    (net->version == 6    ? net->table.v6->member arguments                                                \
     : net->version == 7  ? net->table.v7->member arguments                                                \
     : net->version == 8  ? net->table.v8->member arguments                                                \
     : net->version == 9  ? net->table.v9->member arguments                                                \
     : net->version == 10 ? net->table.v10->member arguments                                               \
     : net->version == 11 ? net->table.v11->member arguments                                               \
                          : net->table.v12->member arguments)

const char *net_name(const struct net *net)
{
    return *(const char *const *)net->table.any;
}

int net_try_init(const struct net *net)
{
    void *context = NULL;
    int result;
    switch (net->version) {
    case 6:
        return net->table.v6->init(logger);
    case 7:
        return net->table.v7->init(logger);
    case 8:
        return net->table.v8->init(logger);
    case 9:
        return net->table.v9->init(logger);
    case 10:
        return net->table.v10->init(logger, NULL);
    case 11:
        result = net->table.v11->init(&context, 1, &(int){-1}, logger, NULL);
        break;
    default:
        result = net->table.v12->init(&context, 1, &(int){-1}, logger, NULL);
    }
    /* That of all communicators, whose threads come here. */
    __atomic_store_n(&((struct net *)(uintptr_t)net)->context, context, __ATOMIC_RELAXED);
    return result;
}

static void *context_of(const struct net *net)
{
    return __atomic_load_n(&net->context, __ATOMIC_RELAXED);
}

static void want(int result, const char *call)
{
    if (result)
        fail("%s: result %d: %s", call, result, last_warning);
}

void net_init(const struct net *net)
{
    want(net_try_init(net), "init");
    CHECK(net->version < 11 || context_of(net));
}

void net_finalize(const struct net *net)
{
    if (net->version >= 11)
        want(net->version == 11 ? net->table.v11->finalize(context_of(net))
                                : net->table.v12->finalize(context_of(net)),
             "finalize");
}

int net_devices(const struct net *net)
{
    int count = -1;
    want(EACH(devices, (&count)), "devices");
    return count;
}

#define READ_COMMON(from)                                                                                  \
    do {                                                                                                   \
        out->name = (from).name;                                                                           \
        out->pci_path = (from).pci_path;                                                                   \
        out->guid = (from).guid;                                                                           \
        out->memory_kinds = (from).memory_kinds;                                                           \
        out->speed = (from).speed;                                                                         \
        out->latency = (from).latency;                                                                     \
        out->max_comms = (from).max_comms;                                                                 \
        out->max_recvs = (from).max_recvs;                                                                 \
    } while (0)
#define READ_FROM_V9(from)                                                                                 \
    do {                                                                                                   \
        READ_COMMON(from);                                                                                 \
        out->from_v9.count = (from).consists_of.count;                                                     \
        out->from_v9.first = (from).consists_of.devices[0];                                                \
        out->from_v9.max_p2p_bytes = (from).max_p2p_bytes;                                                 \
        out->from_v9.max_collective_bytes = (from).max_collective_bytes;                                   \
    } while (0)

/* Asks the table for the version's struct, filled with bytes that nothing should be left of. */
#define ASK(pointer, type, READ, member)                                                                   \
    do {                                                                                                   \
        type properties;                                                                                   \
        memset(&properties, 0xA5, sizeof properties);                                                      \
        result = net->table.pointer->get_properties(device, &properties);                                  \
        if (!result)                                                                                       \
            READ(properties member);                                                                       \
    } while (0)

int net_try_properties(const struct net *net, int device, struct net_properties *out)
{
    int result = 0;
    *out = (struct net_properties){0};
    if (net->version == 6)
        ASK(v6, struct nccl_properties_v6, READ_COMMON, );
    else if (net->version == 7)
        ASK(v7, struct nccl_properties_v7, READ_COMMON, .v6);
    else if (net->version == 8)
        ASK(v8, struct nccl_properties_v8, READ_COMMON, );
    else if (net->version == 9)
        ASK(v9, struct nccl_properties_v9, READ_FROM_V9, );
    else if (net->version == 10)
        ASK(v10, struct nccl_properties_v9, READ_FROM_V9, );
    else if (net->version == 11)
        ASK(v11, struct nccl_properties_v11, READ_FROM_V9, .v9);
    else
        ASK(v12, struct nccl_properties_v12, READ_FROM_V9, );
    return result;
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

void *net_listen(const struct net *net, void *handle)
{
    void *comm = NULL;
    if (net->version == 11)
        want(net->table.v11->listen(context_of(net), 0, handle, &comm), "listen");
    else if (net->version == 12)
        want(net->table.v12->listen(context_of(net), 0, handle, &comm), "listen");
    else
        want(net->version == 6   ? net->table.v6->listen(0, handle, &comm)
             : net->version == 7 ? net->table.v7->listen(0, handle, &comm)
             : net->version == 8 ? net->table.v8->listen(0, handle, &comm)
             : net->version == 9 ? net->table.v9->listen(0, handle, &comm)
                                 : net->table.v10->listen(0, handle, &comm),
             "listen");
    CHECK(comm);
    return comm;
}

int net_try_connect(const struct net *net, int device, void *handle, void **comm)
{
    void *device_comm = comm;
    int result;
    *comm = NULL;
    switch (net->version) {
    case 6:
        return net->table.v6->connect(device, handle, comm);
    case 7:
        result = net->table.v7->connect(device, handle, comm, &device_comm);
        break;
    case 8:
        result = net->table.v8->connect(device, handle, comm, &device_comm);
        break;
    case 9:
        result = net->table.v9->connect(device, handle, comm, &device_comm);
        break;
    case 10:
        result = net->table.v10->connect(device, &(int){-1}, handle, comm, &device_comm);
        break;
    case 11:
        result = net->table.v11->connect(context_of(net), device, handle, comm, &device_comm);
        break;
    default:
        result = net->table.v12->connect(context_of(net), device, handle, comm, &device_comm);
    }
    CHECK(!device_comm);
    return result;
}

void *net_connect(const struct net *net, void *handle)
{
    void *comm = NULL;
    want(net_try_connect(net, 0, handle, &comm), "connect");
    return comm;
}

int net_try_accept(const struct net *net, void *listen_comm, void **comm)
{
    void *device_comm = NULL;
    *comm = NULL;
    switch (net->version) {
    case 6:
        return net->table.v6->accept(listen_comm, comm);
    case 7:
        return net->table.v7->accept(listen_comm, comm, &device_comm);
    case 8:
        return net->table.v8->accept(listen_comm, comm, &device_comm);
    case 9:
        return net->table.v9->accept(listen_comm, comm, &device_comm);
    case 10:
        return net->table.v10->accept(listen_comm, comm, &device_comm);
    case 11:
        return net->table.v11->accept(listen_comm, comm, &device_comm);
    default:
        return net->table.v12->accept(listen_comm, comm, &device_comm);
    }
}

void *net_accept(const struct net *net, void *listen_comm)
{
    void *comm = NULL;
    want(net_try_accept(net, listen_comm, &comm), "accept");
    return comm;
}

struct net_pair net_connect_pair(const struct net *net)
{
    char handle[NCCL_HANDLE_BYTES];
    struct net_pair pair = {0};
    void *listen = net_listen(net, handle);
    while (!pair.send || !pair.recv) {
        if (!pair.send)
            pair.send = net_connect(net, handle);
        if (!pair.recv)
            pair.recv = net_accept(net, listen);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    net_close_listen(net, listen);
    return pair;
}

void net_close_pair(const struct net *net, struct net_pair pair)
{
    net_close_send(net, pair.send);
    net_close_recv(net, pair.recv);
}

void net_close_send(const struct net *net, void *comm)
{
    want(EACH(close_send, (comm)), "closeSend");
}

void net_close_recv(const struct net *net, void *comm)
{
    want(EACH(close_recv, (comm)), "closeRecv");
}

void net_close_listen(const struct net *net, void *comm)
{
    want(EACH(close_listen, (comm)), "closeListen");
}

/* ---- data ---------------------------------------------------------------------------------------------- */

int net_try_reg(const struct net *net, void *comm, void *data, size_t bytes, int kind, void **handle)
{
    if (net->version == 6)
        return net->table.v6->reg_mr(comm, data, (int)bytes, kind, handle);
    if (net->version == 7)
        return net->table.v7->reg_mr(comm, data, (int)bytes, kind, handle);
    return net->version == 8    ? net->table.v8->reg_mr(comm, data, bytes, kind, handle)
           : net->version == 9  ? net->table.v9->reg_mr(comm, data, bytes, kind, handle)
           : net->version == 10 ? net->table.v10->reg_mr(comm, data, bytes, kind, handle)
           : net->version == 11 ? net->table.v11->reg_mr(comm, data, bytes, kind, handle)
                                : net->table.v12->reg_mr(comm, data, bytes, kind, handle);
}

int net_try_reg_dma_buf(const struct net *net, void *comm, void **handle)
{
    return EACH(reg_mr_dma_buf, (comm, NULL, 4096, 2, 0, -1, handle));
}

void net_dereg(const struct net *net, void *comm, void *handle)
{
    want(EACH(dereg_mr, (comm, handle)), "deregMr");
}

int net_try_isend(const struct net *net, void *comm, void *data, size_t bytes, int tag, void **request)
{
    void *handle = NULL;
    want(net_try_reg(net, comm, data, bytes, NCCL_MEMORY_HOST, &handle), "regMr");
    CHECK(handle);
    int result = net->version == 6    ? net->table.v6->isend(comm, data, (int)bytes, tag, handle, request)
                 : net->version == 7  ? net->table.v7->isend(comm, data, (int)bytes, tag, handle, request)
                 : net->version == 8  ? net->table.v8->isend(comm, data, (int)bytes, tag, handle, request)
                 : net->version == 9  ? net->table.v9->isend(comm, data, bytes, tag, handle, request)
                 : net->version == 10 ? net->table.v10->isend(comm, data, bytes, tag, handle, NULL, request)
                 : net->version == 11
                     ? net->table.v11->isend(comm, data, bytes, tag, handle, NULL, request)
                     : net->table.v12->isend(comm, data, bytes, tag, handle, NULL, request);
    net_dereg(net, comm, handle);
    return result;
}

int net_try_irecv(const struct net *net, void *comm, int n, void **data, const size_t *sizes, int *tags,
                  void **request)
{
    void *handles[GROUP_MAX] = {0};
    int narrow[GROUP_MAX];
    size_t wide[GROUP_MAX];
    CHECK(n <= GROUP_MAX);
    for (int i = 0; i < n; i++) {
        want(net_try_reg(net, comm, data[i], sizes[i], NCCL_MEMORY_HOST, &handles[i]), "regMr");
        narrow[i] = (int)sizes[i];
        wide[i] = sizes[i];
    }
    int result;
    switch (net->version) {
    case 6:
        result = net->table.v6->irecv(comm, n, data, narrow, tags, handles, request);
        break;
    case 7:
        result = net->table.v7->irecv(comm, n, data, narrow, tags, handles, request);
        break;
    case 8:
        result = net->table.v8->irecv(comm, n, data, narrow, tags, handles, request);
        break;
    case 9:
        result = net->table.v9->irecv(comm, n, data, wide, tags, handles, request);
        break;
    case 10:
        result = net->table.v10->irecv(comm, n, data, wide, tags, handles, NULL, request);
        break;
    case 11:
        result = net->table.v11->irecv(comm, n, data, wide, tags, handles, NULL, request);
        break;
    default:
        result = net->table.v12->irecv(comm, n, data, wide, tags, handles, NULL, request);
    }
    for (int i = 0; i < n; i++)
        net_dereg(net, comm, handles[i]);
    return result;
}

int net_try_test(const struct net *net, void *request, int *done, int *sizes)
{
    *done = -1;
    return EACH(test, (request, done, sizes));
}

void *net_isend(const struct net *net, void *comm, void *data, size_t bytes, int tag)
{
    void *request = NULL;
    want(net_try_isend(net, comm, data, bytes, tag, &request), "isend");
    return request;
}

void *net_irecv(const struct net *net, void *comm, int n, void **data, const size_t *sizes, int *tags)
{
    /* From 2.24 on NCCL says so that the receive may count as done at once (LL protocols). */
    void *request = n == 1 && net->version >= 9 ? (void *)1 : NULL;
    want(net_try_irecv(net, comm, n, data, sizes, tags, &request), "irecv");
    CHECK(request != (void *)1);
    return request;
}

bool net_test(const struct net *net, void *request, int *sizes)
{
    int done;
    want(net_try_test(net, request, &done, sizes), "test");
    CHECK(done == 0 || done == 1);
    return done;
}

bool net_flush(const struct net *net, void *comm, void *data, int bytes)
{
    void *request = comm, *handle = comm;
    want(EACH(iflush, (comm, 1, &data, &bytes, &handle, &request)), "iflush");
    return request != NULL;
}
