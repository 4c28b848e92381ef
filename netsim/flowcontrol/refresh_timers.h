/*
 * refresh_timers.h - signals that are refreshed as long as they hold: pauses that end by themselves, and
 * limits of credit.
 *
 * Two timers a link: at its far end, when what was signalled is due again, as long as it holds; at its near
 * end, the end of a pause, which the next pause or a resume cancels. A link that is not paused has none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_REFRESH_TIMERS_H
#define LH_NETSIM_FLOWCONTROL_REFRESH_TIMERS_H

#include "netsim/flowcontrol/flow_control.h"

/* The quanta of pauses on that link; NETSIM_HOLD: they last until the resume. */
uint64_t netsim_refresh_quanta(const struct netsim_flow_control *control, uint32_t link);
/* A pause or limit was signalled, and is to be refreshed from now on; or not any more. */
void netsim_refresh_begin(struct netsim_flow_control *control, uint32_t link);
void netsim_refresh_end(struct netsim_flow_control *control, uint32_t link);
/* The refresh of the link is due. */
void netsim_refresh_on_expired(struct netsim_flow_control *control, uint32_t link);
/* A pause of that many quanta arrived, or a resume (0): the pause before it is over. */
void netsim_refresh_on_pause(struct netsim_flow_control *control, uint32_t port, uint64_t quanta);

#endif
