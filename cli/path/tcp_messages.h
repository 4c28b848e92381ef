/*
 * tcp_messages.h - messages over the kernel's TCP, one after the other: what Longhaul is compared with.
 *
 * A message is its length, 8 bytes in little-endian order, and that many bytes; the receiver answers
 * with one byte. The completion time ends with that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_TCP_MESSAGES_H
#define LH_CLI_PATH_TCP_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

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
