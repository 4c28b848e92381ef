/*
 * ofi_provider.h - the parts of the provider: completion queues, counters and event queues (ofi_queue.c),
 * addresses (ofi_address.c), matching (ofi_matching.c), the messages in connections (ofi_link.c),
 * connecting (ofi_connect.c), endpoints (ofi_endpoint.c), domains (ofi_domain.c), fi_getinfo and the fabric
 * (ofi_info.c). Each calls only those before it.
 *
 * One lock, the domain's, covers all objects of a domain. Functions whose comment says "locked" need it.
 * Functions return 0 or a negative FI_E….
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PLUGINS_OFI_PROVIDER_H
#define LH_PLUGINS_OFI_PROVIDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#pragma GCC diagnostic pop

#include <longhaul/longhaul.h>

#include "plugins/settings/plugin_settings.h"

#define OFI_NAME         "longhaul"
#define OFI_IOV_MAX      8
#define OFI_MESSAGE_MAX  ((size_t)1 << 40)
#define OFI_QUEUED_MAX   4096u /* sends of an endpoint to a peer that is not connected yet */
#define OFI_TURN_ENTRIES 64    /* completions of the engine that a call takes */

extern struct fi_provider ofi_provider;

/* The negative FI_E… of a negative lh_error. */
int ofi_error(int error);

/* ---- addresses: ofi_address.c -------------------------------------------------------------------------- */

/* Of fi_info.addr_format. */
#define OFI_ADDRESS_FORMAT (FI_PROV_SPECIFIC | 0x4c48u)
#define OFI_TOKEN_BYTES    16

/* What fi_getname returns: where an endpoint's domain listens, and random bytes that only those know who got
 * the address. Without padding; the port in network order. A token of zeros: any endpoint that has asked for
 * that port. */
struct ofi_name {
    uint8_t magic[4];
    uint8_t family; /* 4 or 6 */
    uint8_t unused;
    uint8_t port[2];
    uint8_t host[16]; /* 4 of them with IPv4 */
    uint8_t token[OFI_TOKEN_BYTES];
};

/* Makes a name without a token. host: "192.0.2.7", "[2001:db8::7]". -FI_EINVAL. */
int ofi_name_make(const char *host, uint16_t port, struct ofi_name *name);
bool ofi_name_is_valid(const struct ofi_name *name);
bool ofi_name_has_token(const struct ofi_name *name);
/* "192.0.2.7:40000". */
#define OFI_WHERE_MAX 64
void ofi_name_where(const struct ofi_name *name, char where[OFI_WHERE_MAX]);
/* The host alone, "[2001:db8::7]". */
void ofi_name_host(const struct ofi_name *name, char host[OFI_WHERE_MAX]);
uint16_t ofi_name_port(const struct ofi_name *name);
/* Resolves as fi_getinfo() does; either may be NULL. passive: for a local address. -FI_ENODATA. */
int ofi_name_resolve(const char *node, const char *service, bool passive, struct ofi_name *name);

struct ofi_domain;

struct ofi_address {
    uint32_t uses; /* insertions; an address that is inserted again keeps its number */
    uint32_t generation;
    int error; /* of the library: its last connection failed so; 0: it did not */
    struct ofi_name name;
};

struct ofi_av {
    struct fid_av fid;
    struct ofi_domain *domain;
    enum fi_av_type type;
    struct ofi_address *addresses;
    size_t count, capacity;
    uint32_t epoch; /* changes with each insertion and removal */
    int references; /* endpoints */
};

int ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
/* Locked. NULL: there is no such address. */
const struct ofi_address *ofi_av_address(const struct ofi_av *av, fi_addr_t address);
/* Locked. A connection with an address has failed, or is there: 0. */
void ofi_av_note(struct ofi_av *av, fi_addr_t address, int error);
/* Locked. FI_ADDR_NOTAVAIL: not there. */
fi_addr_t ofi_av_find(const struct ofi_av *av, const struct ofi_name *name);

/* ---- queues: ofi_queue.c ------------------------------------------------------------------------------- */

struct ofi_entry {
    struct fi_cq_err_entry completion; /* err 0: none */
    fi_addr_t source;
};

struct ofi_cq {
    struct fid_cq fid;
    struct ofi_domain *domain;
    enum fi_cq_format format;
    enum fi_wait_obj wait_obj;
    int event; /* a descriptor; -1: none */
    bool is_signaled, has_overrun;
    uint32_t signals; /* fi_cq_signal() */
    struct ofi_entry *entries;
    size_t first, count, capacity; /* a power of two */
    int references;
};

struct ofi_counter {
    struct fid_cntr fid;
    struct ofi_domain *domain;
    uint64_t value, errors;
    int references;
};

int ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
int ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
                  void *context);
int ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);
/* Locked. */
void ofi_cq_add(struct ofi_cq *cq, const struct ofi_entry *entry);
void ofi_counter_add(struct ofi_counter *counter, bool is_error);
/* As fi_trywait(), of one queue. */
int ofi_cq_try_wait(struct fid *fid);

/* CLOCK_MONOTONIC. */
uint64_t ofi_now_ns(void);
/* The time at which a timeout of milliseconds is over; below 0: OFI_NEVER. */
uint64_t ofi_timeout_ns(int milliseconds);
#define OFI_NEVER UINT64_MAX
/* Locked. Waits for a condition. False: the time has come. */
bool ofi_domain_wait(struct ofi_domain *domain, pthread_cond_t *condition, uint64_t until_ns);
/* Locked. The program polls: it makes progress. */
void ofi_domain_poll(struct ofi_domain *domain);
/* What tables have where an object lacks a call: -FI_ENOSYS. */
int ofi_no_bind(struct fid *fid, struct fid *bound, uint64_t flags);
int ofi_no_control(struct fid *fid, int command, void *argument);
int ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* ---- matching: ofi_matching.c -------------------------------------------------------------------------- */

struct ofi_link;
struct ofi_endpoint;
struct ofi_operation;

enum ofi_transfer_kind {
    OFI_FRAME_RECV,
    OFI_FRAME_SEND,
    OFI_BULK_SEND,
    OFI_BULK_RECV,
    OFI_CONTROL_SEND, /* a hello, or a grant */
};

/* A request of the library; the address is its user value. */
struct ofi_transfer {
    enum ofi_transfer_kind kind;
    struct ofi_link *link;
    struct ofi_operation *operation; /* of a send, or of bulk */
};

/* What precedes the payload of each message, in little endian (ofi_link.c). */
struct ofi_frame {
    uint8_t kind; /* enum ofi_frame_kind */
    uint8_t flags;
    uint8_t unused[6];
    uint64_t tag, data, bytes, id;
};

#define OFI_FRAME_TAGGED 1u
#define OFI_FRAME_DATA   2u /* has data for the completion */

struct ofi_list {
    struct ofi_operation *first, *last;
};

/* A send, or a receive. */
struct ofi_operation {
    struct ofi_operation *next;
    struct ofi_endpoint *endpoint;
    struct ofi_link *link; /* of a send; of a receive once bulk lands in it */
    void *context;
    uint64_t flags; /* FI_COMPLETION, FI_MULTI_RECV, FI_TAGGED, FI_REMOTE_CQ_DATA, FI_INJECT */
    uint64_t tag, ignore, data;
    fi_addr_t address; /* of a receive: the source that it wants, then the one it has */
    struct iovec iov[OFI_IOV_MAX];
    size_t count, bytes; /* of iov: the message, or the buffer */
    /* sends */
    struct ofi_transfer frame_transfer, bulk_transfer;
    struct ofi_frame frame;
    void *copy;       /* the bytes of a message that is injected, or done when accepted */
    uint64_t granted; /* of a rendezvous: bytes that the peer wants */
    int active;       /* transfers */
    bool is_done;     /* it has ended */
    bool is_accepted; /* its success was reported before */
    bool is_rendezvous;
    /* receives */
    size_t used;                  /* of a buffer for several messages */
    struct ofi_operation *parent; /* whose buffer it is a part of */
    int children;
    uint64_t message_bytes; /* of the message that it has, may exceed the buffer */
};

/* A message without a receive. */
struct ofi_arrival {
    struct ofi_arrival *next;
    struct ofi_link *link;
    struct ofi_frame frame; /* in the host's order */
    fi_addr_t source;       /* as of the endpoint's sources_epoch */
    void *claim;            /* the context that claims it */
    uint8_t payload[];      /* unless it is a rendezvous */
};

struct ofi_arrivals {
    struct ofi_arrival *first, *last;
};

/* The receives and messages of an endpoint that wait for each other, of one kind: with or without tags. */
struct ofi_matching {
    struct ofi_list posted;
    struct ofi_arrivals arrived, claimed;
};

/* What a receive wants. */
struct ofi_wanted {
    uint64_t tag, ignore;
    fi_addr_t source; /* FI_ADDR_UNSPEC: any */
};

void ofi_list_add(struct ofi_list *list, struct ofi_operation *operation);
struct ofi_operation *ofi_list_take(struct ofi_list *list);
bool ofi_list_remove(struct ofi_list *list, const struct ofi_operation *operation);
bool ofi_wanted_fits(const struct ofi_wanted *wanted, uint64_t tag, fi_addr_t source);
/* The first receive that fits; stays in the list. */
struct ofi_operation *ofi_matching_receive(struct ofi_matching *matching, uint64_t tag, fi_addr_t source);
/* The first message that fits; NULL: none. */
struct ofi_arrival *ofi_matching_arrival(const struct ofi_matching *matching,
                                         const struct ofi_wanted *wanted);
void ofi_arrivals_add(struct ofi_arrivals *arrivals, struct ofi_arrival *arrival);
void ofi_arrivals_remove(struct ofi_arrivals *arrivals, const struct ofi_arrival *arrival);
/* The claimed message of this context; NULL: none. */
struct ofi_arrival *ofi_matching_claimed(const struct ofi_matching *matching, const void *context);
/* Reports the success of a send whose bytes are copied; what becomes of it is only logged. Locked. */
void ofi_operation_accept(struct ofi_operation *operation);
/* Reports an operation's end, once, and frees it when its transfers have ended. Locked. */
void ofi_operation_end(struct ofi_operation *operation, int error, int provider_error);
void ofi_operation_free(struct ofi_operation *operation);
/* Copies to a buffer in parts, from its byte `offset` on; returns the bytes that it had room for. */
size_t ofi_scatter(const struct iovec *iov, size_t count, size_t offset, const void *from, size_t bytes);
void ofi_gather(void *to, const struct iovec *iov, size_t count);

/* ---- domain, endpoint: the structs --------------------------------------------------------------------- */

struct ofi_fabric {
    struct fid_fabric fid;
    struct plugin_settings settings;
    int references;
};

struct ofi_domain {
    struct fid_domain fid;
    struct ofi_fabric *fabric;
    void (*progress)(struct ofi_domain *domain); /* ofi_progress() */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a completion, or the end of a thread */
    pthread_cond_t wake;    /* for the progress thread */
    struct lh_engine *engine;
    struct lh_completion_queue *queue;
    struct lh_listener *listener;
    struct ofi_name name; /* without a token */
    struct ofi_endpoint *endpoints;
    struct ofi_link *links;                  /* all */
    struct ofi_link *first_work, *last_work; /* those with something to retry */
    struct ofi_link *first_connect, *last_connect;
    int connecting; /* threads */
    int threads;    /* the others */
    int strangers;  /* accepted connections without a hello */
    int waiters;    /* threads that sleep until `changed` */
    bool is_armed;  /* a descriptor is waited for */
    bool is_ending, has_port;
    uint64_t polled_ns; /* the program's last poll */
    uint64_t next_key;
    int references;
};

struct ofi_endpoint {
    struct fid_ep fid;
    struct ofi_endpoint *next;
    struct ofi_domain *domain;
    struct ofi_name name;
    uint64_t caps;
    uint64_t send_flags, recv_flags; /* of operations without flags */
    bool is_send_selective, is_recv_selective, is_enabled, is_closing;
    struct ofi_av *av;
    struct ofi_cq *send_cq, *recv_cq;
    struct ofi_counter *send_counter, *recv_counter;
    struct ofi_link **out; /* by fi_addr_t */
    size_t out_count;
    size_t unsent; /* messages that were accepted and have not arrived, but rendezvous; and grants */
    size_t multi_recv_min;
    uint64_t next_id;
    uint32_t sources_epoch;          /* of the address vector */
    struct ofi_matching matching[2]; /* without, with tags */
};

/* ---- links: ofi_link.c, ofi_connect.c ------------------------------------------------------------------ */

/* Bytes of a message that travels in its frame. */
#define OFI_FRAME_BYTES 4096u
#define OFI_EAGER_MAX   (OFI_FRAME_BYTES - sizeof(struct ofi_frame))

/* All locked. */

/* Sends; owns the operation if it succeeds. -FI_EAGAIN. */
int ofi_link_send(struct ofi_operation *operation);
/* A receive was posted: it takes the first message that fits, or waits. */
void ofi_link_receive(struct ofi_endpoint *endpoint, struct ofi_operation *operation);
/* Receives a message that is in no list into an operation. */
void ofi_link_deliver(struct ofi_arrival *arrival, struct ofi_operation *operation);
/* Ends a message that is not wanted. */
void ofi_link_discard(struct ofi_arrival *arrival);
/* Finds a message without a receive; NULL: none. */
struct ofi_arrival *ofi_link_find(struct ofi_endpoint *endpoint, bool is_tagged,
                                  const struct ofi_wanted *wanted);
/* Takes completions of the engine, and retries what waits. */
void ofi_progress(struct ofi_domain *domain);
void ofi_dispatch(const struct lh_completion *entries, int count);
/* Does what operations have left to do, now. */
void ofi_link_work(struct ofi_domain *domain);
/* Closes one link that is over, without the lock meanwhile. False: none. */
bool ofi_link_reap(struct ofi_domain *domain);
/* Ends all links of an endpoint. */
void ofi_link_end_all(struct ofi_endpoint *endpoint);
bool ofi_link_has_any(const struct ofi_endpoint *endpoint);
/* Ends the links of no endpoint. */
void ofi_link_end_rest(struct ofi_domain *domain);
/* Without the lock: takes a connection that the listener has accepted. */
void ofi_link_accept(struct ofi_domain *domain, struct lh_connection *connection);

/* ---- endpoints: ofi_endpoint.c; domains: ofi_domain.c -------------------------------------------------- */

int ofi_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                    void *context);

#endif
