/*
 * serve.h - one client's probe at the server: answers its packets, counts what arrives, reports.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_SERVE_H
#define LH_PROBE_SERVE_H

#include "probe/message.h"

/* From its HELLO to its end. 0 when it closed between two rounds; -LH_EPROTOCOL, -LH_EPEER (in the middle of
 * a round), -LH_ETIMEDOUT, or an error of this side, which the client gets as a REFUSE. */
int probe_serve(int tcp_fd, const struct probe_message *hello);

#endif
