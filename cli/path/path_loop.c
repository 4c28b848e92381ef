/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/path_loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/path/path_line.h"
#include "cli/path/path_packets.h"

/* ---- loop ------------------------------------------------------------------------------------------ */

/* Packets of one direction in a row. */
#define BATCH 32
/* What a sleep may end too late on a machine that is not busy: the rest of a wait is spun away. */
#define SPIN_NS  10000
#define NS_PER_S 1000000000
/* Others get that much of the processor, that often, while we spin; the kernel gives real-time
 * processes up to 95 %. */
#define SPIN_MAX_NS 1000000
#define PAUSE_NS    100000
/* A signal that comes just before a sleep is seen after that. */
#define SLEEP_MAX_NS 50000000
/* Memory for what nobody counts: small packets' headers; and on a path without a rate. */
#define SPARE_BYTES    ((size_t)4 << 20)
#define NO_RATE_BYTES  ((size_t)256 << 20)
#define NO_QUEUE_BYTES ((size_t)1 << 30)

int64_t path_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

bool path_hurry(void)
{
    /* Pauses (below) keep the kernel from stopping us for the sake of others, 50 ms at a time. */
    const struct sched_param first = {.sched_priority = 1};
    prctl(PR_SET_TIMERSLACK, 1);
    return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
}

static size_t capacity_of(const struct path_direction_config *config)
{
    const struct path_line_config *line = &config->line;
    uint64_t rate_bps = line->rate_bps > config->rate_max_bps ? line->rate_bps : config->rate_max_bps;
    if (!line->rate_bps)
        return NO_RATE_BYTES;
    double flying = (double)rate_bps / 8 * (double)(line->delay_ns + config->far_ns) / NS_PER_S;
    double waiting =
        line->queue_bytes == PATH_NO_LIMIT ? (double)NO_QUEUE_BYTES : (double)line->queue_bytes;
    /* Twice: a packet of 40 bytes takes 64. */
    return (size_t)(2 * (flying + waiting)) + SPARE_BYTES;
}

static bool open_direction(struct path_direction *direction, const struct path_direction_config *config,
                           int from, int to, size_t packet_max)
{
    *direction = (struct path_direction){.config = *config, .from = from, .to = to};
    path_line_init(&direction->line, &config->line);
    bool open = true;
    for (unsigned delay = 0; delay < PATH_DELAYS; delay++)
        open &= path_ring_open(&direction->ring[delay], capacity_of(config), packet_max);
    return open;
}

bool path_open(struct path *path, const struct path_end end[PATH_ENDS],
               const struct path_direction_config config[PATH_ENDS], unsigned mtu)
{
    *path = (struct path){.packet_max = mtu, .scratch = malloc(mtu)};
    bool open = path->scratch;
    for (unsigned side = 0; side < PATH_ENDS; side++)
        open &= open_direction(&path->direction[side], &config[side], end[side].tun,
                               end[PATH_ENDS - 1 - side].tun, mtu);
    if (!open)
        path_close(path);
    return open;
}

void path_close(struct path *path)
{
    for (unsigned side = 0; side < PATH_ENDS; side++) {
        for (unsigned delay = 0; delay < PATH_DELAYS; delay++)
            path_ring_close(&path->direction[side].ring[delay]);
    }
    free(path->scratch);
    path->scratch = NULL;
}

/* Into the view of the outside world, or back. */
static bool translate(const struct path *path, bool from_left, struct path_packet *packet,
                      struct path_packet_view *view)
{
    if (!path->nat)
        return true;
    return from_left ? path_nat_outbound(path->nat, packet->data, packet->bytes, view)
                     : path_nat_inbound(path->nat, packet->data, packet->bytes, view);
}

/* Decides about a packet; false: it goes no further. */
static bool take_packet(const struct path *path, struct path_direction *direction,
                        struct path_packet *packet, int64_t now_ns)
{
    struct path_packet_view view;
    bool from_left = direction == &path->direction[PATH_LEFT];
    if (!path_packet_read(packet->data, packet->bytes, &view) || view.multicast)
        return false;
    if (from_left)
        packet->flow = view.from_host;
    if (path_filter_drops(&direction->config.filter, &view, packet->bytes) ||
        !translate(path, from_left, packet, &view)) {
        direction->filtered_packets++;
        return false;
    }
    if (direction->config.clear_ecn && view.ecn != PATH_ECN_NOT_CAPABLE) {
        path_packet_set_ecn(packet->data, &view, PATH_ECN_NOT_CAPABLE);
        view.ecn = PATH_ECN_NOT_CAPABLE;
    }
    struct path_verdict verdict =
        path_line_arrival(&direction->line, now_ns, packet->bytes, view.ecn != PATH_ECN_NOT_CAPABLE);
    if (verdict.marked)
        path_packet_set_ecn(packet->data, &view, PATH_ECN_CONGESTION);
    packet->leave_ns = verdict.leave_ns;
    if (!from_left)
        packet->flow = view.to_host;
    return verdict.fate == PATH_DELIVERED;
}

/* Puts it where its delay passes. */
static void keep_packet(struct path_direction *direction, struct path_packet *packet)
{
    struct path_packet *far;
    if (packet->flow < PATH_FLOW_FAR || !direction->config.far_ns) {
        path_ring_push(&direction->ring[PATH_NEAR], packet);
        return;
    }
    far = path_ring_space(&direction->ring[PATH_FAR]);
    if (!far) {
        direction->full_packets++;
        return;
    }
    memcpy(far, packet, sizeof *packet + packet->bytes);
    far->leave_ns += direction->config.far_ns;
    path_ring_push(&direction->ring[PATH_FAR], far);
}

/* Reads what has been sent, at most a batch; whether there was anything. */
static bool take_packets(struct path *path, struct path_direction *direction)
{
    unsigned i;
    for (i = 0; i < BATCH; i++) {
        struct path_packet *packet = path_ring_space(&direction->ring[PATH_NEAR]);
        void *at = packet ? packet->data : path->scratch;
        ssize_t bytes = read(direction->from, at, path->packet_max);
        if (bytes <= 0)
            break;
        if (!packet) {
            direction->full_packets++;
            continue;
        }
        packet->bytes = (uint32_t)bytes;
        if (take_packet(path, direction, packet, path_now()))
            keep_packet(direction, packet);
    }
    return i > 0;
}

/* Hands over what is due; whether there was anything. */
static bool release_packets(struct path_direction *direction, struct path_ring *ring)
{
    unsigned i;
    struct path_packet *packet;
    for (i = 0; i < BATCH && (packet = path_ring_first(ring)); i++) {
        int64_t now_ns = path_now();
        if (packet->leave_ns > now_ns)
            break;
        path_histogram_add(&direction->late, now_ns - packet->leave_ns);
        if (direction->flows)
            path_flows_add(direction->flows, now_ns, packet->flow, packet->bytes);
        if (write(direction->to, packet->data, packet->bytes) < 0)
            direction->refused_packets++;
        path_ring_pop(ring);
    }
    return i > 0;
}

static int64_t next_ns(const struct path_direction *direction)
{
    int64_t next = INT64_MAX;
    for (unsigned delay = 0; delay < PATH_DELAYS; delay++) {
        const struct path_packet *first = path_ring_first(&direction->ring[delay]);
        if (first && first->leave_ns < next)
            next = first->leave_ns;
    }
    return next;
}

static void wait_for_more(struct path *path, int64_t until_ns)
{
    int64_t sleep_ns = until_ns - path_now();
    struct pollfd devices[PATH_ENDS];
    for (unsigned side = 0; side < PATH_ENDS; side++) {
        int64_t due_ns = next_ns(&path->direction[side]) - path_now() - SPIN_NS;
        sleep_ns = due_ns < sleep_ns ? due_ns : sleep_ns;
        devices[side] = (struct pollfd){.fd = path->direction[side].from, .events = POLLIN};
    }
    if (sleep_ns <= 0)
        return;
    const struct timespec time = {.tv_nsec = sleep_ns < SLEEP_MAX_NS ? sleep_ns : SLEEP_MAX_NS};
    ppoll(devices, PATH_ENDS, &time, NULL);
    path->slept_ns = path_now();
}

static void pause_now_and_then(struct path *path)
{
    const struct timespec time = {.tv_nsec = PAUSE_NS};
    if (path_now() - path->slept_ns < SPIN_MAX_NS)
        return;
    nanosleep(&time, NULL);
    path->slept_ns = path_now();
}

void path_run(struct path *path, int64_t until_ns, const volatile sig_atomic_t *stop)
{
    while (!*stop && path_now() < until_ns) {
        bool busy = false;
        for (unsigned side = 0; side < PATH_ENDS; side++) {
            struct path_direction *direction = &path->direction[side];
            busy |= take_packets(path, direction);
            for (unsigned delay = 0; delay < PATH_DELAYS; delay++)
                busy |= release_packets(direction, &direction->ring[delay]);
        }
        if (!busy)
            wait_for_more(path, until_ns);
        pause_now_and_then(path);
    }
}

void path_set_rate(struct path *path, unsigned side, uint64_t rate_bps)
{
    struct path_direction *direction = &path->direction[side];
    struct path_rate_change change = path_line_set_rate(&direction->line, path_now(), rate_bps);
    for (unsigned delay = 0; delay < PATH_DELAYS; delay++) {
        struct path_ring *ring = &direction->ring[delay];
        int64_t far_ns = delay == PATH_FAR ? direction->config.far_ns : 0;
        struct path_packet *packet = path_ring_first(ring);
        for (; packet; packet = path_ring_next(ring, packet))
            packet->leave_ns = path_line_moved(&change, packet->leave_ns - far_ns) + far_ns;
    }
}

/* ---- tcp messages ---------------------------------------------------------------------------------- */

#define PIECE_BYTES  ((size_t)256 << 10)
#define HEADER_BYTES 8

static socklen_t parse_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *in = (void *)out;
    struct sockaddr_in6 *in6 = (void *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        return sizeof *in;
    }
    if (inet_pton(AF_INET6, text, &in6->sin6_addr) != 1)
        return 0;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    return sizeof *in6;
}

static int close_with_error(int fd)
{
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int path_tcp_listen(const char *address, uint16_t port)
{
    struct sockaddr_storage at;
    socklen_t bytes = parse_address(address, port, &at);
    int fd = bytes ? socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    int yes = 1;
    if (!bytes)
        errno = EINVAL;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&at, bytes) != 0 || listen(fd, 64) != 0)
        return close_with_error(fd);
    return fd;
}

int path_tcp_connect(const char *address, uint16_t port, const char *from, const char *congestion)
{
    struct sockaddr_storage to, source;
    socklen_t bytes = parse_address(address, port, &to);
    socklen_t source_bytes = from ? parse_address(from, 0, &source) : 0;
    int fd = bytes ? socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    int yes = 1;
    if (!bytes || (from && !source_bytes))
        errno = EINVAL;
    if (fd < 0)
        return -1;
    if ((from && (!source_bytes || bind(fd, (struct sockaddr *)&source, source_bytes) != 0)) ||
        (congestion &&
         setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ||
        connect(fd, (struct sockaddr *)&to, bytes) != 0)
        return close_with_error(fd);
    return fd;
}

static bool send_all(int fd, const uint8_t *data, uint64_t bytes)
{
    while (bytes) {
        ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0) {
            data += sent;
            bytes -= (uint64_t)sent;
        }
    }
    return true;
}

/* False: broken; or, errno 0, closed by the peer. */
static bool receive_all(int fd, uint8_t *data, uint64_t bytes)
{
    while (bytes) {
        ssize_t got = recv(fd, data, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = 0;
        if (got <= 0)
            return false;
        data += got;
        bytes -= (uint64_t)got;
    }
    return true;
}

static bool receive_message(int fd, uint8_t *landing, uint64_t bytes)
{
    static uint8_t piece[PIECE_BYTES];
    if (landing)
        return receive_all(fd, landing, bytes);
    bool done = true;
    for (uint64_t part; done && bytes; bytes -= part) {
        part = bytes < sizeof piece ? bytes : sizeof piece;
        done = receive_all(fd, piece, part);
    }
    return done;
}

bool path_tcp_answer(int fd, uint8_t *landing, uint64_t landing_bytes)
{
    uint8_t header[HEADER_BYTES];
    while (receive_all(fd, header, sizeof header)) {
        uint64_t bytes = 0;
        for (unsigned i = 0; i < HEADER_BYTES; i++)
            bytes |= (uint64_t)header[i] << 8 * i;
        if (landing && bytes > landing_bytes) {
            errno = EMSGSIZE;
            return false;
        }
        if (!receive_message(fd, landing, bytes) || !send_all(fd, header, 1))
            return false;
    }
    return errno == 0;
}

bool path_tcp_send(int fd, const uint8_t *data, uint64_t bytes, int64_t *took_ns)
{
    static const uint8_t zeros[PIECE_BYTES];
    uint8_t header[HEADER_BYTES];
    int64_t started_ns = path_now();
    for (unsigned i = 0; i < HEADER_BYTES; i++)
        header[i] = (uint8_t)(bytes >> 8 * i);
    bool done = send_all(fd, header, sizeof header);
    if (data)
        done = done && send_all(fd, data, bytes);
    for (uint64_t part; !data && done && bytes; bytes -= part) {
        part = bytes < sizeof zeros ? bytes : sizeof zeros;
        done = send_all(fd, zeros, part);
    }
    done = done && receive_all(fd, header, 1);
    *took_ns = path_now() - started_ns;
    return done;
}

bool path_tcp_sent(int fd, uint64_t *bytes, uint64_t *again_bytes)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    *bytes = info.tcpi_bytes_sent;
    *again_bytes = info.tcpi_bytes_retrans;
    return true;
}
