/*
 * wire_numbers.h - the numbers by which schemes and congestion controllers travel.
 *
 * A number is never reused and never changes, wherever its owner is in a table: peers of other releases
 * read it. A new scheme or controller takes the next free number here, and a line in the frozen lists of
 * tests/unit/wire/test_wire_numbers.c. Message types and their fields are in the headers of their layers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_WIRE_NUMBERS_H
#define LH_WIRE_WIRE_NUMBERS_H

/* In each clear-to-send (control_messages.h). From LH_SCHEME_ID_USER on: schemes of programs. */
enum wire_scheme {
    WIRE_SR_NACK = 1,
    WIRE_SR_RTO = 2,
    WIRE_EC_MDS = 3,
    WIRE_EC_XOR = 4,
    WIRE_BOUNDED = 5,
    WIRE_HYBRID = 6,
};

/* Flags of a connection's blob (message/connection_state.h) by which a peer announces that it can send by
 * a scheme: each scheme that peers of the first release do not know has one, beside the flags that are in
 * blob.h. */
enum wire_announcement {
    WIRE_ANNOUNCES_HYBRID = 128,
};

/* In QP info (qp_info.h, credits), of controllers with a receiver's half; the others hold their number, in
 * case they get one. At most UINT8_MAX; 0 is no controller. */
enum wire_controller {
    WIRE_FIXED = 1,
    WIRE_BBR = 2,
    WIRE_SWIFT = 3,
    WIRE_TIMELY = 4,
    WIRE_DCQCN = 5,
    WIRE_EQDS = 6,
};

#endif
