/*
 * waiting.h - threads that wait for something in a mesh: one of them polls its queue for all, the thread of
 * the mesh or a caller.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_WAITING_H
#define LH_GROUP_WAITING_H

#include "group/mesh.h"

/* -LH_ENOMEM: lock and condition. */
int waiting_init(struct mesh *mesh);
void waiting_free(struct mesh *mesh);
/* Waits under the mesh's lock until is(what) holds. -LH_ETIMEDOUT. The engine has workers. */
int wait_until(struct mesh *mesh, bool (*is)(const void *what), const void *what, lh_time timeout_ns);
/* Has whoever polls compute anew how long it may. Under the lock. */
void waiting_wake(struct mesh *mesh);
/* Starts and ends the thread of a mesh; the second without the lock. -LH_ESYSTEM. */
int waiting_start_thread(struct mesh *mesh);
void waiting_end_thread(struct mesh *mesh);

#endif
