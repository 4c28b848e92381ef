/*
 * nccl_plugin.h - the parts of the plugin: settings (nccl_settings.c), what a process opens and how two
 * processes connect (nccl_setup.c), and the data path of a connection (nccl_comm.c). nccl_tables.c puts them
 * behind the tables of nccl_net.h.
 *
 * Calls return an enum nccl_result. Whoever finds an error logs it, once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PLUGINS_NCCL_PLUGIN_H
#define LH_PLUGINS_NCCL_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/longhaul.h>

#include "plugins/nccl/nccl_net.h"
#include "plugins/settings/plugin_settings.h"

/* ---- settings: nccl_settings.c ------------------------------------------------------------------------- */

/* NCCL's log function, for all following lines; NULL: none. */
void nccl_log_to(nccl_logger logger);
/* Writes a line to NCCL's log. */
__attribute__((format(printf, 2, 3))) void nccl_log(enum nccl_log_level level, const char *format, ...);

/* A process forked from the one that called nccl_watch_forks() has none of its threads, and its locks may be
 * held: calls take none, and fail with the result of nccl_refuse_child(), which logs why; what only closes
 * does nothing. nccl_watch_forks() fails without memory. */
int nccl_watch_forks(void);
bool nccl_is_inherited(void);
int nccl_refuse_child(void);

/* docs/nccl.md describes the variables. */
struct nccl_settings {
    struct plugin_settings shared;
    uint64_t window_bytes; /* LONGHAUL_WINDOW, of a connection: a power of two */
    lh_time rtt_ns;        /* LONGHAUL_RTT; 0: unknown */
};

/* The landing place of a receiving comm, which its handle announces: frames of equal length. */
struct nccl_landing {
    uint32_t frame_bytes;
    uint32_t frames;
};
#define NCCL_FRAME_BYTES_MIN (1u << 12)
#define NCCL_FRAME_BYTES_MAX (1u << 24)
#define NCCL_FRAMES_MAX      512u
/* A landing place of that many bytes, a power of two from 1 MiB to 1 GiB. */
struct nccl_landing nccl_landing_for(uint64_t window_bytes);

/* Reads the environment. NCCL_INVALID_USAGE: a variable is invalid. */
int nccl_settings_read(struct nccl_settings *settings);
/* Lists the devices that the settings select: one for each interface. NCCL_SYSTEM_ERROR: there is none. */
int nccl_settings_devices(const struct nccl_settings *settings, struct plugin_device *devices, int *count);
/* Sets the attributes of a connection or listener. They point into the settings. */
void nccl_settings_attr(const struct nccl_settings *settings, struct lh_attr *attr,
                        struct lh_security *security);

/* ---- the process: nccl_setup.c ------------------------------------------------------------------------- */

struct nccl_properties {
    const struct plugin_device *device;
    int index;
    int speed;     /* Mbit/s */
    float latency; /* us */
};

/* Reads settings and devices at the first call; version: of the table that NCCL calls. */
int nccl_setup_init(nccl_logger logger, int version);
int nccl_setup_devices(int *count);
int nccl_setup_properties(int device, struct nccl_properties *properties);
/* As the table's calls of these names. */
int nccl_setup_listen(int device, void *handle, void **listen_comm);
int nccl_setup_connect(int device, const void *handle, void **send_comm);
int nccl_setup_accept(void *listen_comm, void **recv_comm);
int nccl_setup_close_listen(void *listen_comm);
/* Closes a comm: returns at once; what the comm has accepted for sending is delivered in the background. */
int nccl_setup_close(void *comm);

/* ---- the data path: nccl_comm.c ------------------------------------------------------------------------ */

/* Buffers of a group. */
#define NCCL_GROUP_MAX 8
/* Requests of a comm; NCCL has at most 32. */
#define NCCL_REQUESTS 256

struct nccl_comm;

/* Creates a comm, which owns the connection, also after an error. landing: the peer's. token: of the peer's
 * listen comm. */
int nccl_comm_send_create(struct lh_connection *connection, struct lh_engine *engine,
                          const struct nccl_landing *landing, uint64_t token, struct nccl_comm **comm);
int nccl_comm_recv_create(struct lh_connection *connection, struct lh_engine *engine,
                          const struct nccl_landing *landing, struct nccl_comm **comm);
int nccl_comm_isend(struct nccl_comm *comm, const void *data, size_t bytes, int tag, void **request);
int nccl_comm_irecv(struct nccl_comm *comm, int n, void *const *data, const size_t *sizes, const int *tags,
                    void **request);
int nccl_comm_test(void *request, int *done, int *sizes);
/* True when nothing that the comm has accepted waits for delivery, or none of it can be delivered. */
bool nccl_comm_is_drained(struct nccl_comm *comm);
void nccl_comm_destroy(struct nccl_comm *comm);

#endif
