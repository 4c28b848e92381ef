/*
 * completion.h - completion queues, and the events that end a sleep.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_COMPLETION_H
#define LH_FABRIC_VERBS_COMPLETION_H

#include "fabric/verbs/endpoint/endpoint.h"

int verbs_cqs_open(struct verbs_endpoint *endpoint, struct verbs_cqs *cqs, uint32_t index,
                   uint32_t recv_cqe, uint32_t send_cqe);
void verbs_cqs_close(struct verbs_cqs *cqs);
/* Completions, 0 … count. When there are none the queue is armed, so that the next one gives an event,
 * and polled once more. */
uint32_t verbs_cqs_poll(struct verbs_cqs *cqs, struct verbs_cq *queue, struct ibv_wc *completions,
                        uint32_t count);

#endif
