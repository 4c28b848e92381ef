/*
 * message_io.h - messages of a probe over TCP, whole ones, with deadlines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_MESSAGE_IO_H
#define LH_PROBE_MESSAGE_IO_H

#include "probe/message.h"

/* -LH_EPEER, -LH_ETIMEDOUT. */
int probe_message_write(int fd, const struct probe_message *message, lh_time deadline);
/* Also what probe_message_decode() returns. */
int probe_message_read(int fd, struct probe_message *message, lh_time deadline);
/* One of that type, or the reason of a REFUSE as -LH_EPEER. */
int probe_message_read_type(int fd, enum probe_message_type type, struct probe_message *message,
                            lh_time deadline);

#endif
