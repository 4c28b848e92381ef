/*
 * udp_keys.h - keys of an encrypted endpoint: which one seals the next packet, and which may open one.
 *
 * Each direction has a chain of secrets, one an epoch. What this side sends moves to the next epoch when a
 * key has sealed so many packets, but only when the peer has named the present one in a control packet: that
 * then holds the next. Of what comes, the epoch of the newest packet is held, the one after it, and for a
 * while the one before it. No message carries a key, so none can be lost.
 *
 * Threads: a udp_tx_key or udp_rx_key belongs to one thread at a time, the channel's, or whoever sends
 * control datagrams, or holds the fabric's lock. Secrets are behind udp_keys.lock, which is taken once a key.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_UDP_KEYS_H
#define LH_FABRIC_UDP_UDP_KEYS_H

#include <pthread.h>
#include <stdatomic.h>

#include "fabric/fabric.h"
#include "fabric/seal.h"

/* Packets of a key, after which the next epoch begins; 275 GB of 4 KiB. */
#define UDP_KEY_PACKETS (1u << 26)
/* No key seals more: for 4 KiB packets the bound of RFC 9001, section 6.6, is 1.32e8. Where the peer confirms
 * nothing, sending stops. */
#define UDP_KEY_PACKETS_MAX (UINT64_C(15) << 23)
/* How long the epoch before the newest is held. The fabric does not know the round trip: this is three of
 * them on any path on Earth, or over satellites. What comes later is lost, and retransmitted. */
#define UDP_OLD_KEY_NS (10 * LH_NS_PER_S)

#define UDP_EPOCHS_HELD 3u

struct udp_tx_key {
    struct seal_key key;
    enum seal_kind kind;
    uint8_t channel;
    uint32_t epoch; /* of the key */
    uint64_t count; /* of the next packet, over all epochs */
    uint64_t first; /* that of the key's first packet */
};

struct udp_rx_key {
    enum seal_kind kind;
    uint8_t channel;
    uint8_t places;  /* the key of an epoch is at epoch % places */
    bool takes_past; /* also what is older than the window, as UDP_OPENED_PAST */
    uint64_t next;   /* the highest count that was opened, plus 1 */
    uint32_t epoch[UDP_EPOCHS_HELD];
    struct seal_window *window; /* NULL: only the newest acts */
    struct seal_key *key;
};

/* A channel's. */
struct udp_channel_keys {
    struct udp_tx_key tx;
    struct seal_key data_keys[UDP_EPOCHS_HELD];
    struct seal_key punch_keys[1]; /* few come: where the epoch changes it is derived again */
    struct udp_rx_key data;
    struct udp_rx_key punch;
    struct seal_window window; /* of data */
};

/* An endpoint's. */
struct udp_keys {
    pthread_mutex_t lock;
    uint8_t direction;        /* of what this side sends: 0, if it connected */
    _Atomic uint64_t packets; /* of a key: UDP_KEY_PACKETS; tests have fewer */
    uint64_t packets_max;
    _Atomic uint32_t tx_epoch;
    _Atomic uint32_t tx_confirmed;        /* the newest that the peer has named, plus 1; 0: none */
    _Atomic uint32_t rx_epoch;            /* of the newest packet that was opened */
    _Atomic lh_time old_until;            /* the epoch before is held until then; 0: it is not */
    uint8_t tx_secret[SEAL_SECRET_BYTES]; /* under the lock, of tx_epoch */
    uint8_t rx_secret[UDP_EPOCHS_HELD][SEAL_SECRET_BYTES]; /* under it, by epoch % UDP_EPOCHS_HELD */
    struct udp_tx_key control;                             /* of who sends control datagrams, as the next */
    struct udp_tx_key punch;                               /* for all channels */
    struct seal_key control_keys[UDP_EPOCHS_HELD];
    struct udp_rx_key control_rx; /* under the fabric's lock, as the next */
    struct seal_window window;
    uint32_t channels;
    struct udp_channel_keys channel[];
};

/* Errors as of fabric_ops.secure. */
int udp_keys_create(struct store *store, uint32_t channels, const struct fabric_secret *secret,
                    struct udp_keys **made);
/* Leaves none in memory; NULL is fine. */
void udp_keys_free(struct store *store, struct udp_keys *keys);

/* ---- sending ---- */

/* Whether packets may be sealed, FABRIC_BATCH_MAX of them; moves to the next epoch where it is time. False:
 * not before the peer confirms, or there is memory. */
bool udp_keys_may_seal(struct udp_keys *keys, struct udp_tx_key *tx);
/* Seals the next packet, which no other ever has the number of, for that queue pair. Returns its length. */
uint32_t udp_keys_seal(struct udp_tx_key *tx, uint32_t qpn, const struct seal_text *text, uint8_t *out);
/* Of an authentic control packet: the lowest byte of the newest epoch that the peer has received. */
void udp_keys_confirm(struct udp_keys *keys, uint8_t epoch);

/* ---- receiving ---- */

enum udp_opened {
    UDP_OPENED,
    UDP_OPENED_NEWEST, /* and none that came before was sealed later */
    UDP_OPENED_PAST,   /* so old that it may have come before */
    UDP_FORGED,        /* or of an epoch that is not held; nothing is known of it */
    UDP_REPLAYED,
};

/* Opens a packet of that kind. plain holds bytes - SEAL_BYTES, and is the packet's only if it was opened. The
 * fabric has the clock. */
enum udp_opened udp_keys_open(struct udp_keys *keys, struct udp_rx_key *rx, const uint8_t *packet,
                              uint32_t bytes, struct fabric *fabric, uint8_t *plain);
/* Forgets the epoch before the newest when its time is over. */
void udp_keys_forget_old(struct udp_keys *keys, struct fabric *fabric);
/* What each control packet reports. */
static inline uint8_t udp_keys_received(struct udp_keys *keys)
{
    return (uint8_t)atomic_load_explicit(&keys->rx_epoch, memory_order_relaxed);
}

#endif
