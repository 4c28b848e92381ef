/*
 * path_memory.h - what a connection takes from the file of remembered paths, and leaves there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_PATH_MEMORY_H
#define LH_MESSAGE_PATH_MEMORY_H

#include "message/connection.h"
#include "wire/qp_info.h"

/* Sets c->remembered, before the connection is attached. */
void path_memory_load(struct lh_connection *c, const struct qp_info_endpoint *peer);
/* Writes what the connection's controller learned of the path, if it did. Failure is no error. Before the
 * queue pair is destroyed. */
void path_memory_save(struct lh_connection *c);

#endif
