/*
 * group_root.h - rank 0 of a rendezvous over TCP: lets the other ranks join, and runs exchanges among them.
 * Only calls make progress, and each ends by its deadline. Strangers, slow and hostile clients cost a place
 * among GROUP_CLIENTS_MAX for GROUP_CLIENT_TIMEOUT_NS at most, and leave when others need it (admission.h).
 * A rank that had to leave returns, and joins with its first bytes (group_frame.h).
 *
 * An error of a call is sent to all ranks as the reason, and ends the rendezvous.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_GROUP_GROUP_ROOT_H
#define LH_LAUNCH_GROUP_GROUP_ROOT_H

#include <longhaul/types.h>

#define GROUP_CLIENTS_MAX       64u
#define GROUP_CLIENT_TIMEOUT_NS (5 * LH_NS_PER_S)

struct group_root;

/* Listens at "HOST:PORT" for size - 1 ranks. secret and job: "" for none; they stay the caller's. -LH_EADDR,
 * -LH_ENOMEM, -LH_ESYSTEM. */
int group_root_open(const char *where, uint32_t size, const char *secret, const char *job,
                    struct group_root **root);
/* Waits until all ranks have joined. -LH_ETIMEDOUT names those that are missing. */
int group_root_join(struct group_root *root, lh_time timeout_ns);
/* As group_exchange() of rank 0. -LH_ETIMEDOUT and -LH_EPEER name the rank, -LH_EINVAL two ranks whose sizes
 * differ. */
int group_root_exchange(struct group_root *root, const void *mine, size_t bytes, void *all,
                        lh_time timeout_ns);
/* The socket of a rank that has joined. */
int group_root_socket(const struct group_root *root, uint32_t rank);
/* Refuses clients that wait, and closes. Changes lh_last_error(). */
void group_root_close(struct group_root *root);

#endif
