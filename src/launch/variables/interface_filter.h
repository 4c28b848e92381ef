/*
 * interface_filter.h - which network interfaces to use, in the grammar of NCCL_SOCKET_IFNAME: "eth,ib" names
 * prefixes, "=eth0,eth1" whole names; "^docker,lo" and "^=docker0" take all others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_VARIABLES_INTERFACE_FILTER_H
#define LH_LAUNCH_VARIABLES_INTERFACE_FILTER_H

#include <stdbool.h>

/* Whether it names at least one interface, and none that is empty. */
bool interface_filter_valid(const char *filter);
/* Place of the interface in the filter's order, from 0; -1: it does not match. Those that an exclusion leaves
 * are all at 0. The filter is valid. */
int interface_filter_match(const char *filter, const char *interface);

#endif
