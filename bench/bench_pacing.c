/*
 * The spacing of packets that leave at a rate: unreliable messages of the SDR layer, over loopback, and
 * beside them the same packets by sendmmsg from a thread that waits actively for the time of each burst.
 *
 * A capture socket on the interface takes the kernel's time stamp of each message (a GSO burst is one). What
 * follows its predecessor closer than a tenth of that one's duration at the rate belongs to the same burst.
 * Shown: bytes of a burst as time at the rate; 99th percentile of the gaps from burst to burst, over their
 * median; and the queue that these packets would cause at a bottleneck of exactly this rate.
 *
 * Needs a network namespace of its own: root, or unprivileged user namespaces.
 *
 * usage: bench_pacing [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/sdr_ext.h>
#include <longhaul/units.h>
#include <sdr_mr.h>

#include "report.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define MTU           1024u       /* SDR_MTU_1024 */
#define PACKET_BYTES  (MTU + 36u) /* UDP payload */
#define DATA_OPCODE   0x2B        /* first byte of a data packet (docs/wire.md) */
#define AT_UDP        (14u + 40u) /* in an Ethernet frame with IPv6 */
#define AT_DATA       (AT_UDP + 8u)
#define MESSAGE_LOG   18u /* 256 KiB */
#define MESSAGE_BYTES (1u << MESSAGE_LOG)
#define SLOTS_LOG     5u
#define SLOTS         (1u << SLOTS_LOG)
#define AHEAD         16u /* messages that wait for the pace */
#define SECONDS       1.0
#define SETTLE_S      0.1 /* left out at the start */
#define SEEN_MAX      1000000u
#define GIVE_UP_S     10.0
#define BURSTS_MIN    10u

struct seen {
    double at_s;
    double bytes; /* payload */
};

struct capture {
    int fd;
    struct seen *seen;
    size_t count;
};

struct spacing {
    double burst_us; /* median, as time at the rate */
    double gap_us;   /* median */
    double spread;   /* p99 of the gaps / median */
    double queue_us; /* p99 */
    double rate_bps;
};

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_pacing: %s: %s\n", what, errno != 0 ? strerror(errno) : lh_last_error());
    exit(1);
}

/* ---- the capture --------------------------------------------------------------------------------------- */

static bool enter_namespace(void)
{
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return up;
}

/* Keeps headers of data packets only, so that a second of them fits its buffer. */
static void open_capture(struct capture *capture)
{
    struct sock_filter steps[] = {
        {BPF_LD | BPF_ABS | BPF_B, 0, 0, AT_DATA},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, DATA_OPCODE},
        {BPF_RET | BPF_K, 0, 0, AT_DATA + 1},
        {BPF_RET | BPF_K, 0, 0, 0},
    };
    struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
    int bytes = 512 << 20;
    int on = 1;
    capture->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    capture->seen = malloc(SEEN_MAX * sizeof *capture->seen);
    struct sockaddr_ll lo = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_IPV6),
                             .sll_ifindex = (int)if_nametoindex("lo")};
    if (capture->fd < 0 || capture->seen == NULL ||
        setsockopt(capture->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0 ||
        setsockopt(capture->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0 ||
        bind(capture->fd, (struct sockaddr *)&lo, sizeof lo) != 0)
        die("capture");
    if (setsockopt(capture->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(capture->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

/* One message of the kernel; false when none waits. */
static bool capture_next(struct capture *capture)
{
    uint8_t frame[AT_DATA + 1];
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct timespec))];
    struct sockaddr_ll from;
    struct iovec iov = {frame, sizeof frame};
    struct msghdr message = {.msg_name = &from,
                             .msg_namelen = sizeof from,
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    if (recvmsg(capture->fd, &message, 0) < (ssize_t)sizeof frame)
        return false;
    struct cmsghdr *stamp = CMSG_FIRSTHDR(&message);
    /* The loopback interface shows each packet twice. */
    if (from.sll_pkttype == PACKET_OUTGOING || stamp == NULL || capture->count == SEEN_MAX)
        return true;
    struct timespec time;
    memcpy(&time, CMSG_DATA(stamp), sizeof time);
    uint32_t udp_payload = ((uint32_t)frame[AT_UDP + 4] << 8 | frame[AT_UDP + 5]) - 8;
    uint32_t packets = (udp_payload + PACKET_BYTES - 1) / PACKET_BYTES;
    capture->seen[capture->count++] = (struct seen){(double)time.tv_sec + (double)time.tv_nsec * 1e-9,
                                                    (double)(udp_payload - packets * (PACKET_BYTES - MTU))};
    return true;
}

static void drain(struct capture *capture)
{
    while (capture_next(capture)) /* ends when the senders have stopped */
        ;
}

static struct spacing evaluate(const struct capture *capture, double rate_bps)
{
    static double bursts[SEEN_MAX], gaps[SEEN_MAX], queues[SEEN_MAX];
    size_t burst_count = 0, gap_count = 0, queue_count = 0;
    const struct seen *seen = capture->seen;
    double burst_bytes = 0, burst_at = 0, queue_bytes = 0, total_bytes = 0, first_s = 0;
    for (size_t i = 1; i < capture->count; i++) {
        double since = seen[i].at_s - seen[i - 1].at_s;
        if (seen[i].at_s < seen[0].at_s + SETTLE_S)
            continue;
        queue_bytes = queue_bytes > since * rate_bps / 8 ? queue_bytes - since * rate_bps / 8 : 0;
        queue_bytes += seen[i].bytes;
        queues[queue_count++] = queue_bytes * 8e6 / rate_bps;
        bool follows = since < 0.1 * seen[i - 1].bytes * 8 / rate_bps;
        if (!follows && burst_bytes > 0) {
            bursts[burst_count++] = burst_bytes * 8e6 / rate_bps;
            gaps[gap_count++] = 1e6 * (seen[i].at_s - burst_at);
        }
        if (!follows) {
            burst_at = seen[i].at_s;
            burst_bytes = 0;
        }
        burst_bytes += seen[i].bytes;
        first_s = first_s > 0 ? first_s : seen[i].at_s;
        total_bytes += seen[i].bytes;
    }
    if (gap_count < BURSTS_MIN)
        die("too few bursts were captured");
    struct spacing spacing = {
        .burst_us = report_quantile(bursts, burst_count, 0.5),
        .gap_us = report_quantile(gaps, gap_count, 0.5),
        .queue_us = report_quantile(queues, queue_count, 0.99),
        .rate_bps = total_bytes * 8 / (seen[capture->count - 1].at_s - first_s),
    };
    spacing.spread = report_quantile(gaps, gap_count, 0.99) / spacing.gap_us;
    return spacing;
}

/* ---- the SDR layer ------------------------------------------------------------------------------------- */

struct side {
    struct sdr_context *context;
    struct sdr_qp *qp;
    struct sdr_mr *mr;
    uint8_t *memory; /* of SLOTS messages */
    uint32_t lkey;
};

static void open_side(struct side *side, uint64_t rate_bps)
{
    const struct lh_context_attr context = {.channels = 1, .workers = 1};
    const struct sdr_qp_attr attr = {.bitmap_chunk_size_log_bytes = 16,
                                     .max_in_flight_log_bytes = MESSAGE_LOG + SLOTS_LOG,
                                     .max_log_num_msgs = SLOTS_LOG,
                                     .mtu = SDR_MTU_1024};
    const struct lh_qp_attr more = {.rate_bps = rate_bps};
    size_t bytes = (size_t)SLOTS * MESSAGE_BYTES;
    errno = 0;
    side->memory = calloc(1, bytes);
    if (side->memory == NULL || lh_sdr_context_create("udp:[::1]", &context, &side->context) != 0 ||
        lh_sdr_qp_create(side->context, &attr, &more, &side->qp) != 0)
        die("cannot open udp:[::1]");
    side->mr = sdr_mr_reg(side->context, side->memory, bytes, SDR_ACCESS_REMOTE_WRITE);
    if (side->mr == NULL || sdr_mr_lkey_get(side->mr, &side->lkey) != SDR_SUCCESS)
        die("registration");
}

static void connect_to(struct side *side, const struct side *peer)
{
    size_t bytes;
    uint8_t info[2048];
    if (sdr_qp_info_size_get(peer->qp, &bytes) != SDR_SUCCESS || bytes > sizeof info ||
        sdr_qp_info_get(peer->qp, info) != SDR_SUCCESS || lh_sdr_qp_connect(side->qp, info) != 0)
        die("connect");
}

static void close_side(struct side *side)
{
    sdr_qp_destroy(side->qp);
    sdr_mr_dereg(side->mr);
    sdr_context_destroy(side->context);
    free(side->memory);
}

struct message {
    struct sdr_recv_handle *receive;
    struct sdr_send_handle *send;
};

/* Posts the receive, then the send of one message. False: not now. */
static bool begin(struct message *message, const struct side *sender, const struct side *receiver,
                  uint32_t i)
{
    size_t offset = (size_t)(i % SLOTS) * MESSAGE_BYTES;
    struct sdr_recv_wr receive = {.max_length = MESSAGE_BYTES,
                                  .lkey = receiver->lkey,
                                  .address = (uintptr_t)receiver->memory + offset};
    struct sdr_send_wr send = {.opcode = SDR_WR_WRITE,
                               .length = MESSAGE_BYTES,
                               .lkey = sender->lkey,
                               .local_addr = (uintptr_t)sender->memory + offset};
    if (message->receive == NULL && sdr_recv_post(receiver->qp, &receive, &message->receive) != SDR_SUCCESS)
        message->receive = NULL;
    return message->receive != NULL && sdr_send_post(sender->qp, &send, &message->send) == SDR_SUCCESS;
}

static bool is_whole(const struct message *message)
{
    return lh_sdr_recv_chunks_arrived(message->receive) == MESSAGE_BYTES >> 16;
}

static void run_sdr(const struct side *sender, const struct side *receiver, uint32_t messages)
{
    struct message ring[SLOTS] = {0};
    uint32_t begun = 0, sent = 0, received = 0;
    double give_up = seconds() + GIVE_UP_S;
    while (received < messages) {
        int done = 0;
        if (begun < messages && begun < received + SLOTS && begun < sent + AHEAD)
            begun += begin(&ring[begun % SLOTS], sender, receiver, begun);
        if (sent < begun && sdr_send_poll(ring[sent % SLOTS].send, &done, NULL) == SDR_SUCCESS)
            sent += done != 0;
        if (received < sent && is_whole(&ring[received % SLOTS])) {
            sdr_recv_complete(ring[received % SLOTS].receive);
            ring[received++ % SLOTS].receive = NULL;
        }
        if (seconds() > give_up) {
            errno = ETIMEDOUT;
            die("messages are incomplete (a packet was lost)");
        }
        usleep(50);
    }
}

static struct spacing measure_sdr(struct capture *capture, uint64_t rate_bps)
{
    struct side sender, receiver;
    open_side(&sender, rate_bps);
    open_side(&receiver, 0);
    connect_to(&sender, &receiver);
    connect_to(&receiver, &sender);
    drain(capture);
    capture->count = 0;
    run_sdr(&sender, &receiver, (uint32_t)(SECONDS * (double)rate_bps / 8 / MESSAGE_BYTES) + 1);
    close_side(&sender);
    close_side(&receiver);
    drain(capture);
    return evaluate(capture, (double)rate_bps);
}

/* ---- the reference ------------------------------------------------------------------------------------- */

/* Writes `packets` packets as one GSO burst, or several. */
static void send_burst(int fd, const struct sockaddr_in6 *to, const uint8_t *data, uint32_t packets)
{
    static struct mmsghdr messages[64];
    static struct iovec iov[64];
    static _Alignas(struct cmsghdr) uint8_t control[64][CMSG_SPACE(sizeof(uint16_t))];
    const uint32_t maximum = 65000 / PACKET_BYTES;
    uint32_t count = 0;
    for (uint32_t left = packets; left > 0 && count < 64; count++) {
        uint32_t together = left < maximum ? left : maximum;
        left -= together;
        iov[count] = (struct iovec){(void *)(uintptr_t)data, (size_t)together * PACKET_BYTES};
        struct msghdr *header = &messages[count].msg_hdr;
        *header = (struct msghdr){.msg_name = (void *)(uintptr_t)to,
                                  .msg_namelen = sizeof *to,
                                  .msg_iov = &iov[count],
                                  .msg_iovlen = 1,
                                  .msg_control = control[count],
                                  .msg_controllen = sizeof control[count]};
        struct cmsghdr *segment = CMSG_FIRSTHDR(header);
        *segment = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(uint16_t)), .cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT};
        memcpy(CMSG_DATA(segment), &(uint16_t){PACKET_BYTES}, sizeof(uint16_t));
    }
    if (sendmmsg(fd, messages, count, 0) < 0 && errno != ENOBUFS && errno != EAGAIN)
        die("sendmmsg");
}

/* Bursts as long as the SDR layer's. What nobody reads is dropped behind the capture. */
static struct spacing measure_busy_wait(struct capture *capture, uint64_t rate_bps, double burst_us)
{
    static uint8_t data[65536];
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t size = sizeof to;
    int receiver = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int sender = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (receiver < 0 || sender < 0 || bind(receiver, (struct sockaddr *)&to, size) != 0 ||
        getsockname(receiver, (struct sockaddr *)&to, &size) != 0)
        die("socket");
    for (uint32_t i = 0; i < sizeof data; i += PACKET_BYTES)
        data[i] = DATA_OPCODE;
    double packet_s = MTU * 8.0 / (double)rate_bps;
    uint32_t packets = (uint32_t)(burst_us * 1e-6 / packet_s + 0.5);
    packets = packets > 0 ? packets : 1;
    drain(capture);
    capture->count = 0;
    double start = seconds(), due = start, now = start;
    while (now < start + SECONDS) {
        while ((now = seconds()) < due)
            ;
        send_burst(sender, &to, data, packets);
        /* What was missed while another process had this core is not caught up with. */
        due = (due > now - packets * packet_s ? due : now) + packets * packet_s;
    }
    drain(capture);
    close(sender);
    close(receiver);
    return evaluate(capture, (double)rate_bps);
}

static void print(const char *how, uint64_t rate_bps, const struct spacing *spacing)
{
    char rate[LH_FORMAT_MAX];
    lh_format_rate((double)rate_bps, rate, sizeof rate);
    printf("  %-10s %-22s %9.1f %9.1f %10.2f %10.1f %8.3f\n", rate, how, spacing->burst_us, spacing->gap_us,
           spacing->spread, spacing->queue_us, spacing->rate_bps / (double)rate_bps);
}

int main(int argc, char **argv)
{
    static const uint64_t rates[] = {100000000, 1000000000, 4000000000};
    struct capture capture = {0};
    if (!enter_namespace()) {
        printf("bench_pacing: not measured (needs a network namespace: root or user namespaces)\n");
        return 0;
    }
    open_capture(&capture);
    FILE *json = report_open(argc, argv);
    printf("  %-10s %-22s %9s %9s %10s %10s %8s\n", "rate", "sender", "burst us", "gap us", "p99/median",
           "queue us", "of rate");
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct spacing ours = measure_sdr(&capture, rates[i]);
        struct spacing reference = measure_busy_wait(&capture, rates[i], ours.burst_us);
        char name[64];
        print("longhaul", rates[i], &ours);
        print("sendmmsg, busy wait", rates[i], &reference);
        snprintf(name, sizeof name, "pacing_gap_spread_%.0fMbit", (double)rates[i] * 1e-6);
        report_line(json, name, ours.spread, "p99 / median", "sendmmsg, busy wait", reference.spread, 1);
        snprintf(name, sizeof name, "pacing_queue_%.0fMbit", (double)rates[i] * 1e-6);
        report_line(json, name, ours.queue_us, "us", "sendmmsg, busy wait", reference.queue_us, 1);
    }
    free(capture.seen);
    if (json != NULL)
        fclose(json);
    return 0;
}
