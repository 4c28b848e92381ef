/*
 * xp_udp_pair.h - XP objects on loopback, and their queue pairs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_UNIT_XP_XP_UDP_PAIR_H
#define LH_TESTS_UNIT_XP_XP_UDP_PAIR_H

#include <longhaul/xp.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "xp/udp/xp_udp.h"

/* Longer than any test: what does not arrive ends the test, no test waits for it. */
#define XP_UDP_LONG    (10 * LH_NS_PER_S)
#define XP_UDP_SILENCE 5000u /* rounds of 1 ms in which nothing happens */

/* A queue pair of an object. */
struct xp_udp_end {
    struct lh_xp *xp;
    uint32_t qpn, seq;
};

/* At a rate at which no first packet of a queue pair waits for its pace. */
static inline struct lh_xp_attr xp_udp_attr(const char *address)
{
    struct lh_xp_attr attr;
    lh_xp_attr_init(&attr);
    attr.address = address;
    attr.qps = 8;
    attr.rate_bps = UINT64_C(4000000000000);
    return attr;
}

static inline struct lh_xp *xp_udp_create(const struct lh_xp_attr *attr)
{
    struct lh_xp *xp = NULL;
    assert_int_equal(lh_xp_create(attr, &xp), 0);
    assert_non_null(xp);
    return xp;
}

static inline struct xp_udp_end xp_udp_open(struct lh_xp *xp)
{
    struct xp_udp_end end = {.xp = xp};
    assert_int_equal(lh_xp_open(xp, &end.qpn, &end.seq), 0);
    return end;
}

/* One direction of it: `to` is what `end` sends to and takes packets from. */
static inline int xp_udp_connect(const struct xp_udp_end *end, const struct xp_udp_end *to)
{
    char address[LH_XP_ADDRESS_MAX];
    return lh_xp_connect(end->xp, end->qpn, lh_xp_address(to->xp, address), to->qpn, to->seq);
}

static inline void xp_udp_join(struct lh_xp *a, struct lh_xp *b, struct xp_udp_end ends[2])
{
    ends[0] = xp_udp_open(a);
    ends[1] = xp_udp_open(b);
    assert_int_equal(xp_udp_connect(&ends[0], &ends[1]), 0);
    assert_int_equal(xp_udp_connect(&ends[1], &ends[0]), 0);
}

static inline void xp_udp_post(const struct xp_udp_end *end, struct lh_xp_request request)
{
    request.timeout_ns = request.timeout_ns ? request.timeout_ns : XP_UDP_LONG;
    assert_int_equal(lh_xp_post(end->xp, end->qpn, &request), 0);
}

/* Both, once; sleeps for a moment when neither had anything to do, and fails after long silence. */
static inline void xp_udp_progress(struct lh_xp *a, struct lh_xp *b)
{
    static unsigned silent;
    struct pollfd fds[] = {{lh_xp_fd(a), POLLIN, 0}, {lh_xp_fd(b), POLLIN, 0}};
    int did[] = {lh_xp_progress(a), lh_xp_progress(b)};
    assert_in_range(did[0], 0, 1);
    assert_in_range(did[1], 0, 1);
    silent = did[0] || did[1] ? 0 : silent + 1;
    assert_in_range(silent, 0, XP_UDP_SILENCE);
    if (silent)
        poll(fds, 2, 1);
}

/* The next completion of one of them. */
static inline struct lh_xp_completion xp_udp_await(struct lh_xp *of, struct lh_xp *with)
{
    struct lh_xp_completion completion;
    while (lh_xp_poll(of, &completion, 1) == 0)
        xp_udp_progress(of, with);
    return completion;
}

static inline struct lh_xp_counters xp_udp_counters(const struct lh_xp *xp)
{
    struct lh_xp_counters counters;
    lh_xp_counters(xp, &counters);
    return counters;
}

/* A datagram of any bytes from the socket of one to that of the other. */
static inline void xp_udp_throw(const struct lh_xp *from, const struct lh_xp *to, const void *data,
                                size_t bytes)
{
    const union udp_address *address = &to->local;
    ssize_t sent = sendto(lh_xp_fd(from), data, bytes, 0, &address->any, udp_address_size(address));
    assert_int_equal(sent, bytes);
}

#endif
