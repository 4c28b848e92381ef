/*
 * keepers.h - one keepalive for each pair of contexts: of all QPs that lead to one peer's address, one is the
 * keeper, whose pings keep NAT and firewalls on the path open for all of them. It also asks the peer's
 * context which QPs are connected that this side waits for, by their tokens.
 *
 * Those are alone that it does not speak for, and ping by themselves: until its next question; when they were
 * asked for, and no answer came before the next one; when their pings are due more often than the keeper's;
 * and where the peer does not answer such questions.
 *
 * Timer:
 *   ask_at   of a keeper: its interval of pings
 *
 * Any thread may add and remove: the table has a lock of its own, under which nothing else is taken. The rest
 * is the control worker's, and no member goes while it looks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_KEEPERS_H
#define LH_SDR_KEEPERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <longhaul/types.h>

#define KEEPERS_LISTS     256u
#define KEEPERS_TOKENS    1024u
#define KEEPERS_KEY_BYTES 36u /* family, port, translated; the address of the peer, and where it is seen */

/* A QP that leads to a peer. Zeroed: it is in no table. */
struct keeper {
    struct keeper *next;
    struct keeper *previous;
    bool listed;
    _Atomic bool keeps; /* read by its worker without the lock */
    uint8_t key[KEEPERS_KEY_BYTES];
    struct keeper *next_token; /* of those whose tokens share a list */
    uint32_t token;            /* set before it is added, as the next two */
    uint32_t peer_token;
    bool asked_for;              /* its peer answers who asks for it */
    _Atomic lh_time interval_ns; /* of its pings */
    _Atomic lh_time alive_ns;    /* when its peer was last said to be; 0: never */
    bool waits;                  /* this side waits for the peer; the control worker's, as what follows */
    bool alone;                  /* nobody says that its peer is alive */
    lh_time ping_from;           /* not before, when it was quiet */
    uint32_t asked;              /* so often without an answer */
    lh_time ask_at;              /* of one that keeps */
    struct keeper *next_alone;   /* of those that a question left alone */
};

struct keepers {
    pthread_mutex_t lock;
    struct keeper *lists[KEEPERS_LISTS];
    struct keeper *tokens[KEEPERS_TOKENS];
};

void keepers_init(struct keepers *keepers);
void keepers_destroy(struct keepers *keepers);
/* The first with its key becomes the keeper. */
void keepers_add(struct keepers *keepers, struct keeper *keeper, const uint8_t key[KEEPERS_KEY_BYTES]);
/* Another one with its key, if there is any, becomes the keeper in its place: that one, or NULL. No effect on
 * one that is in no table. */
struct keeper *keepers_remove(struct keepers *keepers, struct keeper *keeper);

/* Whether this side waits for its peer. */
void keeper_wait(struct keeper *keeper, bool waits, lh_time now);
bool keeper_is_alone(const struct keeper *keeper);

/* A question of a keeper for all others that wait, which may take some messages. */
struct keepers_question {
    struct keeper *self;
    struct keeper *at; /* the next one */
    lh_time now;
    struct keeper *alone; /* out: those that were left alone by it, a list; the caller wakes them */
};
/* Begins one, and schedules the next. */
struct keepers_question keepers_ask(struct keepers *keepers, struct keeper *self, lh_time now);
/* How many tokens of peers the next message has, at most `room`; 0: there is none. */
uint32_t keepers_fill(struct keepers *keepers, struct keepers_question *question, uint32_t *tokens,
                      uint32_t room);
/* The peer of `self` asks for those: the tokens of their peers, of those that are connected to the same
 * context. Returns how many. */
uint32_t keepers_answer(struct keepers *keepers, const struct keeper *self, const uint32_t *asked,
                        uint32_t count, lh_time now, uint32_t *tokens);
/* The answer. */
void keepers_on_alive(struct keepers *keepers, const struct keeper *self, const uint32_t *tokens,
                      uint32_t count, lh_time now);

#endif
