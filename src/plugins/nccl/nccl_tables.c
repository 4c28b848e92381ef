/*
 * nccl_tables.c - the tables that NCCL looks for: each version's form of the same calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/nccl/nccl_plugin.h"

/* NCCL_NET picks by this name. */
#define NAME      "Longhaul"
#define MAX_COMMS 65536
/* With one, NCCL makes a connection for each channel and peer, each with a window of its own. */
#define MAX_RECVS 1
#define MAX_BYTES ((size_t)1 << 30)

#define EXPORTED __attribute__((visibility("default")))

/* ---- calls that are the same in all versions ----------------------------------------------------------- */

static int accept_v6(void *listen_comm, void **comm)
{
    return nccl_setup_accept(listen_comm, comm);
}

static int accept_v7(void *listen_comm, void **comm, void **device_comm)
{
    if (device_comm)
        *device_comm = NULL;
    return nccl_setup_accept(listen_comm, comm);
}

/* The data path copies: a registration of NCCL's buffers has nothing to do. So it may end at any time. */
static int reg_mr(void *comm, void *data, size_t bytes, int kind, void **handle)
{
    (void)data;
    (void)bytes;
    *handle = comm;
    if (kind == NCCL_MEMORY_HOST)
        return NCCL_SUCCESS;
    *handle = NULL;
    nccl_log(NCCL_LOG_WARN, "regMr: memory of kind %d: not supported (host memory only)", kind);
    return NCCL_INVALID_USAGE;
}

static int reg_mr_int(void *comm, void *data, int bytes, int kind, void **handle)
{
    return reg_mr(comm, data, (size_t)bytes, kind, handle);
}

static int reg_mr_dma_buf(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,
                          void **handle)
{
    (void)comm;
    (void)data;
    (void)bytes;
    (void)kind;
    (void)offset;
    (void)file;
    *handle = NULL;
    nccl_log(NCCL_LOG_WARN, "regMrDmaBuf: not supported (host memory only)");
    return NCCL_INVALID_USAGE;
}

static int dereg_mr(void *comm, void *handle)
{
    (void)comm;
    (void)handle;
    return NCCL_SUCCESS;
}

/* Host memory needs no flush. Without a request NCCL waits for none. */
static int iflush(void *comm, int n, void **data, int *sizes, void **handles, void **request)
{
    (void)comm;
    (void)n;
    (void)data;
    (void)sizes;
    (void)handles;
    *request = NULL;
    return NCCL_SUCCESS;
}

/* ---- sizes of v6 to v8 are int, those of later versions size_t ----------------------------------------- */

static int isend_int(void *comm, void *data, int bytes, int tag, void *handle, void **request)
{
    (void)handle;
    *request = NULL;
    if (bytes >= 0)
        return nccl_comm_isend(comm, data, (size_t)bytes, tag, request);
    nccl_log(NCCL_LOG_WARN, "isend: %d bytes: below 0", bytes);
    return NCCL_INVALID_USAGE;
}

static int irecv_int(void *comm, int n, void **data, int *sizes, int *tags, void **handles, void **request)
{
    size_t wide[NCCL_GROUP_MAX] = {0};
    (void)handles;
    *request = NULL;
    for (int i = 0; i < n && i < NCCL_GROUP_MAX; i++) {
        if (sizes[i] < 0) {
            nccl_log(NCCL_LOG_WARN, "irecv: %d bytes: below 0", sizes[i]);
            return NCCL_INVALID_USAGE;
        }
        wide[i] = (size_t)sizes[i];
    }
    return nccl_comm_irecv(comm, n, data, wide, tags, request);
}

static int isend_v9(void *comm, void *data, size_t bytes, int tag, void *handle, void **request)
{
    (void)handle;
    return nccl_comm_isend(comm, data, bytes, tag, request);
}

static int irecv_v9(void *comm, int n, void **data, size_t *sizes, int *tags, void **handles,
                    void **request)
{
    (void)handles;
    return nccl_comm_irecv(comm, n, data, sizes, tags, request);
}

static int isend_v10(void *comm, void *data, size_t bytes, int tag, void *handle, void *event,
                     void **request)
{
    (void)event;
    return isend_v9(comm, data, bytes, tag, handle, request);
}

static int irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags, void **handles,
                     void **events, void **request)
{
    (void)events;
    return irecv_v9(comm, n, data, sizes, tags, handles, request);
}

/* ---- init, listen, connect ----------------------------------------------------------------------------- */

#define INIT(version)                                                                                      \
    static int init_v##version(nccl_logger logger)                                                         \
    {                                                                                                      \
        return nccl_setup_init(logger, version);                                                           \
    }
INIT(6)
INIT(7)
INIT(8)
INIT(9)

static int init_v10(nccl_logger logger, void *profiler)
{
    (void)profiler;
    return nccl_setup_init(logger, 10);
}

/* All communicators share one context. Its value only has to differ from NULL. */
static int contexts;

#define INIT_CONTEXT(version)                                                                              \
    static int init_v##version(void **context, uint64_t communicator, void *config, nccl_logger logger,    \
                               void *profiler)                                                             \
    {                                                                                                      \
        (void)communicator;                                                                                \
        (void)config;                                                                                      \
        (void)profiler;                                                                                    \
        *context = &contexts;                                                                              \
        return nccl_setup_init(logger, version);                                                           \
    }
INIT_CONTEXT(11)
INIT_CONTEXT(12)

/* What the process has opened serves other and later communicators, too. */
static int finalize(void *context)
{
    (void)context;
    return NCCL_SUCCESS;
}

static int listen_v11(void *context, int device, void *handle, void **comm)
{
    (void)context;
    return nccl_setup_listen(device, handle, comm);
}

static int connect_v6(int device, void *handle, void **comm)
{
    return nccl_setup_connect(device, handle, comm);
}

static int connect_v7(int device, void *handle, void **comm, void **device_comm)
{
    if (device_comm)
        *device_comm = NULL;
    return nccl_setup_connect(device, handle, comm);
}

static int connect_v10(int device, void *config, void *handle, void **comm, void **device_comm)
{
    (void)config;
    return connect_v7(device, handle, comm, device_comm);
}

static int connect_v11(void *context, int device, void *handle, void **comm, void **device_comm)
{
    (void)context;
    return connect_v7(device, handle, comm, device_comm);
}

/* ---- properties ---------------------------------------------------------------------------------------- */

/* Sets what all versions have. The texts live as long as the process. */
#define SET_COMMON(properties, from)                                                                       \
    do {                                                                                                   \
        (properties)->name = (char *)(uintptr_t)(from).device->interface;                                  \
        (properties)->pci_path =                                                                           \
            *(from).device->pci_path ? (char *)(uintptr_t)(from).device->pci_path : NULL;                  \
        (properties)->guid = (uint64_t)(from).index;                                                       \
        (properties)->memory_kinds = NCCL_MEMORY_HOST;                                                     \
        (properties)->speed = (from).speed;                                                                \
        (properties)->latency = (from).latency;                                                            \
        (properties)->max_comms = MAX_COMMS;                                                               \
        (properties)->max_recvs = MAX_RECVS;                                                               \
    } while (0)

#define SET_FROM_V9(properties, from)                                                                      \
    do {                                                                                                   \
        SET_COMMON(properties, from);                                                                      \
        (properties)->consists_of.count = 1;                                                               \
        (properties)->consists_of.devices[0] = (from).index;                                               \
        (properties)->max_p2p_bytes = MAX_BYTES;                                                           \
        (properties)->max_collective_bytes = MAX_BYTES;                                                    \
    } while (0)

static int properties_v6(int device, struct nccl_properties_v6 *out)
{
    struct nccl_properties from;
    int result = nccl_setup_properties(device, &from);
    if (result)
        return result;
    *out = (struct nccl_properties_v6){0};
    SET_COMMON(out, from);
    return NCCL_SUCCESS;
}

static int properties_v7(int device, struct nccl_properties_v7 *out)
{
    *out = (struct nccl_properties_v7){0};
    return properties_v6(device, &out->v6);
}

static int properties_v8(int device, struct nccl_properties_v8 *out)
{
    struct nccl_properties from;
    int result = nccl_setup_properties(device, &from);
    if (result)
        return result;
    *out = (struct nccl_properties_v8){0};
    SET_COMMON(out, from);
    return NCCL_SUCCESS;
}

static int properties_v9(int device, struct nccl_properties_v9 *out)
{
    struct nccl_properties from;
    int result = nccl_setup_properties(device, &from);
    if (result)
        return result;
    *out = (struct nccl_properties_v9){0};
    SET_FROM_V9(out, from);
    return NCCL_SUCCESS;
}

static int properties_v11(int device, struct nccl_properties_v11 *out)
{
    *out = (struct nccl_properties_v11){.max_multi_request = 1};
    return properties_v9(device, &out->v9);
}

static int properties_v12(int device, struct nccl_properties_v12 *out)
{
    struct nccl_properties from;
    int result = nccl_setup_properties(device, &from);
    if (result)
        return result;
    *out = (struct nccl_properties_v12){.max_multi_request = 1, .rail = -1, .plane = -1};
    SET_FROM_V9(out, from);
    return NCCL_SUCCESS;
}

/* ---- the tables ---------------------------------------------------------------------------------------- */

#define COMMON                                                                                             \
    .name = NAME, .devices = nccl_setup_devices, .reg_mr_dma_buf = reg_mr_dma_buf, .dereg_mr = dereg_mr,   \
    .iflush = iflush, .test = nccl_comm_test, .close_send = nccl_setup_close,                              \
    .close_recv = nccl_setup_close, .close_listen = nccl_setup_close_listen

EXPORTED const struct nccl_net_v6 ncclNetPlugin_v6 = {COMMON,
                                                      .init = init_v6,
                                                      .get_properties = properties_v6,
                                                      .listen = nccl_setup_listen,
                                                      .connect = connect_v6,
                                                      .accept = accept_v6,
                                                      .reg_mr = reg_mr_int,
                                                      .isend = isend_int,
                                                      .irecv = irecv_int};

EXPORTED const struct nccl_net_v7 ncclNetPlugin_v7 = {COMMON,
                                                      .init = init_v7,
                                                      .get_properties = properties_v7,
                                                      .listen = nccl_setup_listen,
                                                      .connect = connect_v7,
                                                      .accept = accept_v7,
                                                      .reg_mr = reg_mr_int,
                                                      .isend = isend_int,
                                                      .irecv = irecv_int};

EXPORTED const struct nccl_net_v8 ncclNetPlugin_v8 = {COMMON,
                                                      .init = init_v8,
                                                      .get_properties = properties_v8,
                                                      .listen = nccl_setup_listen,
                                                      .connect = connect_v7,
                                                      .accept = accept_v7,
                                                      .reg_mr = reg_mr,
                                                      .isend = isend_int,
                                                      .irecv = irecv_int};

EXPORTED const struct nccl_net_v9 ncclNetPlugin_v9 = {COMMON,
                                                      .init = init_v9,
                                                      .get_properties = properties_v9,
                                                      .listen = nccl_setup_listen,
                                                      .connect = connect_v7,
                                                      .accept = accept_v7,
                                                      .reg_mr = reg_mr,
                                                      .isend = isend_v9,
                                                      .irecv = irecv_v9};

EXPORTED const struct nccl_net_v10 ncclNetPlugin_v10 = {COMMON,
                                                        .init = init_v10,
                                                        .get_properties = properties_v9,
                                                        .listen = nccl_setup_listen,
                                                        .connect = connect_v10,
                                                        .accept = accept_v7,
                                                        .reg_mr = reg_mr,
                                                        .isend = isend_v10,
                                                        .irecv = irecv_v10};

#define COMMON_V11                                                                                         \
    COMMON, .listen = listen_v11, .connect = connect_v11, .accept = accept_v7, .reg_mr = reg_mr,           \
            .isend = isend_v10, .irecv = irecv_v10, .finalize = finalize

EXPORTED const struct nccl_net_v11 ncclNetPlugin_v11 = {COMMON_V11, .init = init_v11,
                                                        .get_properties = properties_v11};

EXPORTED const struct nccl_net_v12 ncclNetPlugin_v12 = {COMMON_V11, .init = init_v12,
                                                        .get_properties = properties_v12};
