/*
 * early_end.h - messages with a deadline that somebody else keeps, as a group does for its operations: what
 * is sent is withdrawn, what is received ends with what has come.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_EARLY_END_H
#define LH_MESSAGE_EARLY_END_H

#include <longhaul/connection.h>

#include "message/rx/deadline.h"

/* Nothing more of a send is to leave. Its request ends when nothing reads the buffer any more; one that has
 * not begun is canceled. */
void early_end_send(struct lh_request *request);
/* Receives of a connection end with what has come of their messages, whose tags `ends` chooses: their entries
 * are in the queue on return. Not those of which nothing was announced yet. */
void early_end_receives(struct lh_connection *connection, deadline_ends *ends, const void *context);

#endif
