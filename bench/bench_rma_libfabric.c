/*
 * RMA write bandwidth over loopback through libfabric, as its fi_rma_bw measures it: what peers reach
 * without hardware. Two processes; the initiator keeps some writes of 16 MiB in flight, the target only
 * makes progress.
 *
 * usage: bench_rma_libfabric PROVIDER     ("tcp", "udp;ofi_rxd")
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define MESSAGE   ((size_t)16 << 20)
#define IN_FLIGHT 4
#define SECONDS   2.0

struct side {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    uint8_t *buffer;
};

struct hello {
    uint8_t address[256];
    uint64_t address_bytes;
    uint64_t key;
    uint64_t base;
};

static void need(int result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "bench_rma_libfabric: %s: %s\n", what, fi_strerror(-result));
    exit(1);
}

static void open_objects(struct side *side, const char *provider)
{
    struct fi_info *hints = fi_allocinfo();
    if (!hints)
        abort();
    hints->fabric_attr->prov_name = strdup(provider);
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_RMA | FI_MSG;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->addr_format = FI_SOCKADDR_IN;
    need(fi_getinfo(FI_VERSION(1, 15), "127.0.0.1", NULL, FI_SOURCE, hints, &side->info), "fi_getinfo");
    fi_freeinfo(hints);
    need(fi_fabric(side->info->fabric_attr, &side->fabric, NULL), "fi_fabric");
    need(fi_domain(side->fabric, side->info, &side->domain, NULL), "fi_domain");
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    need(fi_av_open(side->domain, &av, &side->av, NULL), "fi_av_open");
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 1024};
    need(fi_cq_open(side->domain, &cq, &side->cq, NULL), "fi_cq_open");
    need(fi_endpoint(side->domain, side->info, &side->ep, NULL), "fi_endpoint");
    need(fi_ep_bind(side->ep, &side->av->fid, 0), "bind address vector");
    need(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV), "bind completion queue");
    need(fi_enable(side->ep), "fi_enable");
}

static struct hello register_memory(struct side *side)
{
    struct hello hello = {.address_bytes = sizeof hello.address};
    side->buffer = aligned_alloc(4096, MESSAGE);
    if (!side->buffer)
        abort();
    memset(side->buffer, 1, MESSAGE);
    need(fi_mr_reg(side->domain, side->buffer, MESSAGE, FI_WRITE | FI_REMOTE_WRITE, 0, 7, 0, &side->mr,
                   NULL),
         "fi_mr_reg");
    size_t bytes = sizeof hello.address;
    need(fi_getname(&side->ep->fid, hello.address, &bytes), "fi_getname");
    hello.address_bytes = bytes;
    hello.key = fi_mr_key(side->mr);
    hello.base = side->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)side->buffer : 0;
    return hello;
}

static void exchange(int socket, const struct hello *mine, struct hello *peer)
{
    if (write(socket, mine, sizeof *mine) != sizeof *mine ||
        read(socket, peer, sizeof *peer) != sizeof *peer)
        abort();
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Makes progress until the initiator closes its end. */
static void target(struct side *side, int socket)
{
    struct fi_cq_entry entry;
    struct pollfd end = {.fd = socket, .events = POLLIN};
    while (poll(&end, 1, 0) == 0)
        for (int i = 0; i < 100; i++)
            fi_cq_read(side->cq, &entry, 1);
}

static double initiate(struct side *side, const struct hello *peer)
{
    fi_addr_t address;
    need(fi_av_insert(side->av, peer->address, 1, &address, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
    struct fi_context contexts[IN_FLIGHT];
    struct fi_cq_entry entry;
    unsigned posted = 0;
    unsigned done = 0;
    double start = seconds();
    double now = start;
    while (done < posted || now - start < SECONDS) {
        now = seconds();
        if (posted - done < IN_FLIGHT && now - start < SECONDS) {
            ssize_t result = fi_write(side->ep, side->buffer, MESSAGE, fi_mr_desc(side->mr), address,
                                      peer->base, peer->key, &contexts[posted % IN_FLIGHT]);
            if (result != -FI_EAGAIN)
                need((int)result, "fi_write");
            posted += result == 0;
        }
        ssize_t got = fi_cq_read(side->cq, &entry, 1);
        if (got != -FI_EAGAIN)
            need((int)got, "fi_cq_read");
        done += got > 0;
    }
    return (double)done * MESSAGE * 8 / (seconds() - start) / 1e9;
}

int main(int argc, char **argv)
{
    int sockets[2];
    if (argc != 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) {
        fprintf(stderr, "usage: bench_rma_libfabric PROVIDER\n");
        return 2;
    }
    pid_t child = fork();
    struct side side = {0};
    struct hello peer;
    close(sockets[child != 0]);
    open_objects(&side, argv[1]);
    struct hello mine = register_memory(&side);
    exchange(sockets[child != 0 ? 0 : 1], &mine, &peer);
    if (child == 0) {
        target(&side, sockets[1]);
        _exit(0);
    }
    printf("libfabric %s, RMA writes of 16 MiB: %.2f Gbit/s\n", argv[1], initiate(&side, &peer));
    fflush(stdout);
    close(sockets[0]);
    waitpid(child, NULL, 0);
    return 0;
}
