/*
 * handshake.h - the exchange over TCP before packets flow: frames, proposals, and the agreement.
 * Pure but for its error texts. All integers big-endian. SPDX-License-Identifier: BSD-3-Clause
 *
 * Frame, 12 bytes and a body: magic 4 | version 1 | type 1 | stream 2 | body bytes 4
 *   PROPOSAL  encryption 1 | mtu step 1 | mtu 2 | chunk 4 | slots 4 | channels 4 | generations 4 |
 *             slot bytes 8 | link text, the rest
 *   BLOB      a QP info blob (qp_info.h)
 *   READY     packets arrive; the accepting side's: the host that the control connection comes from, as text,
 *             so that the other side knows of NAT. Empty: an older side, or not known. From version 7 on the
 *             connecting side has none
 *   REFUSE    a reason for people; after READY: that data packets do not pass
 *   FIN       the last message of the connection (transfer.h), or empty
 *   BUSY      empty: the accepting side serves another, and lets this one wait. From version 2 on
 *   MORE      empty: the connecting side may open further streams. From version 3 on
 *   COOKIE    16 bytes. From version 4 on, and never in a stream: a full listener sends it ahead of the
 *             REFUSE of a client whose proposal it has; the client sends it ahead of its first PROPOSAL when
 *             it returns, and keeps its place then (admission.h). One of another key has no effect
 *
 * Encryption, from version 6 on, else 0: 0 none, 1 of the rendezvous (TLS), 2 of packets, too. Both sides
 * have the same, or the accepting side refuses the other.
 *
 * MTU step: 0: the MTU is a power of two, as that of a NIC, or of either side below version 5; 64: it is any
 * multiple of 64, and so may be what both agree on if both say so.
 *
 * Order: each side sends its PROPOSAL (the connecting side first), both agree, then BLOB each way, then
 * READY each way once a ping has passed over the fabric. The accepting side waits for the other's BLOB
 * before it sends its own, and for the other's READY. FIN or REFUSE ends the connection, and so does the
 * end of the TCP connection.
 *
 * From version 7 on this takes two round trips: the accepting side may send its BLOB behind its PROPOSAL, and
 * sends READY, to which it is bound, as soon as a packet of the other side has arrived. With TLS the
 * connecting side's PROPOSAL is in its ClientHello (tls_channel.h): its version 1 | the body. A listener that
 * does not answer this one gets the PROPOSAL as a frame.
 *
 * Streams, from version 3 on: all of that has stream 0 (older frames: zero). Where the accepting side
 * sent MORE, in stream 0 ahead of its READY, the connecting side may then open others by a PROPOSAL with
 * the lowest number that is free: further connections, with the same order of frames. A number is free
 * again when both sides have sent FIN or REFUSE (control_connection.h).
 *
 * Version: the connecting side's PROPOSAL bears the newest that it knows; all that follows bears the
 * smaller of both sides'. A listener that knows version 1 alone refuses version 2, with a REFUSE of version
 * 1; the connecting side then connects again with that.
 */
#ifndef LH_LAUNCH_HANDSHAKE_H
#define LH_LAUNCH_HANDSHAKE_H

#include <longhaul/connection.h>

#define HANDSHAKE_MAGIC           0x4C485231u /* "LHR1" */
#define HANDSHAKE_VERSION_MIN     1u
#define HANDSHAKE_VERSION         7u
#define HANDSHAKE_VERSION_BUSY    2u
#define HANDSHAKE_VERSION_STREAMS 3u
#define HANDSHAKE_VERSION_COOKIE  4u
#define HANDSHAKE_VERSION_STEPS   5u
#define HANDSHAKE_VERSION_ENCRYPT 6u
#define HANDSHAKE_VERSION_EARLY   7u
#define HANDSHAKE_HEADER_BYTES    12u
#define HANDSHAKE_TYPE_AT         5u /* in the header */
#define HANDSHAKE_BODY_MAX        2048u
#define HANDSHAKE_PROPOSAL_MIN    28u
#define HANDSHAKE_LINK_TEXT_MAX   383u
#define HANDSHAKE_REASON_MAX      200u
#define HANDSHAKE_VERSION_TEXT                                                                             \
    "handshake version" /* part of the reason with which other versions are refused */
/* The reason with which a full listener refuses a client, which may try again; and that with which a stream
 * is refused whose listener was closed: another may listen there. Clients recognise them by these texts, so
 * they are part of the protocol. */
#define HANDSHAKE_FULL   "too many clients are waiting"
#define HANDSHAKE_CLOSED "the listener was closed"
/* lh_security.loopback_only, of either side. */
#define HANDSHAKE_LOOPBACK_ONLY                                                                            \
    "not encrypted: peers on other hosts are refused (give both sides a key: longhaul key new, "           \
    "--key-file; "                                                                                         \
    "or a code: recv --code new; or use --insecure on both)"
/* lh_security.code. */
#define HANDSHAKE_CODE_USED "the code has been used, it is for one connection (make another)"
/* What the link that a proposal asks for may hold, at rate x delay: the accepting side sets that much
 * address space aside for a stranger. 100 Gbit/s over a round trip of 160 ms; more than software emulates.
 */
#define HANDSHAKE_LINK_HELD_MAX ((uint64_t)1 << 30)

enum handshake_type {
    HANDSHAKE_PROPOSAL = 1,
    HANDSHAKE_BLOB = 2,
    HANDSHAKE_READY = 3,
    HANDSHAKE_REFUSE = 4,
    HANDSHAKE_FIN = 5,
    HANDSHAKE_BUSY = 6,   /* version 2 */
    HANDSHAKE_MORE = 7,   /* version 3 */
    HANDSHAKE_COOKIE = 8, /* version 4 */
};

enum handshake_encryption {
    HANDSHAKE_ENCRYPTION_NONE = 0, /* or a version that does not say */
    HANDSHAKE_ENCRYPTION_AUTH = 1,
    HANDSHAKE_ENCRYPTION_FULL = 2,
};

struct handshake_header {
    uint8_t version;
    enum handshake_type type;
    uint16_t stream; /* 0 below version 3 */
    uint32_t body_bytes;
};

/* What one side can do and wants. */
struct handshake_proposal {
    enum handshake_encryption encryption;
    uint32_t mtu_bytes;   /* the largest it can or will use */
    bool any_mtu;         /* any multiple of ROCE_PAYLOAD_STEP, from version 5 on; else a power of two */
    uint32_t chunk_bytes; /* 0: no wish */
    uint32_t slots;
    uint32_t channels;
    uint32_t generations;
    uint64_t slot_bytes;
    struct lh_link_spec link; /* the connecting side's, for the other to emulate as well */
};

/* Writes a header; out holds HANDSHAKE_HEADER_BYTES. */
void handshake_header_encode(const struct handshake_header *header, uint8_t *out);
/* Whether a header is the beginning of TLS: of a peer with a key (tls_channel.h). */
bool handshake_is_tls(const uint8_t *bytes);
/* -LH_EHANDSHAKE (foreign or impossible), -LH_EVERSION. */
int handshake_header_decode(const uint8_t *bytes, struct handshake_header *header);
/* Returns the body's size; out holds HANDSHAKE_BODY_MAX. */
uint32_t handshake_proposal_encode(const struct handshake_proposal *proposal, uint8_t *out);
/* What the emulation of a link may hold; 0: none. */
uint64_t handshake_link_bytes(const struct lh_link_spec *link);
/* Whether a link may be proposed: -LH_ERANGE when it would hold more than HANDSHAKE_LINK_HELD_MAX. */
int handshake_link_check(const struct lh_link_spec *link);
/* -LH_EHANDSHAKE names the field. */
int handshake_proposal_decode(const uint8_t *body, uint32_t bytes, struct handshake_proposal *proposal);
/* What a side wants, on the wire; and for people: "full", "auth", "off". */
enum handshake_encryption handshake_encryption_of(enum lh_encryption wanted);
const char *handshake_encryption_name(enum handshake_encryption encryption);
/* Whether the sides may meet: -LH_EHANDSHAKE names what each wants, in words that fit both. knows: the other
 * side's version says it. */
int handshake_check_encryption(const struct handshake_proposal *connecting,
                               const struct handshake_proposal *accepting, bool knows);
/* What an older release or a NIC takes of a proposal: an MTU and a chunk that are powers of two. */
void handshake_use_powers(struct handshake_proposal *proposal);
/* What both sides use, from both proposals; the same on both sides. The smaller MTU, slot, channel and
 * generation counts win; the connecting side's wish for a chunk, else the other's, else one packet; it is
 * rounded down to a power of two of packets. */
struct handshake_proposal handshake_agree(const struct handshake_proposal *connecting,
                                          const struct handshake_proposal *accepting);

#endif
