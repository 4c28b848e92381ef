/*
 * ofi_link.h - a link: one connection between two endpoints, in one direction. ofi_link.c moves messages in
 * it, ofi_connect.c opens it. Everything under the domain's lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PLUGINS_OFI_LINK_H
#define LH_PLUGINS_OFI_LINK_H

#include "plugins/libfabric/ofi_provider.h"

enum ofi_frame_kind { OFI_FRAME_EAGER = 1, OFI_FRAME_RENDEZVOUS = 2, OFI_FRAME_GRANT = 3 };

_Static_assert(sizeof(struct ofi_frame) == 40, "without padding");

/* The first message of a connection: who connects, and the token of the endpoint that it wants. */
struct ofi_hello {
    uint8_t magic[4]; /* as in names */
    uint8_t is_bulk, unused[3];
    uint8_t id[8]; /* random, of both links of a pair */
    struct ofi_name from;
    uint8_t token[OFI_TOKEN_BYTES];
};
_Static_assert(sizeof(struct ofi_hello) == 72, "without padding");

/* Receives for frames: of messages; of grants. Early ones fill the library's 64 KiB beside. */
#define OFI_SLOTS_IN  64u
#define OFI_SLOTS_OUT 32u

enum ofi_link_kind {
    OFI_LINK_OUT_FRAMES,
    OFI_LINK_OUT_BULK,
    OFI_LINK_NEW,
    OFI_LINK_IN_FRAMES,
    OFI_LINK_IN_BULK
};
enum ofi_link_state { OFI_LINK_CONNECTING, OFI_LINK_UP, OFI_LINK_OVER, OFI_LINK_CLOSING, OFI_LINK_CLOSED };

struct ofi_slot {
    struct ofi_transfer transfer; /* first */
    bool has_arrived;
    int error;
    size_t bytes;
};

struct ofi_grant {
    struct ofi_transfer transfer; /* first */
    struct ofi_grant *next;
    struct ofi_frame frame;
};

struct ofi_link {
    struct ofi_link *next, *next_work, *next_connect;
    struct ofi_domain *domain;
    struct ofi_endpoint *endpoint; /* NULL: unknown, or closed */
    enum ofi_link_kind kind;
    enum ofi_link_state state;
    bool is_in_work, is_in_thread;
    struct lh_connection *connection;
    struct ofi_name peer;
    struct ofi_hello hello;                                /* that was sent, or arrives */
    bool (*on_hello)(struct ofi_link *link, size_t bytes); /* of a new one */
    struct ofi_transfer hello_transfer;
    struct ofi_link *other; /* of frames: that of bulk; and back */
    int requests;           /* of the library */
    int references;         /* arrivals */

    struct ofi_slot *slots;
    uint8_t *memory;
    size_t slot_bytes;
    uint64_t slot_count, posted, taken;

    /* sending */
    fi_addr_t address;
    uint32_t generation;     /* of the address */
    struct ofi_list unsent;  /* until it is connected */
    struct ofi_list waiting; /* for a grant */
    struct ofi_list granted; /* not sent yet */
    size_t unsent_count;
    /* receiving */
    fi_addr_t source;
    uint32_t source_epoch;
    bool has_source;
    struct ofi_grant *grants, **grants_end; /* not sent yet */
    struct ofi_list landing;                /* not posted yet */
    size_t held;                            /* bytes of arrivals */
};

/* The library can do it later. */
bool ofi_is_exhaustion(int error);
/* NULL: no memory. */
struct ofi_link *ofi_link_new(struct ofi_domain *domain, enum ofi_link_kind kind);
/* Ends a link, and the other one of its pair. error: of the library, negative. */
void ofi_link_end(struct ofi_link *link, int error);
/* The same, with a line in the log. */
void ofi_link_fail(struct ofi_link *link, const char *what, int error, const char *why);
/* It has something to do: ofi_link_work(). */
void ofi_link_add_work(struct ofi_link *link);
/* Receives of so many bytes, which are posted with the next work. False: no memory. */
bool ofi_link_make_slots(struct ofi_link *link, uint64_t count, size_t bytes);
/* Sends a message of up to OFI_IOV_MAX + 1 parts. Returns an error of the library. */
int ofi_link_post(struct ofi_link *link, const struct lh_part *parts, uint32_t count,
                  struct ofi_transfer *transfer);
/* Sends the frame of an operation. Returns an error of the library. */
int ofi_link_send_frame(struct ofi_link *link, struct ofi_operation *operation);
struct ofi_frame ofi_frame_to_wire(const struct ofi_frame *frame);

#endif
