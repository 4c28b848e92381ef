/*
 * receive.h - memory that peers may reach by key.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_RECEIVE_H
#define LH_XP_RECEIVE_H

#include "xp/nic.h"

/* *found: whether a region of this key, with that access, has these bytes. Where they are; NULL where none
 * are kept (simulation). */
uint8_t *xp_region_at(const struct xp_nic *nic, uint32_t key, uint32_t access, uint64_t address,
                      uint64_t bytes, bool *found);

#endif
