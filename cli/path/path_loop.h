/*
 * path_loop.h - moves packets between the two ends of a path, each at its time; and messages over TCP through
 * it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_PATH_LOOP_H
#define LH_CLI_PATH_PATH_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/path/path_line.h"
#include "cli/path/path_packets.h"

/* What a direction does besides its line. */
struct path_direction_config {
    struct path_line_config line;
    struct path_filter filter;
    uint64_t rate_max_bps; /* the largest that path_set_rate() will give */
    int64_t far_ns;        /* what flows from PATH_FLOW_FAR on have in addition to the line's delay */
    bool clear_ecn;        /* removes ECT and CE: a path that does not let marks through */
};

enum { PATH_NEAR, PATH_FAR, PATH_DELAYS };

struct path_direction {
    struct path_direction_config config;
    struct path_line line;
    struct path_ring ring[PATH_DELAYS];
    struct path_flows *flows; /* NULL: not counted */
    int from, to;             /* TUN devices */
    uint64_t filtered_packets;
    uint64_t
        full_packets; /* dropped because this process had no room for them: more memory than expected */
    uint64_t refused_packets; /* that the kernel did not take at the end of the path */
    struct path_histogram
        late; /* how long after its time each packet left: what this machine adds to the path */
};

struct path {
    struct path_nat *nat;                       /* NULL: none; of the caller */
    struct path_direction direction[PATH_ENDS]; /* by the end that sends */
    uint8_t *scratch;
    size_t packet_max;
    int64_t slept_ns; /* end of the last sleep */
};

/* Nanoseconds of the clock that the loop runs by. */
int64_t path_now(void);

/* Puts this process before others, because packets have a time to leave at; what it starts is
 * scheduled as usual. False and errno: not allowed, packets may leave late. */
bool path_hurry(void);

/* The path between two ends that stay open meanwhile, for packets up to mtu. False: out of memory. */
bool path_open(struct path *path, const struct path_end end[PATH_ENDS],
               const struct path_direction_config config[PATH_ENDS], unsigned mtu);
void path_close(struct path *path);
/* Moves packets until that time, or until a signal handler sets *stop. Sleeps while nothing is due, but
 * for the last microseconds, which it spins. */
void path_run(struct path *path, int64_t until_ns, const volatile sig_atomic_t *stop);
/* A new rate of a direction that has one, for what is in its queue, too. */
void path_set_rate(struct path *path, unsigned side, uint64_t rate_bps);

/* ---- tcp messages ---------------------------------------------------------------------------------- */

/*
 * Messages over the kernel's TCP, one after the other: what Longhaul is compared with.
 *
 * A message is its length, 8 bytes in little-endian order, and that many bytes; the receiver answers
 * with one byte. The completion time ends with that.
 */

/* Addresses are numbers, IPv4 or IPv6. Sockets, or -1 and errno. */
int path_tcp_listen(const char *address, uint16_t port);
/* from: NULL for any. congestion: of the kernel's list, NULL for its default. */
int path_tcp_connect(const char *address, uint16_t port, const char *from, const char *congestion);

/* Reads and answers messages on a socket until the peer closes it. landing: where each goes, of that
 * size, or NULL: nowhere. False and errno: it broke, or was longer. */
bool path_tcp_answer(int fd, uint8_t *landing, uint64_t landing_bytes);
/* Sends a message, data or, for NULL, zeros, and waits for the answer; its completion time. False and
 * errno: it broke. */
bool path_tcp_send(int fd, const uint8_t *data, uint64_t bytes, int64_t *took_ns);
/* What a connection has sent, and of that again. */
bool path_tcp_sent(int fd, uint64_t *bytes, uint64_t *again_bytes);

#endif
