/*
 * world.h - one run: the hosts, ends and users of a plan while it runs, and the first thing that was
 * wrong.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_WORLD_H
#define LH_TESTS_WORLD_WORLD_H

#include <stdio.h>

#include <longhaul/sdr_ext.h>
#include <sdr_mr.h>

#include "base/prng.h"
#include "netsim/fabric/sim_packets.h"
#include "wire/control_messages.h"
#include "world/plan.h"

#define WORLD_FAILURE_MAX 256u
#define WORLD_CHECKER_MAX 24u
#define WORLD_NOTHING     UINT16_MAX /* no end, no pair */
#define WORLD_SUB         0x100u     /* of the number of an end: its inner connection */
#define GUARD_BYTES       32u        /* around each buffer */
#define GUARD_BYTE        0xC5
#define BLANK_BYTE        0xEE /* what a buffer holds before something arrives, and after it came back */

/* X(name, checker, what it does): what that checker gets is altered, so that it must object. Never
 * the product. */
#define WORLD_CANARIES(X)                                                                                  \
    X(none, "", "")                                                                                        \
    X(bytes, "bytes", "a delivered byte is another")                                                       \
    X(late, "late", "a buffer changes after it was handed back")                                           \
    X(guard, "guard", "a byte beside a buffer changes")                                                    \
    X(twice, "ends", "a completion is reported a second time, otherwise")                                  \
    X(hidden, "ends", "completions are never reported")                                                    \
    X(invented, "outcome", "an acknowledgement is reported for what was not delivered")                    \
    X(blameless, "outcome", "a message fails on a connection that is well")                                \
    X(early, "times", "a message ends later than reported")                                                \
    X(again, "economy", "something is sent again though nothing was lost")                                 \
    X(hasty, "pace", "an end sends faster than its rate")                                                  \
    X(wide, "window", "a sender has more in flight than its window")                                       \
    X(counted, "counters", "the product counts a message that no user saw")                                \
    X(bitmap, "bitmap", "a chunk that is not there is marked")                                             \
    X(immediate, "immediate", "the user's immediate is another")                                           \
    X(words, "words", "a control message of the user is another")                                          \
    X(bound, "bound", "a queue holds more than it may")                                                    \
    X(leak, "leak", "a block of memory is not given back")                                                 \
    X(cut, "ends", "the network is not healed")                                                            \
    X(tardy, "ends", "the bound of a run is a thousandth of what it is")                                   \
    X(spin, "turns", "somebody is always due")                                                             \
    X(fast, "rtt", "a round trip is shorter than light allows")                                            \
    X(slow, "rtt", "a round trip is longer than anything was")                                             \
    X(honest, "honest", "an honest packet was counted as bad")                                             \
    X(beyond, "beyond", "a packet goes beyond its slot")                                                   \
    X(cts, "cts", "a clear-to-send is longer than a slot")                                                 \
    X(echo, "entries", "a completion queue gives an entry twice")                                          \
    X(swallow, "ends", "a completion queue loses an entry")                                                \
    X(user, "entries", "an entry has another user value")                                                  \
    X(roomy, "capacity", "a completion queue takes more requests than it has room for")                    \
    X(reckless, "engine", "an engine with connections is destroyed")                                       \
    X(tag, "tag", "a message comes with another tag")                                                      \
    X(shackled, "ends", "a connection waits for another one's dead peer")                                  \
    X(overdue, "deadline", "a receive ends after its deadline")                                            \
    X(stray, "memory", "a byte of exposed memory changes that nobody wrote")                               \
    X(after, "revoked", "a byte changes after its memory was revoked")                                     \
    X(hollow, "placed", "a write is done, and a byte of it is missing")                                    \
    X(stranger, "read", "a read comes with a byte that was never there")                                   \
    X(burglar, "access", "an operation that is not allowed succeeds")                                      \
    X(mute, "notify", "a notification is lost")                                                            \
    X(report, "reports", "an acknowledgement leaves out a chunk that arrived")                             \
    X(stale, "stale", "a report of a slot that is over goes uncounted")                                    \
    X(summed, "result", "a byte of a collective's result is another")                                      \
    X(apart, "same", "two ranks have different bits of one sum")                                           \
    X(eaten, "input", "the input of a collective changes")                                                 \
    X(blame, "blame", "a collective fails for a rank that lives")                                          \
    X(lengthy, "prompt", "a death is told too late")                                                       \
    X(wordless, "words", "ranks that disagree are not told so")                                            \
    X(baseless, "verdict", "a collective fails for no reason")                                             \
    X(belated, "expiry", "a collective ends after its deadline")                                           \
    X(absent, "ends", "a rank leaves out a call")                                                          \
    X(shunned, "members", "a rank that lives is not in the group of the survivors")                        \
    X(error, "error", "a connection ends without a reason")                                                \
    X(fall, "abort", "the process falls over")                                                             \
    X(alarm, "hang", "the alarm rings of a call that does not return")

enum world_canary {
#define WORLD_CANARY_ENUM(name, checker, words) CANARY_##name,
    WORLD_CANARIES(WORLD_CANARY_ENUM)
#undef WORLD_CANARY_ENUM
        CANARY_COUNT,
};

struct world;
struct ranks;

/* When the workers run of a context: of one end, or of an engine that several share. */
struct turns {
    uint8_t workers;
    lh_time due_ns[PLAN_WORKERS]; /* the world's time */
    lh_time stalled_until_ns[PLAN_WORKERS];
};

struct engine;

#define GAPS_MAX 32u

/* When an end could do nothing: its host stood still, or its clock jumped. By the host's clock. */
struct gaps {
    struct gap {
        lh_time from_ns;
        lh_time to_ns;
    } of[GAPS_MAX];
    uint32_t count;
    lh_time seen_ns; /* the last moment that was looked at, */
    bool ran;        /* and whether it could do something then */
};

/* What an end receives, in the order of the posts. Times of the host's clock. */
struct overdue_list {
    struct overdue_receive *of; /* as many as the plan has events; NULL: none yet */
    uint32_t count;
    uint32_t over;   /* all before this one are over, */
    lh_time over_ns; /* the last at this time */
};

/* One end of a pair: a connection, or an SDR queue pair. */
struct end {
    bool open;
    uint8_t host;
    uint16_t pair;
    uint16_t port_first;
    uint16_t ports;
    struct lh_connection *connection;
    struct sdr_context *context;
    struct sdr_qp *qp;
    struct lh_connection *inner; /* of its one-sided operations, once there is one */
    struct sdr_qp *inner_qp;
    uint16_t inner_port_first;
    uint16_t inner_ports;
    struct engine *engine;  /* that it shares, or NULL */
    struct turns own_turns; /* of one that does not */
    uint32_t uses_max;      /* raw: most uses of one slot */
    int error;              /* of the connection, once it has ended */
    lh_time opened_ns;
    uint64_t sent_bytes;      /* payload of data packets that left */
    lh_time turn_ns;          /* when the present round trip began, and */
    uint64_t turn_bytes;      /* of those, since then */
    bool guessed;             /* some of them left before a round trip was measured */
    bool measured;            /* that has been seen */
    uint32_t told_segment;    /* of which a part of an acknowledgement was checked, */
    uint32_t told_below;      /* chunks before this one; 0: all of it */
    uint32_t messages_before; /* of the layer above: those before this waited when its turn began */
    struct gaps gaps;
    struct overdue_list receives;
};

struct pair {
    const struct plan_pair *plan;
    struct end ends[2];
    bool up;          /* both ends were opened and attached */
    bool closed;      /* by a close event: it stays so */
    bool may_end;     /* there is a fault that can end a connection */
    bool trusted;     /* nobody forges */
    lh_time retry_ns; /* when a refused open is tried again; LH_TIME_NEVER: nothing to open */
    struct lh_prng prng;
    struct talk *talk;     /* of a connection */
    struct remote *remote; /* of its one-sided operations; or NULL */
    struct exchanges *raw; /* of SDR queue pairs */
    lh_time rtt_min_ns;    /* that the links allow */
    lh_time rtt_max_ns;    /* that they explain */
    lh_time delays_ns;     /* that other faults may add to anything */
    lh_time over_ns;       /* once the network is well: when it has to be over, whatever the others do */
};

struct host {
    lh_time paused_until_ns;
    lh_time down_until_ns; /* crashed */
    bool muted;            /* what it sends is lost: it crashes */
};

/* A fault while it lasts. */
struct running {
    bool on;
    struct lh_prng prng;
    lh_time next_ns;               /* noise, replay, flap */
    bool cut;                      /* flap */
    struct control_feedback heard; /* lie: the last true report */
};

#define KEPT_PACKETS 48u

struct kept_packet {
    uint8_t data[SIM_DATAGRAM_MAX];
    struct sim_datagram head;
};

/* What hostile hosts have overheard. */
struct kept {
    struct kept_packet *packets; /* KEPT_PACKETS */
    uint32_t count;              /* ever */
};

struct world {
    const struct plan *plan;
    enum world_canary canary;
    bool canary_sang; /* the input was made wrong */
    FILE *text;       /* the readable trace, or NULL */
    struct sim_world *sim;
    struct netsim *network; /* between the hosts, or NULL */
    lh_time now;
    bool healed;
    bool calm; /* nothing happens but what users do */
    struct host hosts[PLAN_HOSTS_MAX];
    struct engine *engines; /* of each host; NULL: there are none in this life */
    struct ranks *ranks;    /* likewise, of a group */
    struct pair pairs[PLAN_PAIRS_MAX];
    uint16_t *end_of_port;                 /* [host][port]: 2 * pair + side, WORLD_SUB, WORLD_NOTHING */
    uint16_t moments[2 * PLAN_EVENTS_MAX]; /* faults by time: event number * 2, and 1 when it ends */
    uint32_t moment_count;
    uint32_t moment_next;
    struct running running[PLAN_EVENTS_MAX];
    struct kept kept;     /* of now */
    uint32_t taps_on;     /* faults that look at packets */
    struct lh_prng order; /* of workers and ends */
    bool memory_refused;  /* at any time */
    bool overfull;        /* a receive queue was */
    uint64_t turns;
    uint64_t bytes_asked; /* of all messages */
    uint64_t hash;        /* over what users saw */
    char checker[WORLD_CHECKER_MAX];
    char failure[WORLD_FAILURE_MAX];
    uint32_t delivered;
    uint32_t canceled;
    uint32_t truncated;
    uint32_t exchanged;
    uint32_t operated; /* one-sided operations that are done */
    bool lied;         /* a report of arrivals was not true */
    double heal_share; /* of the time that the bound allows, used */
};

struct world_report {
    char checker[WORLD_CHECKER_MAX]; /* "": all is well */
    char failure[WORLD_FAILURE_MAX];
    uint64_t hash;
    uint64_t turns;
    lh_time took_ns;
    uint32_t delivered;
    uint32_t canceled;
    uint32_t truncated;
    uint32_t exchanged;
    uint32_t operated;
    bool lied;
    double heal_share;
    bool canary_sang;
};

/* Runs one seed. text may be NULL. */
void world_run(const struct plan *plan, enum world_canary canary, FILE *text, struct world_report *report);

/* ---- for its parts ----------------------------------------------------------------------------------- */

/* The first failure counts: which checker objects, and why. */
void world_fail(struct world *world, const char *checker, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool world_failed(const struct world *world)
{
    return world->checker[0] != '\0';
}
/* Whether this canary sings now: notes that it did. */
bool world_sings(struct world *world, enum world_canary canary);
/* Sings once in a run. */
bool world_sings_once(struct world *world, enum world_canary canary);

/* Into the hash, and a line of the readable trace. */
void world_note(struct world *world, uint64_t value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A line of the readable trace only. */
void world_say(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory until the end of the run, not zeroed. */
void *world_memory(struct world *world, size_t bytes);
/* `bytes` random bytes that depend on the number; valid for ever. */
const uint8_t *world_content(uint64_t number, size_t bytes);

static inline struct end *world_end(struct world *world, uint32_t number)
{
    return &world->pairs[number / 2].ends[number % 2];
}

static inline uint32_t world_end_number(const struct world *world, const struct end *end)
{
    const struct pair *pair = &world->pairs[end->pair];
    return 2u * end->pair + (end == &pair->ends[1]);
}

static inline void turns_touch(struct turns *turns, lh_time at_ns)
{
    for (uint32_t w = 0; w < turns->workers; w++)
        if (turns->due_ns[w] > at_ns)
            turns->due_ns[w] = at_ns;
}

/* Of the context that the end belongs to. */
struct turns *world_turns(struct end *end);

/* The end has something to do: the user asked for something, or a packet came. */
static inline void world_touch(struct world *world, struct end *end)
{
    turns_touch(world_turns(end), world->now);
}

/* Whether users of the host can do anything now. */
static inline bool host_runs(const struct world *world, uint32_t host)
{
    return world->hosts[host].paused_until_ns <= world->now &&
           world->hosts[host].down_until_ns <= world->now;
}

#endif
