/*
 * congestion_table.h - the one list of controllers, and texts that choose one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_CONGESTION_TABLE_H
#define LH_CONGESTION_CONGESTION_TABLE_H

#include <longhaul/congestion.h>

/* A controller and its parameters. */
struct congestion_choice {
    const struct lh_congestion *controller;
    uint8_t params[LH_CONGESTION_PARAMS];
};

/* The list, ended by NULL; lh_congestions() adds those of programs. */
const struct lh_congestion *const *congestion_built_in(void);
/* Its number on the wire (wire/wire_numbers.h); 0: it is a program's. */
uint8_t congestion_wire_number(const struct lh_congestion *controller);
/* NULL: no controller has that number. Any number may come from the peer. */
const struct lh_congestion *congestion_of_wire_number(uint8_t number);
/* It takes no feedback. */
bool congestion_is_fixed(const struct congestion_choice *choice);
/* Parses "bbr" or "swift,target=200us". -LH_EINVAL, naming the text and the controllers that exist. */
int congestion_choice_parse(const char *text, struct congestion_choice *choice);

#endif
