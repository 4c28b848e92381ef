/*
 * collective.h - collectives as rounds of messages that wait for each other (SDR-RDMA paper, appendix C).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_COLLECTIVE_H
#define LH_MODEL_COLLECTIVE_H

#include "model/predictor.h"

/* The path of one of its messages. -LH_EINVAL, -LH_ERANGE. */
int model_collective_path(const struct lh_model_path *path, enum lh_model_collective collective,
                          uint32_t datacenters, struct lh_model_path *message);
/* Rounds, each as long as a message, that the longest chain of dependent messages has. */
uint32_t model_collective_rounds(enum lh_model_collective collective, uint32_t datacenters);
/* Seconds until the last datacenter is done. ready: 2 * datacenters numbers of scratch. */
double model_collective_draw(const struct model_prediction *prediction, enum lh_model_collective collective,
                             uint32_t datacenters, struct lh_prng *prng, uint8_t *cells, double *ready);

#endif
