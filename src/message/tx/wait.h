/*
 * wait.h - what keeps the sending part from giving the SDR layer more, and for how long. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_WAIT_H
#define LH_MESSAGE_TX_WAIT_H

#include <longhaul/types.h>

struct tx;

enum tx_wait {
    TX_WAIT_MESSAGE,         /* for lh_send() */
    TX_WAIT_SDR,             /* for nothing: the SDR layer has chunks to send */
    TX_WAIT_ACKNOWLEDGEMENT, /* all of what is to be sent was */
    TX_WAIT_WINDOW,          /* attr.window_bytes are in flight */
    TX_WAIT_BUFFER,          /* what the peer's sockets hold, on a short path */
    TX_WAIT_SLOTS,           /* all of them are taken */
    TX_WAIT_RECEIVE,         /* for a clear-to-send: the peer has no receive posted, or it is on the path */
    TX_WAITS,
};

/* All zero: nothing noted yet. */
struct tx_waits {
    enum tx_wait now;
    lh_time since_ns; /* 0: before the first message */
    lh_time ns[TX_WAITS];
};

/* Notes what it is from now on; to be called in each round. Time before the first message does not count. */
void tx_wait_note(struct tx *tx, lh_time now);

#endif
