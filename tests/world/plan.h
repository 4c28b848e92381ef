/*
 * plan.h - everything that one seed decides: hosts, links, who talks to whom, and a list of events.
 *
 * A plan is plain data. What happens in a run is either an *event* (a message to send, a fault with its
 * time) or a *feature* (something that holds all the time, such as loss on every link). Each can be taken
 * out without moving another: whatever is drawn during a run comes from a generator of the event's own. So
 * a failing plan is made smaller by leaving things out (shrink.h), and what is left is named on the
 * command line that runs it again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_PLAN_H
#define LH_TESTS_WORLD_PLAN_H

#include <longhaul/connection.h>

#include "netsim/fabric/sim_packets.h"

#define PLAN_HOSTS_MAX  9u /* with engines; else five, and as many pairs */
#define PLAN_PAIRS_MAX  8u
#define PLAN_PAIRS_FEW  5u
#define PLAN_EVENTS_MAX 768u
#define PLAN_WORKERS    4u /* at most, of one end */
#define PLAN_QUEUES_MAX 3u /* of one engine */
#define PLAN_SPAN_MAX   (600 * LH_NS_PER_S)

/* X(name, what it does). In force for a whole run, on every host and link. */
#define PLAN_FEATURES(X)                                                                                   \
    X(loss, "packets are lost")                                                                            \
    X(burst, "losses come in bursts")                                                                      \
    X(reorder, "packets are held back")                                                                    \
    X(duplicate, "packets arrive twice")                                                                   \
    X(corrupt, "a bit flips on the wire")                                                                  \
    X(jitter, "delays vary")                                                                               \
    X(rate, "links have a rate")                                                                           \
    X(skew, "clocks are apart and run at different speeds")                                                \
    X(workers, "several workers take turns in any order")                                                  \
    X(share, "a poll takes few packets")                                                                   \
    X(pace, "senders pace themselves")                                                                     \
    X(impatient, "a silent peer is given up after seconds")                                                \
    X(ports, "who comes back gets the ports of its earlier life")                                          \
    X(switches, "a switched network lies between the hosts")                                               \
    X(code, "receivers ask for parity")                                                                    \
    X(auto, "receivers choose a scheme for each message")                                                  \
    X(whim, "and what they choose is any that there is")                                                   \
    X(large, "sizes as users have them")                                                                   \
    X(wrap, "numbers begin shortly before they wrap")                                                      \
    X(stale, "a fabric reports packets whose slot is over")                                                \
    X(newcomer, "receivers choose schemes that older seeds do not know")                                   \
    X(congestion, "senders have congestion controllers")                                                   \
    X(engine, "connections of a host share its engine, and complete into its queues")                      \
    X(lists, "messages are sent from parts and received into parts, with tags")                            \
    X(matches, "receives choose messages by their tags, and are posted in another order")                  \
    X(deadline, "receives have deadlines")                                                                 \
    X(onesided, "memory is exposed to peers, who write to it and read from it")                            \
    X(group, "each host is a rank of a group, whose collectives they call")                                \
    X(sites, "ranks are in several sites")                                                                 \
    X(bounded, "hops of a group may lose a part of what crosses them")                                     \
    X(measures, "ranks measure the paths between them, and go on in another order")

enum plan_feature {
#define PLAN_FEATURE_ENUM(name, words) FEATURE_##name,
    PLAN_FEATURES(PLAN_FEATURE_ENUM)
#undef PLAN_FEATURE_ENUM
        FEATURE_COUNT,
};

/* X(name, what it is): the first four, and the last six, are what users do, the others are faults. */
#define PLAN_EVENTS(X)                                                                                     \
    X(message, "a message of a connection")                                                                \
    X(exchange, "one SDR message")                                                                         \
    X(cancel, "a request is canceled")                                                                     \
    X(close, "one end closes")                                                                             \
    X(cut, "one direction loses everything")                                                               \
    X(flap, "both directions go up and down")                                                              \
    X(change, "one direction becomes another link")                                                        \
    X(control, "control messages are lost")                                                                \
    X(hold, "packets are held back for long")                                                              \
    X(jump, "a clock jumps forward")                                                                       \
    X(pause, "a host stands still")                                                                        \
    X(stall, "a worker does nothing")                                                                      \
    X(crash, "a host loses everything and comes back")                                                     \
    X(memory, "allocations fail")                                                                          \
    X(noise, "random and made-up packets")                                                                 \
    X(replay, "packets of before come again")                                                              \
    X(mutate, "copies of packets with changes that cannot be right")                                       \
    X(forge, "copies of packets with changes, by one who knows keys and tokens")                           \
    X(lie, "reports of arrivals that are not true, by one who knows tokens")                               \
    X(renew, "a connection is closed, and another opened in its place")                                    \
    X(gone, "a host dies for ever")                                                                        \
    X(flood, "a host sends another everything many times over")                                            \
    X(narrow, "one direction takes only short packets, and reports nothing")                               \
    X(expose, "memory is exposed to the peer")                                                             \
    X(write, "a write to the peer's memory")                                                               \
    X(read, "a read from there")                                                                           \
    X(revoke, "exposed memory is withdrawn")                                                               \
    X(collective, "all ranks of a group call a collective")                                                \
    X(giveup, "a rank cancels one")

enum plan_event_kind {
#define PLAN_EVENT_ENUM(name, words) EVENT_##name,
    PLAN_EVENTS(PLAN_EVENT_ENUM)
#undef PLAN_EVENT_ENUM
        EVENT_COUNT,
};

struct plan_event {
    enum plan_event_kind kind;
    bool off;     /* left out */
    uint8_t pair; /* message, exchange, close, stall; expose, write, read, revoke; collective: the epoch */
    uint8_t side; /* of the pair: who sends, exposes, closes, stalls; cancel: 0 the send, 1 the receive */
    uint8_t host; /* faults of a host; of a direction: from; collective: who calls another; giveup */
    uint8_t peer; /* of a direction: to */
    uint16_t
        target; /* cancel: number of the message's event; write, read, revoke: of the expose; gone, of a
                        rank: 1, when it has measured the paths */
    lh_time at_ns;
    lh_time span_ns; /* how long a fault lasts; message: when the receive is posted; collective: within
                        which all ranks call it */
    uint64_t bytes;  /* of a message; collective: of all elements */
    uint64_t room;   /* message: at the receiver; exchange: that are sent; expose: the access; write, read:
                        where in the peer's memory */
    double chance;   /* of each packet, or allocation */
    lh_time
        delay_ns; /* hold, jump, flap: how long; exchange: the receive is completed so long after its post */
    uint64_t seed; /* of what it draws while it happens */
};

struct plan_pair {
    bool raw; /* SDR queue pairs, else connections */
    uint8_t host[2];
    struct lh_attr attr[2]; /* raw: its sizes count */
    char reliability[2][48];
    char coded[2][48];     /* instead, where receivers ask for parity; "": the same as ever */
    char automatic[2][32]; /* instead of either, where receivers choose; "": they do not */
    char
        newcomer[2]
                [48]; /* instead of all of these, a scheme that is not in draw.c's frozen lists; "": none */
    char deadline[2][48];   /* instead of all of these, a scheme with a deadline; "": none */
    bool zeroes[2];         /* missing bytes are set to 0 then */
    char congestion[2][24]; /* controller of what each side sends; "": the fabric's default */
    uint8_t message_bits;   /* raw: the split of the immediate */
    uint8_t fragment_bits;
    uint8_t workers;
    lh_time peer_timeout_ns; /* when it is impatient */
    /* With engines: */
    bool shared[2];   /* this side uses its host's engine, else one of its own */
    bool chained[2];  /* an entry of a queue lets its user go on before it is time */
    lh_time opens_ns; /* 0: from the start */
    bool matches[2];  /* what this side receives is chosen by tags */
};

/* The engine of a host, and how its user polls its queues. */
struct plan_engine {
    uint8_t workers;
    uint8_t queues;
    uint64_t receive_buffer_bytes;
    struct plan_queue {
        uint32_t capacity;
        uint32_t batch;  /* entries taken at once, at most */
        lh_time late_ns; /* after an entry came */
    } queue[PLAN_QUEUES_MAX];
    struct plan_queue
        notices; /* of writes to what the host exposes; its capacity: besides a place for each */
};

#define PLAN_FLOWS_MAX 4u

/* Others' traffic in a switched network. */
struct plan_flow {
    uint8_t from;
    uint8_t to;
    uint64_t bytes;
    lh_time at_ns;
};

struct plan_switches {
    int topology; /* enum netsim_topology_kind */
    uint32_t hosts_each;
    uint32_t spines;
    uint64_t rate_bps;
    uint64_t core_rate_bps;
    lh_time delay_ns;
    lh_time core_delay_ns;
    struct lh_link_spec faults; /* of the cables between switches */
    uint64_t buffer_bytes;
    uint64_t queue_bytes;
    double alpha;
    bool spray;
    bool pfc;
    uint32_t flow_count;
    struct plan_flow flows[PLAN_FLOWS_MAX];
};

#define PLAN_EPOCHS_MAX   3u
#define GROUP_PATIENCE_NS (2 * LH_NS_PER_S) /* ranks that wait as long fail only when they die */

/* A group with a rank on each host. An *epoch* is what its ranks call before they make another group. */
struct plan_group {
    uint32_t block_bytes;
    uint32_t blocks;         /* of a peer's buffers */
    struct lh_attr attr[2];  /* of connections in a site, and to other sites: sizes */
    char reliability[2][48]; /* likewise */
    char congestion[2][24];
    bool bounded[2];               /* likewise: a part may be lost */
    lh_time bounded_ns[2];         /* its deadline; 0: learned */
    uint64_t receive_buffer_bytes; /* of the engines' sockets */
    lh_time peer_timeout_ns;
    uint8_t site[PLAN_HOSTS_MAX];
    lh_time joins_ns[PLAN_HOSTS_MAX]; /* when it attaches to the others */
    uint32_t epochs;
    bool splits[PLAN_EPOCHS_MAX]; /* the group is split after it, else all go on in a new one */
};

struct plan {
    uint64_t seed;
    uint32_t hosts;
    uint32_t pair_count;
    uint32_t event_count;
    uint32_t features;   /* bits */
    lh_time heal_ns;     /* when every fault ends */
    uint32_t poll_share; /* most packets of a poll, with the feature */
    bool hub;            /* with engines: host 0 is at an end of every pair */
    struct lh_link_spec link[PLAN_HOSTS_MAX][PLAN_HOSTS_MAX]; /* [from][to] */
    struct sim_clock clock[PLAN_HOSTS_MAX];
    struct plan_switches switches;
    struct plan_engine engines[PLAN_HOSTS_MAX];
    struct plan_pair pairs[PLAN_PAIRS_MAX];
    struct plan_group group;
    struct plan_event events[PLAN_EVENTS_MAX];
};

/* Seeds from here to PLAN_NEWCOMER_SEEDS are as those from there on, but draw the schemes and controllers
 * that no list of names in draw.c has: those that were added to the tables since. No such seed is recorded:
 * what it draws changes with the tables. */
#define PLAN_ADDED_SEEDS ((uint64_t)1 << 61)
/* Seeds from here on also draw the schemes that are newer than the seeds before PLAN_ADDED_SEEDS, congestion
 * controllers, and lies to these. */
#define PLAN_NEWCOMER_SEEDS ((uint64_t)1 << 62)
/* Those from here on also have engines. */
#define PLAN_ENGINE_SEEDS ((uint64_t)1 << 63)
/* Those from here on also have deadlines. */
#define PLAN_DEADLINE_SEEDS ((uint64_t)3 << 62)
/* Those from here on also have one-sided operations. */
#define PLAN_ONESIDED_SEEDS ((uint64_t)7 << 61)
/* Those from here on have a group in place of pairs. */
#define PLAN_GROUP_SEEDS ((uint64_t)15 << 60)
/* Those from here on have hops that may lose a part of what crosses them. */
#define PLAN_BOUNDED_GROUP_SEEDS ((uint64_t)31 << 59)

void plan_draw(uint64_t seed, struct plan *plan);

static inline bool plan_draws_added(uint64_t seed)
{
    return seed >= PLAN_ADDED_SEEDS && seed < PLAN_NEWCOMER_SEEDS;
}

static inline bool plan_has(const struct plan *plan, enum plan_feature feature)
{
    return (plan->features >> feature & 1) != 0;
}

/* Whether events of the kind are what users do, without anything going wrong. */
bool plan_is_use(enum plan_event_kind kind);
/* Whether any event of the kind is left. */
bool plan_any(const struct plan *plan, enum plan_event_kind kind);
/* The controller of what this side sends; NULL: the default. */
const char *plan_congestion(const struct plan *plan, const struct plan_pair *pair, uint32_t side);
/* Whether this side receives with a deadline. */
bool plan_has_deadline(const struct plan *plan, const struct plan_pair *pair, uint32_t side);
/* The deadline that it gives; 0: it gives none. */
lh_time plan_deadline_ns(const struct plan_pair *pair, uint32_t side);
/* Whether it asks for parity besides. */
bool plan_recovers(const struct plan *plan, const struct plan_pair *pair, uint32_t side);
/* The scheme of what this side receives. */
const char *plan_reliability(const struct plan *plan, const struct plan_pair *pair, uint32_t side);
/* Whether this side's connection is one of its host's engine. */
static inline bool plan_shares(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    return plan_has(plan, FEATURE_engine) && pair->shared[side];
}
/* Whether this side's receives choose messages by their tags. */
static inline bool plan_matches(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    return plan_has(plan, FEATURE_matches) && pair->matches[side];
}
/* Of its sockets: its engine's, where it shares one. */
static inline uint64_t plan_receive_buffer(const struct plan *plan, const struct plan_pair *pair,
                                           uint32_t side)
{
    return plan_shares(plan, pair, side) ? plan->engines[pair->host[side]].receive_buffer_bytes
                                         : pair->attr[side].receive_buffer_bytes;
}
/* Whether this side chooses a scheme for each message. */
bool plan_chooses(const struct plan *plan, const struct plan_pair *pair, uint32_t side);
/* Bytes of a message that one of its segments takes at most; where the side chooses, by the scheme that
 * cuts it smallest. */
uint64_t plan_segment_bytes(const struct plan *plan, const struct plan_pair *pair, uint32_t side);
const char *plan_event_name(enum plan_event_kind kind);
const char *plan_feature_name(enum plan_feature feature);
/* The link of a direction as the features that are left have it. */
struct lh_link_spec plan_link(const struct plan *plan, uint32_t from, uint32_t to);
/* That link with nothing that harms: its delay, and a rate that is no bound. */
struct lh_link_spec plan_clean_link(const struct plan *plan, uint32_t from, uint32_t to);
/* What the direction of a change event becomes. */
struct lh_link_spec plan_changed_link(const struct plan *plan, const struct plan_event *event);

#endif
