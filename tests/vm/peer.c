/*
 * peer.c - a verbs program written by someone who trusts nobody: libibverbs only, no code of Longhaul.
 *
 * Runs in a guest, on rxe0. Connects by TCP to the program that tests it (udp_peer.c), says where its queue
 * pairs and its memory are, hears the same of the other side, and then does as it is told, a line at a time:
 *
 *   mtu M                             the payload of a packet of a message
 *   post N                            N receives more
 *   message SLOT BASE RKEY TOTAL SEED a message that the other side expects (docs/wire.md)
 *   write FIRST COUNT                 these packets of it, each one UC RDMA WRITE with immediate
 *   raw IMMEDIATE VA RKEY BYTES       one write that may be wrong
 *   clear N                           fills its memory; what counts from now on is message N, in area N
 *   poll N                            waits until so many writes came, and then until nothing comes for a
 *                                     while: "took COUNT ERRORS", of any message
 *   missing FIRST COUNT               which of up to 64 packets of the message have not come, as bits
 *   left                              how many receives are posted
 *   check TOTAL SEED                  "same" if these bytes came and no other byte of the area was written
 *   check-all TOTAL SEED              the same, and no byte of any area
 *   say BYTES SEED                    one UC SEND from the other queue pair
 *   heard BYTES SEED                  "yes" if such a SEND came, "no" if none did for a while
 *   state                             of the queue pair: 3 is ready to send
 *
 * Every line is answered, with "ok" if nothing else is said above. usage: peer ADDRESS PORT
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AREA_BYTES    (1u << 20)
#define AREAS         4u
#define BLANK         0xEE
#define RECEIVES_MAX  4096
#define SENDS_MAX     256
#define CONTROL_BYTES 1024u
#define PACKETS_MAX   4096u
#define QUIET_NS      (200 * 1000000ll)
#define PATIENCE_NS   (20 * 1000000000ll) /* only ever ends what hangs */
#define CONNECT_TRIES 300

struct peer {
    struct ibv_context *device;
    struct ibv_port_attr port;
    int gid_index;
    union ibv_gid host; /* the other side's address */
    struct ibv_pd *pd;
    struct ibv_cq *sent;
    struct ibv_cq *received;
    struct ibv_cq *heard;
    struct ibv_qp *data;
    struct ibv_qp *control;
    uint8_t *inbox; /* AREAS areas that the other side writes to */
    uint8_t *outbox;
    uint8_t *ear; /* what control SENDs land in */
    struct ibv_mr *inbox_mr;
    struct ibv_mr *outbox_mr;
    struct ibv_mr *ear_mr;
    uint32_t area; /* and the message that counts */
    bool came[PACKETS_MAX];
    uint32_t posted;
    uint32_t mtu;
    uint32_t slot, rkey, total, seed; /* the message */
    uint64_t base;
};

static _Noreturn void die(const char *words, ...)
{
    va_list list;
    va_start(list, words);
    printf("peer: ");
    vprintf(words, list);
    printf("\n");
    va_end(list);
    exit(1);
}

static void *sure(void *pointer, const char *what)
{
    if (pointer == NULL)
        die("%s: %m", what);
    return pointer;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* What both sides say that byte i of a message is. */
static uint8_t byte_of(uint32_t seed, uint32_t i)
{
    return (uint8_t)(((i + 1) * 2654435761u ^ seed * 2246822519u) >> 23);
}

/* The GID that is our address of the family of the host's. */
static void choose_gid(struct peer *peer)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    bool ipv4 = memcmp(peer->host.raw, mapped, sizeof mapped) == 0;
    for (int i = 0; i < peer->port.gid_tbl_len; i++) {
        union ibv_gid gid;
        if (ibv_query_gid(peer->device, 1, i, &gid) != 0 || gid.raw[0] == 0xFE)
            continue;
        bool any = false;
        for (int k = 0; k < 16; k++)
            any = any || gid.raw[k] != 0;
        if (any && (memcmp(gid.raw, mapped, sizeof mapped) == 0) == ipv4) {
            peer->gid_index = i;
            return;
        }
    }
    die("no GID of the host's family");
}

static struct ibv_qp *make_qp(struct peer *peer, struct ibv_cq *received)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = peer->sent,
        .recv_cq = received,
        .cap = {.max_send_wr = SENDS_MAX,
                .max_recv_wr = RECEIVES_MAX,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_UC,
        .sq_sig_all = 1,
    };
    struct ibv_qp *qp = sure(ibv_create_qp(peer->pd, &attr), "ibv_create_qp");
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
        die("INIT: %m");
    return qp;
}

static void connect_qp(const struct peer *peer, struct ibv_qp *qp, uint32_t there)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = peer->port.active_mtu,
        .dest_qp_num = there,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = peer->host, .sgid_index = (uint8_t)peer->gid_index, .hop_limit = 64}},
    };
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (ibv_modify_qp(qp, &attr, mask) != 0)
        die("RTR: %m");
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0xFFFFF0; /* wraps soon */
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
        die("RTS: %m");
}

static void post_receive(struct ibv_qp *qp, struct ibv_sge *where)
{
    struct ibv_recv_wr wr = {.sg_list = where, .num_sge = where != NULL}, *bad;
    if (ibv_post_recv(qp, &wr, &bad) != 0)
        die("ibv_post_recv: %m");
}

static void post_ear(const struct peer *peer)
{
    struct ibv_sge ear = {(uintptr_t)peer->ear, CONTROL_BYTES, peer->ear_mr->lkey};
    post_receive(peer->control, &ear);
}

static struct ibv_mr *register_memory(const struct peer *peer, void *memory, size_t bytes, int access)
{
    /* The function, not the macro of this name, in which compilers find signs that change. */
    return sure((ibv_reg_mr)(peer->pd, memory, bytes, access), "ibv_reg_mr");
}

static void open_device(struct peer *peer)
{
    int count;
    struct ibv_device **list = sure(ibv_get_device_list(&count), "ibv_get_device_list");
    if (count == 0)
        die("no device");
    peer->device = sure(ibv_open_device(list[0]), "ibv_open_device");
    if (ibv_query_port(peer->device, 1, &peer->port) != 0)
        die("ibv_query_port: %m");
    printf("device %s port 1 state %s mtu %d\n", ibv_get_device_name(list[0]),
           ibv_port_state_str(peer->port.state), 128 << peer->port.active_mtu);
    ibv_free_device_list(list);
    choose_gid(peer);
    peer->mtu = 128u << peer->port.active_mtu;
    peer->pd = sure(ibv_alloc_pd(peer->device), "ibv_alloc_pd");
    peer->sent = sure(ibv_create_cq(peer->device, 2 * SENDS_MAX, NULL, NULL, 0), "ibv_create_cq");
    peer->received = sure(ibv_create_cq(peer->device, RECEIVES_MAX, NULL, NULL, 0), "ibv_create_cq");
    peer->heard = sure(ibv_create_cq(peer->device, RECEIVES_MAX, NULL, NULL, 0), "ibv_create_cq");
    peer->inbox = sure(aligned_alloc(4096, AREAS * AREA_BYTES), "inbox");
    peer->outbox = sure(aligned_alloc(4096, AREA_BYTES), "outbox");
    peer->ear = sure(aligned_alloc(4096, 4096), "ear");
    memset(peer->inbox, BLANK, AREAS * AREA_BYTES);
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    peer->inbox_mr = register_memory(peer, peer->inbox, AREAS * AREA_BYTES, access);
    peer->outbox_mr = register_memory(peer, peer->outbox, AREA_BYTES, 0);
    peer->ear_mr = register_memory(peer, peer->ear, 4096, IBV_ACCESS_LOCAL_WRITE);
    peer->data = make_qp(peer, peer->received);
    peer->control = make_qp(peer, peer->heard);
    post_ear(peer);
}

/* Waits for as many send completions. */
static void finish_sends(const struct peer *peer, uint32_t count)
{
    while (count > 0) {
        struct ibv_wc wc;
        int got = ibv_poll_cq(peer->sent, 1, &wc);
        if (got < 0 || (got == 1 && wc.status != IBV_WC_SUCCESS))
            die("send completion: %s", got < 0 ? "no CQ" : ibv_wc_status_str(wc.status));
        count -= (uint32_t)got;
    }
}

static void post_write(const struct peer *peer, uint32_t offset, uint32_t bytes, uint64_t va, uint32_t rkey,
                       uint32_t immediate)
{
    struct ibv_sge sge = {(uintptr_t)(peer->outbox + offset), bytes, peer->outbox_mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM}, *bad;
    wr.imm_data = htonl(immediate);
    wr.wr.rdma.remote_addr = va;
    wr.wr.rdma.rkey = rkey;
    if (ibv_post_send(peer->data, &wr, &bad) != 0)
        die("ibv_post_send: %m");
}

static void write_packets(const struct peer *peer, uint32_t first, uint32_t count)
{
    if (count > SENDS_MAX)
        die("%u writes at once", count);
    for (uint32_t p = first; p < first + count; p++) {
        uint32_t offset = p * peer->mtu;
        uint32_t left = peer->total - offset;
        post_write(peer, offset, left < peer->mtu ? left : peer->mtu, peer->base + offset, peer->rkey,
                   peer->slot << 22 | p << 4 | (p & 15));
    }
    finish_sends(peer, count);
}

static void say(const struct peer *peer, uint32_t bytes, uint32_t seed)
{
    for (uint32_t i = 0; i < bytes; i++)
        peer->outbox[i] = byte_of(seed, i);
    struct ibv_sge sge = {(uintptr_t)peer->outbox, bytes, peer->outbox_mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    if (ibv_post_send(peer->control, &wr, &bad) != 0)
        die("ibv_post_send: %m");
    finish_sends(peer, 1);
}

static const char *heard(const struct peer *peer, uint32_t bytes, uint32_t seed)
{
    /* What is not the one may be an earlier one that the network doubled. */
    for (int64_t last = now_ns(); now_ns() - last < QUIET_NS;) {
        struct ibv_wc wc;
        if (ibv_poll_cq(peer->heard, 1, &wc) == 0)
            continue;
        bool same = wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == bytes;
        for (uint32_t i = 0; same && i < bytes; i++)
            same = peer->ear[i] == byte_of(seed, i);
        post_ear(peer);
        if (same)
            return "yes";
        last = now_ns();
    }
    return "no";
}

static void poll_received(struct peer *peer, uint32_t minimum, char *answer, size_t room)
{
    uint32_t took = 0, errors = 0;
    for (int64_t last = now_ns(); now_ns() - last < (took < minimum ? PATIENCE_NS : QUIET_NS);) {
        struct ibv_wc wc;
        int got = ibv_poll_cq(peer->received, 1, &wc);
        if (got < 0)
            die("ibv_poll_cq");
        if (got == 0)
            continue;
        last = now_ns();
        uint32_t message = ntohl(wc.imm_data) >> 22, packet = (ntohl(wc.imm_data) >> 4) & 0x3FFFF;
        bool good =
            wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && packet < PACKETS_MAX;
        took += good;
        errors += !good;
        peer->posted--;
        if (good && message == peer->area)
            peer->came[packet] = true;
    }
    snprintf(answer, room, "took %u %u", took, errors);
}

static void check(const struct peer *peer, bool all, uint32_t total, uint32_t seed, char *answer,
                  size_t room)
{
    uint32_t start = peer->area * AREA_BYTES;
    uint32_t first = all ? 0 : start, end = all ? AREAS * AREA_BYTES : start + AREA_BYTES;
    for (uint32_t i = first; i < end; i++) {
        uint8_t wanted = i >= start && i - start < total ? byte_of(seed, i - start) : BLANK;
        if (peer->inbox[i] != wanted) {
            snprintf(answer, room, "byte %u is %02x, not %02x", i, peer->inbox[i], wanted);
            return;
        }
    }
    snprintf(answer, room, "same");
}

static void set_message(struct peer *peer, const char *words)
{
    if (sscanf(words, "message %u %" SCNx64 " %" SCNx32 " %u %u", &peer->slot, &peer->base, &peer->rkey,
               &peer->total, &peer->seed) != 5 ||
        peer->total > AREA_BYTES)
        die("what is \"%s\"?", words);
    for (uint32_t i = 0; i < peer->total; i++)
        peer->outbox[i] = byte_of(peer->seed, i);
}

static void clear(struct peer *peer, uint32_t area)
{
    if (area >= AREAS)
        die("there is no area %u", area);
    peer->area = area;
    memset(peer->inbox, BLANK, AREAS * AREA_BYTES);
    memset(peer->came, 0, sizeof peer->came);
}

static uint64_t missing(const struct peer *peer, uint32_t first, uint32_t count)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < count && i < 64 && first + i < PACKETS_MAX; i++)
        bits |= (uint64_t)!peer->came[first + i] << i;
    return bits;
}

/* Does what a line says and writes the answer. */
static void obey(struct peer *peer, const char *line, char *answer, size_t room)
{
    uint32_t a, b, c;
    uint64_t va;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr unused;
    snprintf(answer, room, "ok");
    if (sscanf(line, "mtu %u", &a) == 1)
        peer->mtu = a;
    else if (sscanf(line, "post %u", &a) == 1)
        for (; a > 0; a--, peer->posted++)
            post_receive(peer->data, NULL);
    else if (strncmp(line, "message ", 8) == 0)
        set_message(peer, line);
    else if (sscanf(line, "write %u %u", &a, &b) == 2)
        write_packets(peer, a, b);
    else if (sscanf(line, "raw %" SCNx32 " %" SCNx64 " %" SCNx32 " %u", &a, &va, &b, &c) == 4)
        post_write(peer, 0, c, va, b, a), finish_sends(peer, 1);
    else if (sscanf(line, "poll %u", &a) == 1)
        poll_received(peer, a, answer, room);
    else if (sscanf(line, "missing %u %u", &a, &b) == 2)
        snprintf(answer, room, "%" PRIx64, missing(peer, a, b));
    else if (strcmp(line, "left") == 0)
        snprintf(answer, room, "%u", peer->posted);
    else if (sscanf(line, "clear %u", &a) == 1)
        clear(peer, a);
    else if (sscanf(line, "check %u %u", &a, &b) == 2)
        check(peer, false, a, b, answer, room);
    else if (sscanf(line, "check-all %u %u", &a, &b) == 2)
        check(peer, true, a, b, answer, room);
    else if (sscanf(line, "say %u %u", &a, &b) == 2)
        say(peer, a, b);
    else if (sscanf(line, "heard %u %u", &a, &b) == 2)
        snprintf(answer, room, "%s", heard(peer, a, b));
    else if (strcmp(line, "state") == 0 && ibv_query_qp(peer->data, &attr, IBV_QP_STATE, &unused) == 0)
        snprintf(answer, room, "%d", (int)attr.qp_state);
    else
        die("what is \"%s\"?", line);
}

static int connect_to(const char *address, const char *port, union ibv_gid *gid)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *info;
    if (getaddrinfo(address, port, &hints, &info) != 0)
        die("%s is no address", address);
    memset(gid, 0, sizeof *gid);
    if (info->ai_family == AF_INET6) {
        memcpy(gid->raw, &((struct sockaddr_in6 *)(void *)info->ai_addr)->sin6_addr, 16);
    } else {
        gid->raw[10] = gid->raw[11] = 0xFF;
        memcpy(gid->raw + 12, &((struct sockaddr_in *)(void *)info->ai_addr)->sin_addr, 4);
    }
    /* The other side may not listen yet. */
    for (int i = 0; i < CONNECT_TRIES; i++) {
        int fd = socket(info->ai_family, SOCK_STREAM, 0);
        if (connect(fd, info->ai_addr, info->ai_addrlen) == 0) {
            freeaddrinfo(info);
            return fd;
        }
        close(fd);
        usleep(100000);
    }
    die("nobody listens at %s port %s", address, port);
}

int main(int argc, char **argv)
{
    static struct peer peer;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3)
        die("usage: peer ADDRESS PORT");
    int fd = connect_to(argv[1], argv[2], &peer.host);
    FILE *in = sure(fdopen(fd, "r"), "fdopen"), *out = sure(fdopen(dup(fd), "w"), "fdopen");
    setvbuf(out, NULL, _IOLBF, 0);
    open_device(&peer);
    char line[256], answer[256];
    fprintf(out, "%u %u %" PRIx32 " %" PRIx64 " %u\n", peer.data->qp_num, peer.control->qp_num,
            peer.inbox_mr->rkey, (uint64_t)(uintptr_t)peer.inbox, peer.mtu);
    uint32_t data, control;
    if (fgets(line, sizeof line, in) == NULL || sscanf(line, "%u %u", &data, &control) != 2)
        die("the other side does not say where it is");
    connect_qp(&peer, peer.data, data);
    connect_qp(&peer, peer.control, control);
    snprintf(answer, sizeof answer, "ok");
    do {
        fprintf(out, "%s\n", answer);
        if (fgets(line, sizeof line, in) == NULL)
            die("the other side is gone");
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "quit") != 0)
            obey(&peer, line, answer, sizeof answer);
    } while (strcmp(line, "quit") != 0);
    printf("did as it was told\n");
    return 0;
}
