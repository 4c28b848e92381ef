/*
 * nccl_net.h - NCCL's network interface, versions 6 to 12, as this plugin needs it: the facts of its binary
 * interface, written for Longhaul. No header of NCCL is used.
 *
 * NCCL loads the plugin with dlopen, and looks for ncclNetPlugin_v12, then _v11, … down to _v6; each is a
 * struct of function pointers, and the first that exists is used. NCCL releases and their newest table: 2.13
 * v6, 2.19 v7, 2.20 v8, 2.24 v9, 2.26 v10, 2.28 v11, 2.30 v12. Before v11 NCCL calls init once a process;
 * from v11 on once a communicator, with finalize at its end.
 *
 * Calls come from three threads of a communicator: the user's (init, devices, properties, finalize), the
 * proxy service (listen, connect, accept, regMr, deregMr, close…) and the proxy progress (isend, irecv,
 * iflush, test). No call may block.
 *
 * - listen, connect, accept: success with a NULL comm means "not yet": NCCL repeats the call, with the same
 *   handle memory. A handle has at most NCCL_HANDLE_BYTES, and reaches the peer over NCCL's bootstrap.
 * - isend, irecv: success with a NULL request means "not now": NCCL repeats the call. A send's buffer is
 *   rewritten as soon as test has reported the send. A receive may be longer than its send. A receive of n
 *   buffers is a group: n messages, one for each tag.
 * - test: sizes may be NULL; else one int a buffer. The request is not used again after done.
 * - Any error ends the communicator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PLUGINS_NCCL_NET_H
#define LH_PLUGINS_NCCL_NET_H

#include <stddef.h>
#include <stdint.h>

enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6, /* the peer or the network */
};

enum nccl_log_level { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3 };

/* Subsystems of a line: NCCL_DEBUG_SUBSYS selects them. */
#define NCCL_LOG_INIT 0x01ul
#define NCCL_LOG_NET  0x10ul

typedef void (*nccl_logger)(int level, unsigned long flags, const char *file, int line, const char *format,
                            ...);

#define NCCL_HANDLE_BYTES 128

/* Kinds of memory, as bits of ptrSupport and as the type of regMr. */
#define NCCL_MEMORY_HOST 1

/* ---- properties of a device ---------------------------------------------------------------------------- */

/* speed: Mbit/s. latency: us, which NCCL truncates to whole ones. */
struct nccl_properties_v6 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int memory_kinds;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
};

struct nccl_properties_v7 {
    struct nccl_properties_v6 v6;
    int device_type;
    int device_version;
};

struct nccl_properties_v8 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int memory_kinds;
    int registration_is_global;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    int device_type;
    int device_version;
};

/* Which physical devices a device consists of: itself alone. */
struct nccl_virtual_v9 {
    int count;
    int devices[4];
};

struct nccl_virtual_v12 {
    int count;
    int devices[8];
};

/* v9 and v10 */
struct nccl_properties_v9 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int memory_kinds;
    int registration_is_global;
    int force_flush;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    int device_type;
    int device_version;
    struct nccl_virtual_v9 consists_of;
    size_t max_p2p_bytes;
    size_t max_collective_bytes;
};

struct nccl_properties_v11 {
    struct nccl_properties_v9 v9;
    int max_multi_request;
};

struct nccl_properties_v12 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int memory_kinds;
    int registration_is_global;
    int force_flush;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    int device_type;
    int device_version;
    struct nccl_virtual_v12 consists_of;
    size_t max_p2p_bytes;
    size_t max_collective_bytes;
    int max_multi_request;
    int16_t rail;  /* -1: unknown */
    int16_t plane; /* -1: unknown */
};

/* ---- the tables ---------------------------------------------------------------------------------------- */

/* What all versions have in the same form, as lists of members. */
#define NCCL_REGISTRATION(size_type)                                                                       \
    int (*reg_mr)(void *comm, void *data, size_type bytes, int kind, void **handle);                       \
    int (*reg_mr_dma_buf)(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,       \
                          void **handle);                                                                  \
    int (*dereg_mr)(void *comm, void *handle);
#define NCCL_FLUSH_TO_CLOSE                                                                                \
    int (*iflush)(void *comm, int n, void **data, int *sizes, void **handles, void **request);             \
    int (*test)(void *request, int *done, int *sizes);                                                     \
    int (*close_send)(void *comm);                                                                         \
    int (*close_recv)(void *comm);                                                                         \
    int (*close_listen)(void *comm);
#define NCCL_DEVICE_SIDE                                                                                   \
    int (*get_device_mr)(void *comm, void *handle, void **pointer);                                        \
    int (*irecv_consumed)(void *comm, int n, void *request);

struct nccl_net_v6 {
    const char *name;
    int (*init)(nccl_logger logger);
    int (*devices)(int *count);
    int (*get_properties)(int device, struct nccl_properties_v6 *properties);
    int (*listen)(int device, void *handle, void **comm);
    int (*connect)(int device, void *handle, void **comm);
    int (*accept)(void *listen_comm, void **comm);
    NCCL_REGISTRATION(int)
    int (*isend)(void *comm, void *data, int bytes, int tag, void *handle, void **request);
    int (*irecv)(void *comm, int n, void **data, int *sizes, int *tags, void **handles, void **request);
    NCCL_FLUSH_TO_CLOSE
};

/* device_comm: what GPUs would use; NULL for the host. */
struct nccl_net_v7 {
    const char *name;
    int (*init)(nccl_logger logger);
    int (*devices)(int *count);
    int (*get_properties)(int device, struct nccl_properties_v7 *properties);
    int (*listen)(int device, void *handle, void **comm);
    int (*connect)(int device, void *handle, void **comm, void **device_comm);
    int (*accept)(void *listen_comm, void **comm, void **device_comm);
    NCCL_REGISTRATION(int)
    int (*isend)(void *comm, void *data, int bytes, int tag, void *handle, void **request);
    int (*irecv)(void *comm, int n, void **data, int *sizes, int *tags, void **handles, void **request);
    NCCL_FLUSH_TO_CLOSE
    NCCL_DEVICE_SIDE
};

struct nccl_net_v8 {
    const char *name;
    int (*init)(nccl_logger logger);
    int (*devices)(int *count);
    int (*get_properties)(int device, struct nccl_properties_v8 *properties);
    int (*listen)(int device, void *handle, void **comm);
    int (*connect)(int device, void *handle, void **comm, void **device_comm);
    int (*accept)(void *listen_comm, void **comm, void **device_comm);
    NCCL_REGISTRATION(size_t)
    int (*isend)(void *comm, void *data, int bytes, int tag, void *handle, void **request);
    int (*irecv)(void *comm, int n, void **data, int *sizes, int *tags, void **handles, void **request);
    NCCL_FLUSH_TO_CLOSE
    NCCL_DEVICE_SIDE
};

struct nccl_net_v9 {
    const char *name;
    int (*init)(nccl_logger logger);
    int (*devices)(int *count);
    int (*get_properties)(int device, struct nccl_properties_v9 *properties);
    int (*listen)(int device, void *handle, void **comm);
    int (*connect)(int device, void *handle, void **comm, void **device_comm);
    int (*accept)(void *listen_comm, void **comm, void **device_comm);
    NCCL_REGISTRATION(size_t)
    int (*isend)(void *comm, void *data, size_t bytes, int tag, void *handle, void **request);
    int (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **handles, void **request);
    NCCL_FLUSH_TO_CLOSE
    NCCL_DEVICE_SIDE
    int (*make_virtual)(int *device, struct nccl_virtual_v9 *of);
};

/* profiler, event, events: of NCCL's profiler; config: a traffic class. The plugin uses none of them. */
struct nccl_net_v10 {
    const char *name;
    int (*init)(nccl_logger logger, void *profiler);
    int (*devices)(int *count);
    int (*get_properties)(int device, struct nccl_properties_v9 *properties);
    int (*listen)(int device, void *handle, void **comm);
    int (*connect)(int device, void *config, void *handle, void **comm, void **device_comm);
    int (*accept)(void *listen_comm, void **comm, void **device_comm);
    NCCL_REGISTRATION(size_t)
    int (*isend)(void *comm, void *data, size_t bytes, int tag, void *handle, void *event, void **request);
    int (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **handles, void **events,
                 void **request);
    NCCL_FLUSH_TO_CLOSE
    NCCL_DEVICE_SIDE
    int (*make_virtual)(int *device, struct nccl_virtual_v9 *of);
};

/* v11 and v12 have the same functions, with other properties. */
#define NCCL_NET_FROM_V11(properties_type, virtual_type)                                                   \
    const char *name;                                                                                      \
    int (*init)(void **context, uint64_t communicator, void *config, nccl_logger logger, void *profiler);  \
    int (*devices)(int *count);                                                                            \
    int (*get_properties)(int device, properties_type *properties);                                        \
    int (*listen)(void *context, int device, void *handle, void **comm);                                   \
    int (*connect)(void *context, int device, void *handle, void **comm, void **device_comm);              \
    int (*accept)(void *listen_comm, void **comm, void **device_comm);                                     \
    NCCL_REGISTRATION(size_t)                                                                              \
    int (*isend)(void *comm, void *data, size_t bytes, int tag, void *handle, void *event,                 \
                 void **request);                                                                          \
    int (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **handles, void **events,  \
                 void **request);                                                                          \
    NCCL_FLUSH_TO_CLOSE                                                                                    \
    NCCL_DEVICE_SIDE                                                                                       \
    int (*make_virtual)(int *device, virtual_type *of);                                                    \
    int (*finalize)(void *context);                                                                        \
    int (*set_attributes)(void *context, void *attributes);

struct nccl_net_v11 {
    NCCL_NET_FROM_V11(struct nccl_properties_v11, struct nccl_virtual_v9)
};

struct nccl_net_v12 {
    NCCL_NET_FROM_V11(struct nccl_properties_v12, struct nccl_virtual_v12)
};

#endif
