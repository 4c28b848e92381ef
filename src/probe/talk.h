/*
 * talk.h - messages of a probe over TCP, whole ones, with deadlines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_TALK_H
#define LH_PROBE_TALK_H

#include "probe/message.h"

/* -LH_EPEER, -LH_ETIMEDOUT. */
int talk_say(int fd, const struct probe_message *message, lh_time deadline);
/* Also what probe_message_decode() returns. */
int talk_hear(int fd, struct probe_message *message, lh_time deadline);
/* One of that type, or the reason of a REFUSE as -LH_EPEER. */
int talk_hear_type(int fd, enum probe_message_type type, struct probe_message *message, lh_time deadline);

#endif
