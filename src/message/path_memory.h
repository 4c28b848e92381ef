/*
 * path_memory.h - what a connection takes from the file of remembered paths, and leaves there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_PATH_MEMORY_H
#define LH_MESSAGE_PATH_MEMORY_H

#include <longhaul/connection.h>

#include "history/path_file.h"
#include "wire/qp_info.h"

struct path_memory {
    struct path_record record; /* as of lh_attach(); rate_bps 0: nothing but the addresses */
    char file[];
};

/* With attr->path_file, which is then the copy in there; else *memory stays. -LH_ENOMEM. By free(). */
int path_memory_create(struct lh_attr *attr, struct path_memory **memory);
/* Before the connection is attached. */
void path_memory_load(struct lh_connection *c, const struct qp_info_endpoint *peer);
/* Writes what the connection's controller learned of the path, if it did. Failure is no error. Before the
 * queue pair is destroyed. */
void path_memory_save(struct lh_connection *c);

#endif
