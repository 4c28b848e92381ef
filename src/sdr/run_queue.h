/*
 * run_queue.h - what a worker serves: ready entries in turns, and entries with timers; the order of channels,
 * and their gates. Other entries cost nothing.
 *
 * Any thread marks an entry as ready; the rest is its worker's, or of whoever holds that worker's gate.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RUN_QUEUE_H
#define LH_SDR_RUN_QUEUE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/due_heap.h"
#include "wire/qp_info.h"

/* ---- turns ----------------------------------------------------------------------------------------- */

/*
 * In which order a worker serves what is ready: start-time fair queueing (Goyal, Vin and Cheng,
 * SIGCOMM 1996) by what turns cost, in bytes. Pure.
 *
 * A turn starts, in virtual time, where the entry's last one ended; the earliest start is served first,
 * and is the virtual time from then on. So entries that are always ready get equal shares, whatever a turn
 * of each takes. An entry that was idle may start up to TURNS_CREDIT before the virtual time, and so
 * before all that used up their share: a few small messages do not wait for bulk, and a flood of them
 * does, once it had that much.
 */

/* What a turn costs: its bytes, and so much for each packet, each control message, and for itself. Not its
 * time: who reads a socket that others share would pay for all. */
#define TURNS_PACKET  1024u
#define TURNS_CONTROL 512u
#define TURNS_SELF    512u
#define TURNS_CREDIT  ((uint64_t)256 * 1024) /* about one full turn */

/* Part of what has turns. Zeroed: it has had none. */
struct turn {
    struct due start; /* virtual */
    uint64_t ended;   /* the last one, likewise */
};

struct turn_order {
    struct due_heap waiting;
    uint64_t now; /* virtual: the latest start */
};

/* For at most `room` entries; the caller owns their places. */
void turns_init(struct turn_order *turns, struct due **places, uint32_t room);
/* It waits for its turn from now on; one that does already keeps its place. */
void turns_enter(struct turn_order *turns, struct turn *turn);
/* It does not wait any more. */
void turns_leave(struct turn_order *turns, struct turn *turn);
/* Whose turn it is, which does not wait any more; NULL: nobody's. */
struct turn *turns_next(struct turn_order *turns);
/* What its turn cost. */
void turns_charge(struct turn *turn, uint64_t cost);

static inline bool turns_waiting(const struct turn_order *turns)
{
    return turns->waiting.count > 0;
}

/* ---- run queue ------------------------------------------------------------------------------------- */

/* Why an entry is to be served. */
enum run_ready {
    RUN_IDLE,    /* it is not */
    RUN_LINGERS, /* nothing asked for it: something may have arrived */
    RUN_MARKED,
};

/* A QP, as one worker sees it. Zeroed: it belongs to no queue. Not in a cache line with what another worker
 * writes: other threads mark it while its worker serves the next. */
struct run_entry {
    struct due due;   /* first, so that it tells its entry */
    struct turn turn; /* its worker's */
    struct sdr_qp *qp;
    struct run_entry *next; /* as the two below under the queue's lock, while it is listed */
    struct run_entry *previous;
    bool listed;
    bool attached;                /* likewise: it may be listed */
    _Atomic enum run_ready ready; /* not idle: listed, or about to be, or taken and not served yet */
    lh_time moved_ns;             /* when anything moved in it last */
    bool watched;                 /* it has descriptors (worker_sleep.h) */
    bool polled;                  /* nothing else tells when something arrives for it */
    _Atomic bool fds_changed;     /* since they were registered */
};

struct run_queue {
    pthread_mutex_t lock;
    struct run_entry *first; /* ready */
    struct run_entry *last;
    struct due_heap due;
};

/* For at most `room` entries; the caller owns their places. */
void run_queue_init(struct run_queue *queue, struct due **places, uint32_t room);
void run_queue_destroy(struct run_queue *queue);

void run_queue_attach(struct run_queue *queue, struct run_entry *entry);
/* Afterwards the queue does not know it, however it is marked. */
void run_queue_detach(struct run_queue *queue, struct run_entry *entry);

/* The entry is served in its next turn, once. What was written before is seen then. Any thread. */
void run_queue_mark(struct run_queue *queue, struct run_entry *entry);
/* It is polled in its next turn, unless it is marked. By the worker. */
void run_queue_linger(struct run_queue *queue, struct run_entry *entry);
/* Marks those that are due. */
void run_queue_mark_due(struct run_queue *queue, lh_time now);
/* All that are ready, the first of a list by `next`. Each is to be served: by run_entry_begin(), before which
 * its `next` is read. */
struct run_entry *run_queue_take(struct run_queue *queue);
static inline struct run_entry *run_entry_of_turn(struct turn *turn)
{
    return (struct run_entry *)((uint8_t *)turn - offsetof(struct run_entry, turn));
}
/* From here on a mark lists it again. Returns whether it was marked. */
static inline bool run_entry_begin(struct run_entry *entry)
{
    return atomic_exchange(&entry->ready, RUN_IDLE) == RUN_MARKED;
}

/* ---- channel order --------------------------------------------------------------------------------- */

/*
 * In which order a worker serves the channels of a QP. Pure.
 *
 * Where a pace lets little out, packets leave in the order of their posts, over all channels: the receiver
 * takes what is reordered for lost. So the channel whose next packet was posted first is served first, and
 * sends only what was posted before the next packet of every other channel. A channel that its fabric blocks
 * holds up nobody.
 */

struct channel_order {
    uint32_t unserved;                     /* bit c: channel c is to be served in this round */
    uint32_t waiting;                      /* bit c: its next packet is known, and others heed it */
    uint64_t fronts[QP_INFO_CHANNELS_MAX]; /* places of these packets (send_channel_front()) */
};

/* The channels of a round. Nothing waits in any of them. */
void channel_order_init(struct channel_order *order, uint32_t channels);
/* The channel's next packet, or that it has none that others heed. */
void channel_order_set(struct channel_order *order, uint32_t channel, bool waiting, uint64_t front);
/* The channel to serve next, which counts as served from now on: of those that wait the earliest, then the
 * others. False: all were served. */
bool channel_order_next(struct channel_order *order, uint32_t *channel);
/* The earliest next packet of the other channels; false: none waits. */
bool channel_order_bound(const struct channel_order *order, uint32_t channel, uint64_t *bound);

/* ---- gate ------------------------------------------------------------------------------------------ */

/*
 * A lock that one thread takes in a loop, and that others get in between.
 *
 * A channel's worker holds its gate for each of its rounds; callers want in between two rounds. With a QP's
 * lock it is the other way round: programs spin in calls, and the control worker wants in. A plain mutex
 * would starve the one who waits: the other takes it again at once. Here whoever wants in is counted first,
 * and let pass.
 */

struct gate {
    pthread_mutex_t mutex;
    _Atomic unsigned wanted;
};

static inline void gate_init(struct gate *gate)
{
    pthread_mutex_init(&gate->mutex, NULL);
    atomic_init(&gate->wanted, 0);
}

static inline void gate_destroy(struct gate *gate)
{
    pthread_mutex_destroy(&gate->mutex);
}

/* Whoever comes again and again: a worker, once a round, or a program that spins in a call. */
static inline void gate_enter_round(struct gate *gate)
{
    while (atomic_load_explicit(&gate->wanted, memory_order_relaxed) > 0)
        sched_yield(); /* bounded by how long the others hold it: a few slot operations */
    pthread_mutex_lock(&gate->mutex);
}

/* Anyone else: goes first, where somebody holds it. */
static inline void gate_enter(struct gate *gate)
{
    if (pthread_mutex_trylock(&gate->mutex) == 0)
        return;
    atomic_fetch_add_explicit(&gate->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&gate->mutex);
    atomic_fetch_sub_explicit(&gate->wanted, 1, memory_order_relaxed);
}

static inline void gate_leave(struct gate *gate)
{
    pthread_mutex_unlock(&gate->mutex);
}

#endif
