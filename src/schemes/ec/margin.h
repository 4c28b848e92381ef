/*
 * margin.h - how many chunks more than it lacks a receiver asks for.
 *
 * What is asked for is lost as often as anything else, and a second request costs a round trip. So a few
 * more are asked for: as many that too few arrive once in a million times, at the loss that this transfer
 * has seen.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_MARGIN_H
#define LH_SCHEMES_EC_MARGIN_H

#include <stdint.h>

#define EC_MARGIN_MAX 255u

/* The smallest a such that of lacking + a chunks fewer than `lacking` arrive with a probability of at most
 * 1e-6, where each is lost as those were of which `injected` were sent and `arrived` came: at least 1 in
 * 1024, at most every second. At most EC_MARGIN_MAX. */
uint32_t ec_margin(uint32_t lacking, uint32_t injected, uint32_t arrived);

#endif
