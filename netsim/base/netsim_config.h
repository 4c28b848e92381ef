/*
 * netsim_config.h - everything that one simulation is made of, checked, in numbers. keys.c sets it from text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_BASE_NETSIM_CONFIG_H
#define LH_NETSIM_BASE_NETSIM_CONFIG_H

#include <longhaul/link.h>

#include "netsim/base/netsim_time.h"

#define NETSIM_SCHEMES_BYTES    256u
#define NETSIM_COLLECTIVE_BYTES 32u
#define NETSIM_SITES_MAX        8u /* of a line of datacenters */

enum netsim_topology_kind {
    NETSIM_TWO_HOSTS,       /* host0 - host1: one cable */
    NETSIM_DUMBBELL,        /* hosts on either side of two switches with one cable between */
    NETSIM_LEAF_SPINE,      /* every leaf to every spine */
    NETSIM_FAT_TREE,        /* k-ary, three tiers, k^3/4 hosts (Al-Fares et al. 2008) */
    NETSIM_TWO_DATACENTERS, /* two fat trees, each core to one DCI switch, one long cable */
    NETSIM_DATACENTERS,     /* the same of several, in a line */
    NETSIM_TOPOLOGY_FILE,
};

/* A text the caller read from a file. Not copied: stays valid as long as the config. */
struct netsim_text {
    const char *data; /* NULL: not given */
    size_t bytes;
    const char *name; /* what errors call it; NULL: by its key */
};

struct netsim_topology_config {
    enum netsim_topology_kind kind;
    uint32_t hosts;  /* dumbbell: on each side; leaf-spine: below each leaf; datacenters: below each ToR */
    uint32_t leaves; /* leaf-spine */
    uint32_t spines; /* leaf-spine */
    uint32_t k;      /* fat-tree, datacenters (each site is a k-ary fat tree) */
    uint32_t sites;  /* datacenters, 2 … NETSIM_SITES_MAX; two-datacenters: unused */
    uint64_t rate_bps;         /* of a host's cable, and of every other that is not given */
    uint64_t core_rate_bps;    /* dumbbell: the bottleneck; leaf-spine: leaf to spine. 0: rate_bps */
    uint64_t long_rate_bps;    /* datacenters: a long cable. 0: rate_bps times the cores of a site */
    netsim_time delay_ps;      /* of every cable but the long one */
    netsim_time core_delay_ps; /* as core_rate_bps; NETSIM_NEVER: delay_ps */
    netsim_time long_delay_ps; /* datacenters: one way */
    bool relays; /* datacenters: a relay at either end of a long cable; not a key: long.flow_control */
    /* Faults of the bottleneck (two-hosts: the cable; dumbbell: the middle one; datacenters: the long
     * ones; leaf-spine and fat-tree: every cable between switches). Rate and delay in it are 0. */
    struct lh_link_spec faults;
    /* The same cables have another rate for some time. */
    uint64_t change_rate_bps; /* 0: they keep theirs */
    netsim_time change_from_ps;
    netsim_time change_for_ps; /* NETSIM_NEVER: to the end */
    struct netsim_text file;
};

/* How much of the shared buffer one queue may take when it may be dropped from (tail drop). */
struct netsim_switch_config {
    uint64_t buffer_bytes;  /* shared by all ports of a switch */
    uint64_t queue_bytes;   /* tail drop: longest queue of one priority at one port; 0: no such limit */
    double alpha;           /* tail drop: a queue gets at most alpha × what is free; 0: no such limit */
    uint64_t ecn_min_bytes; /* RED at dequeue, on the queue of that port and priority: none below … */
    uint64_t ecn_max_bytes; /* … all from here on; 0: no marking */
    uint64_t
        ecn_rate_bps; /* ecn_min and ecn_max are of a port of this rate, and in proportion of others; 0:
                              the same for all */
    double ecn_probability;  /* at ecn_max_bytes */
    bool spray;              /* alternatives are drawn for each packet, in place of the flow's hash */
    bool pfc;                /* IEEE 802.1Qbb on the data priority, hosts included */
    uint64_t pfc_xoff_bytes; /* of one ingress port and priority: pause above … */
    uint64_t pfc_xon_bytes;  /* … resume at or below */
    double pfc_alpha; /* … or above this times what is free of the buffer, when that is more; 0: never */
    netsim_time pfc_refresh_ps; /* a pause ends by itself, and is refreshed after this; 0: it lasts until
                                   the resume */
    uint64_t credit_bytes;      /* credits in place of PFC: buffer of each link at its far end; 0: none */
    uint64_t credit_step_bytes; /* announced when this much is newly free; 0: a packet */
};

enum netsim_long_control {
    NETSIM_LONG_SAME, /* a long link is like any other, and so are the switches at its ends */
    NETSIM_LONG_NONE,
    NETSIM_LONG_PFC,
    NETSIM_LONG_BIFROST,
    NETSIM_LONG_CBFC,
    NETSIM_LONG_SWING,
};

/* Links between switches of different sites, and the switches at their ends. 0 stands for auto. */
struct netsim_long_config {
    double overbook;             /* Bifrost, CBFC: share out this multiple of the buffer; below 1: as 1 */
    netsim_time drift_ps;        /* the delay of these links goes up by this and down again, … */
    netsim_time drift_period_ps; /* … once in this time */
    enum netsim_long_control control;
    uint64_t buffer_bytes; /* of the link at its far end, its alone */
    uint64_t port_bytes;   /* of each other port of these switches; 0: they share switch.buffer */
    uint64_t xoff_bytes;   /* PFC; SWING when the relay does not forward */
    uint64_t xon_bytes;
    netsim_time slot_ps; /* Bifrost */
    uint64_t delta_bytes;
    uint32_t leak_slots;
    uint32_t guard_slots;          /* Bifrost; 0: none */
    bool by_arrivals;              /* Bifrost: F as the algorithm is printed */
    bool even_grants;              /* Bifrost: not as printed */
    bool credits_12bit;            /* CBFC: with InfiniBand's limit */
    bool relay_threshold;          /* SWING: the relay pauses by its own threshold */
    netsim_time pfc_refresh_ps;    /* PFC, SWING; NETSIM_NEVER: as switches.pfc_refresh_ps */
    netsim_time credit_refresh_ps; /* CBFC; 0: a limit is announced once */
    uint64_t credit_step_bytes;    /* CBFC: as in struct netsim_switch_config */
    /* Of signals on these links; data is not touched. */
    double signal_loss;
    double signal_burst; /* mean, in signals */
    netsim_time mute_from_ps;
    netsim_time mute_for_ps; /* 0: never */
};

#define NETSIM_PRIORITIES 8u /* 7 goes first */

enum netsim_transport_kind {
    NETSIM_SR,       /* selective repeat: timeouts by the measured round trip, tolerance for reordering */
    NETSIM_IRN,      /* as a NIC would do it (Mittal et al. 2018): two fixed timeouts, no tolerance */
    NETSIM_GBN,      /* go-back-N, as RoCE NICs did: the receiver takes packets in order only */
    NETSIM_LONGHAUL, /* the real protocol, see sim_protocol.h */
    NETSIM_XP,       /* nothing is repeated; messages end with what has come, see xp.h */
};

enum netsim_congestion {
    NETSIM_CONGESTION_NONE,
    NETSIM_CONGESTION_DCQCN,      /* by the notifications and the keys of a NIC, see dcqcn_config */
    NETSIM_CONGESTION_CONTROLLER, /* one of longhaul/congestion.h */
};

#define NETSIM_CONTROLLER_BYTES 128u

struct netsim_congestion_config {
    enum netsim_congestion kind;
    char controller[NETSIM_CONTROLLER_BYTES]; /* as lh_attr.congestion; "" of other kinds */
};

/* See congestion/dcqcn.h. */
struct netsim_dcqcn_config {
    netsim_time alpha_ps;
    netsim_time decrease_ps;
    netsim_time increase_ps;
    uint64_t increase_bytes;
    uint64_t additive_bps;
    uint64_t hyper_bps;
    uint64_t min_bps;
    double gain;
    uint32_t recovery_stages;
    bool clamp;
};

struct netsim_transport_config {
    enum netsim_transport_kind kind;
    struct netsim_congestion_config congestion;
    uint32_t payload_bytes; /* of a full packet; 1 … 65,000 */
    uint32_t header_bytes; /* on the wire, of each data packet: Ethernet, IP, UDP, BTH, RETH, iCRC, FCS … */
    uint32_t ack_bytes; /* on the wire; 0: no acknowledgements: flows are datagrams, nothing is repeated */
    uint64_t window_bytes;   /* payload in flight of one flow; 0: no limit; NETSIM_WINDOW_BDP */
    netsim_time deadline_ps; /* XP: of each message; NETSIM_NEVER: by its path */
    bool one_queue_pair;     /* sr, irn, gbn: of all flows from one host to another, see queue_pair.h */
    double rto;              /* retransmission timeout, in round trips of the flow (never below 1) */
    netsim_time rto_min_ps;  /* no timeout is shorter; nor shorter than a microsecond */
    netsim_time rto_low_ps;  /* irn: with at most rto_low_packets in flight, */
    netsim_time rto_high_ps; /* and with more; NETSIM_NEVER, of either: by the flow's path */
    uint32_t rto_low_packets;
    uint32_t retries;         /* consecutive timeouts that a flow survives; 0: any number */
    uint32_t reorder_packets; /* lost: more than this number of later packets have arrived */
    uint64_t rate_bps;        /* pace of one flow; 0: the line's rate */
    netsim_time nack_ps;      /* gbn: a gap that stays is reported again after this; 0: never */
    netsim_time
        cnp_ps; /* a receiver notifies of congestion at most once in this time; 0: of each marked packet */
    struct netsim_dcqcn_config dcqcn;
    uint8_t data_priority;
    uint8_t ack_priority;
};
#define NETSIM_WINDOW_BDP UINT64_MAX

enum netsim_workload_kind {
    NETSIM_PERMUTATION, /* each host sends to one other and is sent to by one, drawn */
    NETSIM_INCAST,      /* `senders` hosts, drawn, to one */
    NETSIM_ALL_TO_ALL,  /* each host to each other; see rounds */
    NETSIM_FLOWS_FILE,
    NETSIM_POISSON, /* arrivals at each host, sizes from a CDF or `bytes` */
    NETSIM_COLLECTIVE,
};

enum netsim_matrix {                 /* who talks to whom: poisson, permutation */
                     NETSIM_UNIFORM, /* any other host */
                     NETSIM_ACROSS,  /* hosts of the first half (site 0) to hosts of the second */
                     NETSIM_INSIDE,  /* any other host of the same site */
                     NETSIM_PAIRS,   /* not a value of workload.matrix: by workload.pairs */
};

/* How many times workload.load the hosts of each site send to those of each. */
struct netsim_pairs {
    double times[NETSIM_SITES_MAX][NETSIM_SITES_MAX]; /* from, to */
    bool any;
};

struct netsim_workload_config {
    enum netsim_workload_kind kind;
    enum netsim_matrix matrix;
    struct netsim_pairs pairs; /* poisson: takes the matrix's place, if there are any */
    uint64_t bytes;            /* of each flow */
    uint32_t senders;          /* incast; 0: all but one */
    uint32_t receiver;         /* incast: host; UINT32_MAX: drawn */
    uint32_t rounds;           /* permutation, incast, all-to-all: how often; a new draw each time */
    netsim_time gap_ps;        /* between the starts of two rounds */
    netsim_time jitter_ps;     /* each start of a round is drawn from 0 … jitter */
    double load;            /* poisson: payload offered, as a share of load_base_bps of each sending host */
    uint64_t load_base_bps; /* 0: the host's cable */
    netsim_time duration_ps;                  /* poisson: arrivals end */
    struct netsim_text sizes;                 /* poisson: CDF (workload.h); not given: `bytes` each */
    struct netsim_text flows;                 /* flow list (workload.h) */
    char collective[NETSIM_COLLECTIVE_BYTES]; /* "allreduce", ... */
    char schedule[NETSIM_COLLECTIVE_BYTES];   /* "ring", ...; "default" */
    uint64_t block_bytes; /* collective: a flow has as many blocks as fit in that; 0: see the key */
    uint32_t members;     /* collective; 0: all hosts */
    bool by_steps;        /* collective: a flow waits for all of the steps before; round robin at a port */
    netsim_time compute_ps; /* collective: of each member, between two of them */
};

/* See disturbance.h. Times between two: means. */
struct netsim_disturb_config {
    double stragglers;          /* share of the hosts that pause */
    netsim_time pause_ps;       /* for so long */
    netsim_time pause_every_ps; /* each of them; from the end of a pause */
    uint64_t burst_bytes;       /* on the wire; 0: none */
    netsim_time burst_every_ps; /* in the whole network */
    netsim_time flap_ps;        /* how long a cable between switches is down; 0: never */
    netsim_time flap_every_ps;  /* in the whole network */
};

struct netsim_config {
    struct netsim_topology_config topology;
    struct netsim_switch_config switches;
    struct netsim_long_config longs;
    struct netsim_transport_config transport;
    struct netsim_workload_config workload;
    struct netsim_disturb_config disturb;
    char schemes[NETSIM_SCHEMES_BYTES]; /* transport.schemes */
    uint32_t packets_max; /* alive at once; memory for them is reserved, and touched when used */
};

#endif
