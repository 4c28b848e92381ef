/*
 * host_net.h - the plugin as NCCL sees it: loaded by dlopen, called through the table of one version.
 *
 * Calls that the plugin refuses end the program with the call's name, unless their names begin with net_try_.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TESTS_NCCL_HOST_NET_H
#define TESTS_NCCL_HOST_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "plugins/nccl/nccl_net.h"

#define VERSION_FIRST 6
#define VERSION_LAST  12

struct net; /* a table; each version has one */

/* What the host reads of the properties; from_v9: of versions from 9 on. */
struct net_properties {
    const char *name, *pci_path;
    uint64_t guid;
    int memory_kinds, speed, max_comms, max_recvs;
    float latency;
    struct {
        int count, first;
        size_t max_p2p_bytes, max_collective_bytes;
    } from_v9;
};

/* Loads $NCCL_HOST_PLUGIN, and gets a table; NULL: it has none of this version. */
const struct net *net_load(int version);
/* The newest version that the plugin has, as NCCL looks for it; newest: that the host knows. */
int net_newest(int newest);
int net_version(const struct net *net);
const char *net_name(const struct net *net);

/* Lines of the plugin since the last call; the text of the last warning. */
int net_warnings(void);
const char *net_last_warning(void);
/* The last line that is no warning. */
const char *net_last_info(void);

int net_try_init(const struct net *net);
void net_init(const struct net *net);
void net_finalize(const struct net *net);
int net_devices(const struct net *net);
int net_try_properties(const struct net *net, int device, struct net_properties *out);

void *net_listen(const struct net *net, void *handle);
/* NULL: not yet. */
void *net_connect(const struct net *net, void *handle);
int net_try_connect(const struct net *net, int device, void *handle, void **comm);
void *net_accept(const struct net *net, void *listen_comm);
int net_try_accept(const struct net *net, void *listen_comm, void **comm);

int net_try_reg(const struct net *net, void *comm, void *data, size_t bytes, int kind, void **handle);
int net_try_reg_dma_buf(const struct net *net, void *comm, void **handle);
void net_dereg(const struct net *net, void *comm, void *handle);
/* They register the buffers, too, and end the registration while the request is in flight. */
int net_try_isend(const struct net *net, void *comm, void *data, size_t bytes, int tag, void **request);
int net_try_irecv(const struct net *net, void *comm, int n, void **data, const size_t *sizes, int *tags,
                  void **request);
int net_try_test(const struct net *net, void *request, int *done, int *sizes);
void *net_isend(const struct net *net, void *comm, void *data, size_t bytes, int tag);
void *net_irecv(const struct net *net, void *comm, int n, void **data, const size_t *sizes, int *tags);
bool net_test(const struct net *net, void *request, int *sizes);
/* True: there is a flush request. */
bool net_flush(const struct net *net, void *comm, void *data, int bytes);
void net_close_send(const struct net *net, void *comm);
void net_close_recv(const struct net *net, void *comm);
void net_close_listen(const struct net *net, void *comm);

/* A pair of comms within this process. */
struct net_pair {
    void *send, *recv;
};
struct net_pair net_connect_pair(const struct net *net);
void net_close_pair(const struct net *net, struct net_pair pair);

/* What runs now, "seed 7"; part of the message of fail(). */
extern char net_activity[64];
/* Ends the program with status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);
#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition))                                                                                  \
            fail("%s:%d: %s", __FILE__, __LINE__, #condition);                                             \
    } while (0)

/* A process that ends with its parent, or when it hangs. */
pid_t start_process(unsigned hang_s);

/* A sequence of numbers from a seed. */
struct dice {
    uint64_t state;
};
uint64_t dice_throw(struct dice *dice);
/* 0 to n - 1 */
static inline uint64_t dice_below(struct dice *dice, uint64_t n)
{
    return dice_throw(dice) % n;
}

/* The modes of the program. They return its exit status. */
int orders_main(int argc, char **argv);
int ranks_main(int argc, char **argv);
int deaths_main(int argc, char **argv);
int cases_main(int argc, char **argv);
int bench_main(int argc, char **argv);

#endif
