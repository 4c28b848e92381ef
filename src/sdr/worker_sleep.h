/*
 * worker_sleep.h - how a worker sleeps and wakes: watched descriptors, coalescing, spinning; and the
 * keepalive groups of QPs.
 *
 * What is reported is registered, whoever it belongs to: an entry may be removed only under the gate under
 * which reports are read (sdr_worker.h). Descriptors that several QPs have in common are registered for
 * one, who reads for all.
 *
 * Beside them are descriptors of the layers above, each with a function that is called when it is ready.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_WORKER_SLEEP_H
#define LH_SDR_WORKER_SLEEP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <longhaul/types.h>

#include "base/min_max.h"

/* ---- watch other ----------------------------------------------------------------------------------- */

/* A descriptor of a layer above, which a worker waits for beside those of its QPs. */

/* Its owner keeps it. */
struct watch_other {
    int fd;
    /* It is readable, or writable while that is asked for, or broken. Cheap; false: it is watched no
     * longer. */
    bool (*on_ready)(void *context);
    void *context;
    bool watched; /* the watch's own */
};

/* ---- watch ----------------------------------------------------------------------------------------- */

struct run_entry;

#define WATCH_BATCH       64u
#define WATCH_REMOVED_MAX 256u /* of a QP: all its channels and control */

struct watch {
    int fd;           /* of the epoll set, readable when any is; -1: there is none yet */
    uint32_t entries; /* with descriptors in it */
    uint32_t others;  /* descriptors of layers above */
    uint32_t *users;  /* of each descriptor: channels that wait for it */
    uint32_t users_room;
    /* Those that were removed, and which others have in common: the user registers them again. */
    int removed[WATCH_REMOVED_MAX];
    uint32_t removed_count;
};

/* Those of one channel, or of control, that are registered. */
#define WATCH_FDS_MAX 4u
struct watch_fds {
    int fds[WATCH_FDS_MAX];
    uint32_t count;
};

struct watch_report {
    struct run_entry *ready[WATCH_BATCH];
    uint32_t count;
    struct watch_other *others[WATCH_BATCH];
    uint32_t other_count;
};

void watch_init(struct watch *watch);
void watch_close(struct watch *watch);
/* These, instead of what is registered, from now on. One that is there already stays as it is. 0,
 * -LH_ESYSTEM or -LH_ENOMEM. */
int watch_set(struct watch *watch, struct run_entry *entry, struct watch_fds *registered, const int *fds,
              uint32_t count);
/* Waits for it, too. 0, or -LH_ESYSTEM. */
int watch_add_other(struct watch *watch, struct watch_other *other);
/* No effect on one that is not watched. */
void watch_remove_other(struct watch *watch, struct watch_other *other);
/* Whether it is also ready when it can be written. Any thread, while it is watched. */
void watch_writable(const struct watch *watch, struct watch_other *other, bool wanted);
/* What is readable now, a batch at most: each in its turn. */
void watch_look(struct watch *watch, struct watch_report *report);

/* ---- keepalive groups ------------------------------------------------------------------------------ */

/*
 * One keepalive for each pair of contexts: of all QPs that lead to one peer's address, one is the
 * representative, whose pings keep NAT and firewalls on the path open for all of them. It also asks the
 * peer's context which QPs are connected that this side waits for, by their tokens.
 *
 * Those are alone that it does not speak for, and ping by themselves: until its next question; when they were
 * asked for, and no answer came before the next one; when their pings are due more often than the
 * representative's; and where the peer does not answer such questions.
 *
 * Timer:
 *   ask_at   of a representative: its interval of pings
 *
 * Any thread may add and remove: the table has a lock of its own, under which nothing else is taken. The rest
 * is the control worker's, and no member goes while it looks.
 */

#define KEEPALIVE_LISTS  256u
#define KEEPALIVE_TOKENS 1024u
#define KEEPALIVE_KEY_BYTES                                                                                \
    36u /* family, port, translated and encrypted; the address of the peer, and where it is seen */

/* A QP that leads to a peer. Zeroed: it is in no table. */
struct keepalive_member {
    struct keepalive_member *next;
    struct keepalive_member *previous;
    bool listed;
    _Atomic bool keeps; /* read by its worker without the lock */
    uint8_t key[KEEPALIVE_KEY_BYTES];
    struct keepalive_member *next_token; /* of those whose tokens share a list */
    uint32_t token;                      /* set before it is added, as the next two */
    uint32_t peer_token;
    bool asked_for;              /* its peer answers who asks for it */
    _Atomic lh_time interval_ns; /* of its pings */
    _Atomic lh_time alive_ns;    /* when its peer was last said to be; 0: never */
    bool waits;                  /* this side waits for the peer; the control worker's, as what follows */
    bool alone;                  /* nobody says that its peer is alive */
    lh_time ping_from;           /* not before, when it was quiet */
    uint32_t asked;              /* so often without an answer */
    lh_time ask_at;              /* of one that keeps */
    struct keepalive_member *next_alone; /* of those that a question left alone */
};

struct keepalive_table {
    pthread_mutex_t lock;
    struct keepalive_member *lists[KEEPALIVE_LISTS];
    struct keepalive_member *tokens[KEEPALIVE_TOKENS];
};

void keepalive_table_init(struct keepalive_table *table);
void keepalive_table_destroy(struct keepalive_table *table);
/* The first with its key becomes the representative. */
void keepalive_table_add(struct keepalive_table *table, struct keepalive_member *member,
                         const uint8_t key[KEEPALIVE_KEY_BYTES]);
/* Another one with its key, if there is any, becomes the representative in its place: that one, or NULL. No
 * effect on one that is in no table. */
struct keepalive_member *keepalive_table_remove(struct keepalive_table *table,
                                                struct keepalive_member *member);

/* Whether this side waits for its peer. */
void keepalive_member_wait(struct keepalive_member *member, bool waits, lh_time now);
bool keepalive_member_is_alone(const struct keepalive_member *member);

/* A question of a representative for all others that wait, which may take some messages. */
struct keepalive_query {
    struct keepalive_member *self;
    struct keepalive_member *at; /* the next one */
    lh_time now;
    struct keepalive_member
        *alone; /* out: those that were left alone by it, a list; the caller wakes them */
};
/* Begins one, and schedules the next. */
struct keepalive_query keepalive_table_query(struct keepalive_table *table, struct keepalive_member *self,
                                             lh_time now);
/* How many tokens of peers the next message has, at most `room`; 0: there is none. */
uint32_t keepalive_table_fill_query(struct keepalive_table *table, struct keepalive_query *question,
                                    uint32_t *tokens, uint32_t room);
/* The peer of `self` asks for those: the tokens of their peers, of those that are connected to the same
 * context. Returns how many. */
uint32_t keepalive_table_answer(struct keepalive_table *table, const struct keepalive_member *self,
                                const uint32_t *asked, uint32_t count, lh_time now, uint32_t *tokens);
/* The answer. */
void keepalive_table_on_alive(struct keepalive_table *table, const struct keepalive_member *self,
                              const uint32_t *tokens, uint32_t count, lh_time now);

/* ---- coalescing -------------------------------------------------------------------------------------- */

/*
 * How long a worker leaves a QP's packets in the sockets, to read many at once. Pure.
 *
 * On a long path packets arrive one by one, evenly spaced. A worker that reads each on arrival does nothing
 * else, without a gain: a small part of the round trip later is as good. On a short path it is not, so there
 * packets are read at once; so are the first packets, whose spacing shows the path's rate. What arrives
 * meanwhile must be little compared with the buffer.
 */

#define COALESCE_RTT_SHARE    256u
#define COALESCE_MAX_NS       (250 * LH_NS_PER_US)
#define COALESCE_MIN_NS       (20 * LH_NS_PER_US) /* less is not worth a system call */
#define COALESCE_FIRST        128u                /* packets */
#define COALESCE_BUFFER_SHARE 8u
#define COALESCE_WINDOW_NS    LH_NS_PER_MS /* of the rate of arrival */

struct coalesce {
    lh_time since_ns;
    uint64_t packets;    /* in all, at since_ns */
    lh_time a_packet_ns; /* time between two, lately */
};

/* packets: that arrived in all; rtt_ns: the shortest, 0: unknown; buffer_packets: that the sockets hold.
 * 0: read at once. */
static inline lh_time coalesce_span(struct coalesce *coalesce, uint64_t packets, lh_time rtt_ns,
                                    uint64_t buffer_packets, lh_time now)
{
    if (now >= coalesce->since_ns + COALESCE_WINDOW_NS) {
        coalesce->a_packet_ns = (now - coalesce->since_ns) / (packets - coalesce->packets + 1);
        coalesce->since_ns = now;
        coalesce->packets = packets;
    }
    lh_time full_ns = coalesce->a_packet_ns * (buffer_packets / COALESCE_BUFFER_SHARE);
    lh_time span_ns = lh_min(lh_min(rtt_ns / COALESCE_RTT_SHARE, full_ns), COALESCE_MAX_NS);
    return span_ns < COALESCE_MIN_NS || packets < COALESCE_FIRST ? 0 : span_ns;
}

#define COALESCE_RECENT_NS (10 * LH_NS_PER_MS)

/* The intervals of a worker's QPs. QPs that were idle lately do not count. */
struct coalesce_recent {
    lh_time since_ns;
    lh_time min_ns;    /* of those that were busy since; LH_TIME_NEVER: none was */
    lh_time before_ns; /* likewise before that */
};

static inline void coalesce_recent_init(struct coalesce_recent *lately)
{
    *lately = (struct coalesce_recent){0, LH_TIME_NEVER, LH_TIME_NEVER};
}

static inline void coalesce_recent_pass(struct coalesce_recent *lately, lh_time now)
{
    if (now < lately->since_ns + COALESCE_RECENT_NS)
        return;
    lately->before_ns = now < lately->since_ns + 2 * COALESCE_RECENT_NS ? lately->min_ns : LH_TIME_NEVER;
    lately->min_ns = LH_TIME_NEVER;
    lately->since_ns = now;
}

/* A QP that allows that interval was busy. */
static inline void coalesce_on_busy(struct coalesce_recent *lately, lh_time coalesce_ns, lh_time now)
{
    coalesce_recent_pass(lately, now);
    lately->min_ns = lh_min(lately->min_ns, coalesce_ns);
}

/* The interval that all of them allow. 0: read at once. */
static inline lh_time coalesce_of_all(struct coalesce_recent *lately, lh_time now)
{
    coalesce_recent_pass(lately, now);
    lh_time coalesce_ns = lh_min(lately->min_ns, lately->before_ns);
    return coalesce_ns == LH_TIME_NEVER ? 0 : coalesce_ns;
}

/* ---- spin ------------------------------------------------------------------------------------------ */

/*
 * Whether a thread that has nothing to do spins for a while before it sleeps. Pure.
 *
 * Spinning saves a wake-up when work comes soon, and costs the CPU when it does not. What counts is how the
 * last pauses ended: where most were longer than the spin, as between the bursts of a paced sender, the next
 * is not spun through. A pause that was slept through seems longer by the wake-ups of both sides.
 */

#define SPIN_NS       (50 * LH_NS_PER_US) /* default: about what a wake-up costs on both sides together */
#define SPIN_MAX_NS   LH_NS_PER_S
#define SPIN_PAUSE_NS (5 * LH_NS_PER_US) /* shorter ones are none */
#define SPIN_ALWAYS   256u

struct spin {
    lh_time spin_ns; /* 0: never */
    lh_time idle_since_ns;
    unsigned short_pauses; /* share of them, smoothed, of SPIN_ALWAYS */
    bool slept;            /* in this pause */
};

static inline void spin_init(struct spin *spin, lh_time spin_ns)
{
    *spin = (struct spin){.spin_ns = spin_ns, .short_pauses = SPIN_ALWAYS};
}

/* Of what a user asked for: 0 is the default, LH_NO_SPIN none. */
static inline lh_time spin_ns_of(lh_time wanted_ns)
{
    return wanted_ns == LH_NO_SPIN ? 0 : wanted_ns ? wanted_ns : SPIN_NS;
}

/* There was work in a round that ended now. */
static inline void spin_on_work(struct spin *spin, lh_time now)
{
    lh_time pause_ns = now > spin->idle_since_ns ? now - spin->idle_since_ns : 0;
    if (pause_ns >= SPIN_PAUSE_NS && spin->idle_since_ns != 0) {
        bool is_short = pause_ns < (spin->slept ? 2 : 1) * spin->spin_ns;
        spin->short_pauses = (7 * spin->short_pauses + (is_short ? SPIN_ALWAYS + 7 : 0)) / 8;
    }
    spin->idle_since_ns = now;
    spin->slept = false;
}

/* There was none. Whether to sleep now. */
static inline bool spin_is_over(const struct spin *spin, lh_time now)
{
    return spin->short_pauses < SPIN_ALWAYS / 4 * 3 || now - spin->idle_since_ns >= spin->spin_ns;
}

static inline void spin_on_sleep(struct spin *spin)
{
    spin->slept = true;
}

/* ---- waker ----------------------------------------------------------------------------------------- */

/* Ends the sleep of one worker, from any thread. */

struct waker {
    _Atomic bool asleep;
    _Atomic bool kicked; /* work was queued for the worker since its last round began */
    int fd;              /* eventfd; -1 without a thread, which then never sleeps */
};

/* Cheap while the worker is awake. */
void waker_wake(struct waker *waker);

#endif
