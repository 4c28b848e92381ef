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
    TX_WAIT_ACKNOWLEDGEMENT, /* all was sent; or a clear-to-send may be on the path */
    TX_WAIT_WINDOW,          /* attr.window_bytes are in flight */
    TX_WAIT_BUFFER,          /* what the peer's sockets hold, on a short path */
    TX_WAIT_SLOTS,           /* all of them are taken */
    TX_WAIT_RECEIVE,         /* for a clear-to-send, longer than a round trip: no receive is posted */
    TX_WAITS,
};

/* All zero: nothing noted yet. */
struct tx_waits {
    enum tx_wait now;
    lh_time since_ns; /* 0: before the first message */
    lh_time cts_ns;   /* a clear-to-send is waited for since then; 0: none is */
    lh_time ns[TX_WAITS];
};

/* Notes what it is from now on; to be called in each round. Time before the first message does not count. */
void tx_wait_note(struct tx *tx, lh_time now);

#endif
