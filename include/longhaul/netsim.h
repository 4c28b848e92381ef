/*
 * netsim.h - the network simulator: hosts, links and switches, packet by packet, in virtual time.
 *
 * A simulation is created from a configuration, a set of keys with text values ("topology.kind" =
 * "fat-tree"; lh_netsim_keys() lists them all), and a seed. The same configuration, seed and build give the
 * same run, event by event. One simulation belongs to one thread; different ones may run in parallel.
 *
 * Times are picoseconds of virtual time since the start, sizes bytes, rates bits per second.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_NETSIM_H
#define LONGHAUL_NETSIM_H

#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_netsim_config;
struct lh_netsim;

/* ---- configuration ----------------------------------------------------------------------------------- */

struct lh_netsim_key {
    const char *name; /* "switch.buffer" */
    const char *kind; /* of its values, for users: "size", "rate", "time", "ratio", "count", "on|off",
                         "a|b|c", "file" */
    const char *default_value; /* "" when there is none */
    const char *help;          /* one line */
};

/* Lists all keys, in the order of their sections. *count: number of keys. The list stays valid. */
LH_API const struct lh_netsim_key *lh_netsim_keys(size_t *count);

/* Creates a configuration with all defaults. -LH_ENOMEM. */
LH_API int lh_netsim_config_create(struct lh_netsim_config **config);
LH_API void lh_netsim_config_destroy(struct lh_netsim_config *config); /* NULL is allowed */
/* Sets a key; use lh_netsim_config_text() for keys of kind "file". -LH_EINVAL, -LH_ERANGE: lh_last_error()
 * has the key, the value and the remedy. */
LH_API int lh_netsim_config_set(struct lh_netsim_config *config, const char *key, const char *value);
/* Sets the text of a key of kind "file", and copies it. name: name of the text in errors; NULL: the key.
 * text: may be NULL with 0 bytes, an empty file. It is parsed when the simulation is created. -LH_EINVAL,
 * -LH_ENOMEM. */
LH_API int lh_netsim_config_text(struct lh_netsim_config *config, const char *key, const char *name,
                                 const char *text, size_t bytes);

/* Returns the key whose value makes `key` unused; NULL: `key` is used, or unknown. Examples: "workload.kind"
 * for workload.load when the kind is "incast"; "switch.pfc" for switch.xoff. The name stays valid. */
LH_API const char *lh_netsim_config_unread(const struct lh_netsim_config *config, const char *key);

/* ---- a run ------------------------------------------------------------------------------------------- */

/* Creates a simulation. The caller may destroy the configuration afterwards. -LH_EINVAL, -LH_ERANGE: keys
 * conflict, or a text is invalid; -LH_ENOMEM. */
LH_API int lh_netsim_create(const struct lh_netsim_config *config, uint64_t seed,
                            struct lh_netsim **simulation);
LH_API void lh_netsim_destroy(struct lh_netsim *simulation); /* NULL is allowed */

/* Runs the simulation. Returns 1 when no event remains: all flows have ended, or a deadlock of flow control
 * has stopped them. Returns 0 when virtual time reaches until_ps, or after events_max events; call again.
 * -LH_ENOMEM: more than run.packets packets are in the network; the run cannot continue. */
LH_API int lh_netsim_run(struct lh_netsim *simulation, uint64_t until_ps, uint64_t events_max);

struct lh_netsim_totals {
    uint64_t now_ps;
    uint64_t events;
    uint64_t hops; /* packets over links: a packet counts once per link */
    uint64_t flows;
    uint64_t flows_started;
    uint64_t flows_done;
    uint64_t flows_failed;     /* by one more than transport.retries consecutive timeouts */
    uint64_t delivered_bytes;  /* payload delivered, each byte once */
    uint64_t data_packets;     /* sent by hosts, retransmissions included */
    uint64_t repeated_packets; /* retransmissions */
    uint64_t ack_packets;
    uint64_t timeouts;
    uint64_t dropped_packets;    /* by switches: queue or buffer full */
    uint64_t lost_packets;       /* by links: their faults */
    uint64_t corrupted_packets;  /* by links; receivers drop them */
    uint64_t duplicated_packets; /* by links */
    uint64_t unroutable_packets; /* no route to the destination */
    uint64_t marked_packets;     /* ECN */
    uint64_t pauses;             /* pause frames sent, without resumes */
    uint64_t resumes;
    uint64_t credits;       /* credit messages */
    uint64_t signals_lost;  /* pauses, resumes and credits: lost or corrupted on links */
    uint64_t packets_alive; /* in the network now */
    uint64_t packets_alive_max;
    uint64_t memory_bytes; /* of packets and tables, without code and connections */
};
LH_API void lh_netsim_totals(const struct lh_netsim *simulation, struct lh_netsim_totals *totals);

/* ---- flows, in the order of their start ------------------------------------------------------------- */

struct lh_netsim_flow {
    uint32_t source; /* hosts */
    uint32_t destination;
    uint64_t bytes;
    uint64_t start_ps;
    uint64_t received_ps; /* arrival of the last byte; UINT64_MAX: not yet */
    uint64_t
        done_ps; /* arrival of the last acknowledgement (datagrams: received_ps); UINT64_MAX: not yet */
    uint64_t ideal_ps; /* done_ps - start_ps in an empty network; 0: the flow has not started */
    uint64_t packets;  /* sent, retransmissions included */
    uint64_t repeated_packets;
    uint64_t timeouts;
    bool failed;         /* aborted by its sender */
    bool across;         /* its ends are at different sites */
    uint8_t source_site; /* from 0 */
    uint8_t destination_site;
    uint64_t delivered_bytes; /* arrived payload, each byte once; whole flows with longhaul */
    uint32_t operation;       /* its operation, from 0; UINT32_MAX: none (workload.kind = collective) */
};
LH_API uint64_t lh_netsim_flows_count(const struct lh_netsim *simulation);
/* Gets a flow. -LH_ERANGE: no such flow. */
LH_API int lh_netsim_flow(const struct lh_netsim *simulation, uint64_t number, struct lh_netsim_flow *flow);

/* ---- links (directed) and hosts --------------------------------------------------------------------- */

struct lh_netsim_link {
    const char *from; /* node names; valid as long as the simulation */
    const char *to;
    uint64_t rate_bps;
    uint64_t delay_ps;
    uint64_t sent_packets;
    uint64_t sent_bytes;  /* on the wire */
    uint64_t queue_bytes; /* queued for this link now, all priorities */
    uint64_t queue_max_bytes;
    uint64_t dropped_packets; /* this queue was full */
    uint64_t lost_packets;    /* on the wire */
    uint64_t marked_packets;
    uint64_t pauses;         /* sent by the receiver to stop this link */
    uint64_t paused_ps;      /* time stopped so far (any priority), including lack of credit */
    uint64_t held_max_bytes; /* maximum bytes of one priority from this link in the next switch's buffer */
    uint64_t
        sent_payload_bytes; /* of data packets, retransmissions included: no headers, ACKs, pauses, credits */
};
LH_API uint32_t lh_netsim_links_count(const struct lh_netsim *simulation);
LH_API int lh_netsim_link(const struct lh_netsim *simulation, uint32_t number, struct lh_netsim_link *link);
LH_API uint32_t lh_netsim_hosts_count(const struct lh_netsim *simulation);

/* ---- watching packets ------------------------------------------------------------------------------- */

enum lh_netsim_kind {
    LH_NETSIM_DATA,
    LH_NETSIM_ACK,
    LH_NETSIM_PAUSE,
    LH_NETSIM_RESUME,
    LH_NETSIM_RAW,
    LH_NETSIM_CREDIT
};

/* A packet at the time its first bit enters a link. */
struct lh_netsim_packet {
    uint64_t at_ps;
    uint32_t link;
    uint32_t source; /* hosts; meaningless for a pause, a resume or a credit */
    uint32_t destination;
    uint32_t flow;     /* UINT32_MAX: none; the packet is from disturb.burst */
    uint32_t sequence; /* data: number in the flow; ack: all earlier packets have arrived */
    uint32_t wire_bytes;
    uint8_t kind; /* enum lh_netsim_kind */
    uint8_t priority;
    bool marked; /* ECN congestion experienced */
    bool repeated;
    uint16_t quanta; /* of a pause: duration in 512 bit times; 65,535: until the resume */
};
typedef void lh_netsim_watcher(void *context, const struct lh_netsim_packet *packet);
/* Watches a link (UINT32_MAX: every link): calls the watcher for each of its packets. All links share one
 * watcher and one context. watcher: NULL removes it; it must not call the simulation. -LH_ERANGE: no such
 * link. -LH_EINVAL: another watcher or context is set. */
LH_API int lh_netsim_watch(struct lh_netsim *simulation, uint32_t link, lh_netsim_watcher *watcher,
                           void *context);

#ifdef __cplusplus
}
#endif
#endif
