/*
 * rendezvous_flights.h - how many flights a handshake takes: one side steps, then the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_RENDEZVOUS_FLIGHTS_H
#define LH_TESTS_RENDEZVOUS_FLIGHTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launch/rendezvous.h"
#include "launch/tcp.h"

#define RUN_PATIENCE_NS (60 * LH_NS_PER_S)

/* Steps one side alone until it has come that far. */
#define RUN_UNTIL(side, permit, far)                                                                       \
    for (lh_time until = tcp_deadline(RUN_PATIENCE_NS); !(far);) {                                         \
        assert_true(tcp_now() < until);                                                                    \
        assert_true(rendezvous_step(side, permit, tcp_now()) >= 0);                                        \
    }

/* Behind the handshake of TCP each side sends two flights, TLS's among them. What waits for a further one,
 * which takes a round trip on a path, would stay where it is: the other side does not step. */
static inline void run_in_two_round_trips(struct rendezvous *client, struct rendezvous *server,
                                          struct rendezvous_permit permit)
{
    RUN_UNTIL(server, permit, server->connection); /* PROPOSAL, BLOB */
    assert_int_equal(server->state, RENDEZVOUS_BLOB);
    RUN_UNTIL(client, permit, client->state == RENDEZVOUS_PATH); /* BLOB, a ping */
    RUN_UNTIL(server, permit, server->promised);                 /* READY */
    RUN_UNTIL(client, permit, client->state == RENDEZVOUS_DONE);
    RUN_UNTIL(server, permit, server->state == RENDEZVOUS_DONE);
}

#endif
