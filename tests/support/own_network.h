/*
 * own_network.h - a loopback interface for this process alone, so that packets that another program's last
 * run left on the way do not come to ports that this one got after it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_OWN_NETWORK_H
#define LH_TESTS_SUPPORT_OWN_NETWORK_H

/* To be called first in main(). Where it is not allowed the test goes on in the network that all share. */
void own_network(void);

#endif
