/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/udp_keys.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "store/store.h"

#define KEY_BYTES 32u /* AES-256 */

static_assert(ROCE_SEALED_EXTRA == SEAL_BYTES - ROCE_ICRC_BYTES, "what a sealed packet costs");
static_assert(FABRIC_SECRET_BYTES == SEAL_SECRET_BYTES, "the first secret is the connection's");

static size_t keys_bytes(uint32_t channels)
{
    return sizeof(struct udp_keys) + channels * sizeof(struct udp_channel_keys);
}

static void set_up_tx(struct udp_tx_key *tx, enum seal_kind kind, uint32_t channel)
{
    tx->kind = kind;
    tx->channel = (uint8_t)channel;
}

static void set_up_rx(struct udp_rx_key *rx, enum seal_kind kind, uint32_t channel, struct seal_key *key,
                      size_t places)
{
    rx->kind = kind;
    rx->channel = (uint8_t)channel;
    rx->key = key;
    rx->places = (uint8_t)places;
}

static void set_up(struct udp_keys *keys, uint32_t channels)
{
    keys->channels = channels;
    atomic_init(&keys->packets, UDP_KEY_PACKETS);
    keys->packets_max = UDP_KEY_PACKETS_MAX;
    pthread_mutex_init(&keys->lock, NULL);
    set_up_tx(&keys->control, SEAL_CONTROL, 0);
    set_up_tx(&keys->punch, SEAL_PUNCH, 0);
    set_up_rx(&keys->control_rx, SEAL_CONTROL, 0, keys->control_keys, UDP_EPOCHS_HELD);
    keys->control_rx.window = &keys->window;
    for (uint32_t i = 0; i < channels; i++) {
        struct udp_channel_keys *channel = &keys->channel[i];
        set_up_tx(&channel->tx, SEAL_DATA, i);
        set_up_rx(&channel->data, SEAL_DATA, i, channel->data_keys, UDP_EPOCHS_HELD);
        channel->data.window = &channel->window;
        channel->data.takes_past = true; /* a receive knows what it misses */
        set_up_rx(&channel->punch, SEAL_PUNCH, 0, channel->punch_keys, 1);
    }
}

int udp_keys_create(struct store *store, uint32_t channels, const struct fabric_secret *secret,
                    struct udp_keys **made)
{
    struct udp_keys *keys = store_take_aligned(store, keys_bytes(channels));
    if (keys == NULL)
        return -LH_ENOMEM;
    memset(keys, 0, keys_bytes(channels));
    set_up(keys, channels);
    keys->direction = secret->connecting ? 0 : 1;
    memcpy(keys->tx_secret, secret->bytes, SEAL_SECRET_BYTES);
    memcpy(keys->rx_secret[0], secret->bytes, SEAL_SECRET_BYTES);
    memcpy(keys->rx_secret[1], secret->bytes, SEAL_SECRET_BYTES);
    if (!seal_next_epoch(keys->rx_secret[1])) {
        udp_keys_free(store, keys);
        return lh_fail(LH_ESYSTEM, "HMAC-SHA-256: not available in this system's libcrypto");
    }
    *made = keys;
    return 0;
}

static void wipe_rx(struct udp_rx_key *rx)
{
    for (uint32_t i = 0; i < rx->places; i++)
        seal_key_wipe(&rx->key[i]);
}

void udp_keys_free(struct store *store, struct udp_keys *keys)
{
    if (keys == NULL)
        return;
    const size_t bytes = keys_bytes(keys->channels);
    seal_key_wipe(&keys->control.key);
    seal_key_wipe(&keys->punch.key);
    wipe_rx(&keys->control_rx);
    for (uint32_t i = 0; i < keys->channels; i++) {
        seal_key_wipe(&keys->channel[i].tx.key);
        wipe_rx(&keys->channel[i].data);
        wipe_rx(&keys->channel[i].punch);
    }
    pthread_mutex_destroy(&keys->lock);
    seal_wipe(keys, bytes);
    store_give(store, keys, bytes);
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static int derive(const uint8_t *secret, uint8_t direction, enum seal_kind kind, uint8_t channel,
                  bool opens, struct seal_key *key)
{
    uint8_t bytes[KEY_BYTES];
    seal_key_wipe(key);
    int error = seal_derive_key(secret, direction, kind, channel, bytes, sizeof bytes) ? 0 : -LH_ESYSTEM;
    if (error == 0)
        error = seal_key_set(key, SEAL_FASTEST, bytes, sizeof bytes, opens);
    seal_wipe(bytes, sizeof bytes);
    return error;
}

/* Under the lock: the next epoch, if no other key was there before, and the peer holds it. */
static void move_on(struct udp_keys *keys, uint32_t epoch)
{
    if (atomic_load_explicit(&keys->tx_epoch, memory_order_relaxed) == epoch &&
        atomic_load_explicit(&keys->tx_confirmed, memory_order_relaxed) == epoch + 1 &&
        seal_next_epoch(keys->tx_secret))
        atomic_store_explicit(&keys->tx_epoch, epoch + 1, memory_order_release);
}

static bool renew(struct udp_keys *keys, struct udp_tx_key *tx)
{
    pthread_mutex_lock(&keys->lock);
    if (tx->key.set)
        move_on(keys, tx->epoch);
    uint32_t epoch = atomic_load_explicit(&keys->tx_epoch, memory_order_relaxed);
    if (!tx->key.set || epoch != tx->epoch) {
        (void)derive(keys->tx_secret, keys->direction, tx->kind, tx->channel, false, &tx->key);
        tx->epoch = epoch;
        tx->first = tx->count;
    }
    pthread_mutex_unlock(&keys->lock);
    return tx->key.set && tx->count - tx->first < keys->packets_max;
}

bool udp_keys_may_seal(struct udp_keys *keys, struct udp_tx_key *tx)
{
    uint32_t epoch = atomic_load_explicit(&keys->tx_epoch, memory_order_acquire);
    if (tx->key.set && tx->epoch == epoch &&
        tx->count - tx->first < atomic_load_explicit(&keys->packets, memory_order_relaxed))
        return true;
    return renew(keys, tx);
}

static uint32_t spi_of(uint32_t epoch, uint32_t qpn)
{
    return epoch << 24 | qpn;
}

uint32_t udp_keys_seal(struct udp_tx_key *tx, uint32_t qpn, const struct seal_text *text, uint8_t *out)
{
    const struct seal_header header = {
        .spi = spi_of(tx->epoch, qpn), .kind = tx->kind, .count = tx->count++};
    return seal_packet(&tx->key, &header, text, out);
}

void udp_keys_confirm(struct udp_keys *keys, uint8_t epoch)
{
    uint32_t sending = atomic_load_explicit(&keys->tx_epoch, memory_order_relaxed);
    if ((uint8_t)sending == epoch)
        atomic_store_explicit(&keys->tx_confirmed, sending + 1, memory_order_relaxed);
}

/* ---- receiving --------------------------------------------------------------------------------------- */

/* Which epoch that byte names of those that are held. */
static bool find_epoch(struct udp_keys *keys, uint8_t low, struct fabric *fabric, uint32_t *epoch)
{
    uint32_t newest = atomic_load_explicit(&keys->rx_epoch, memory_order_acquire);
    uint8_t ahead = (uint8_t)(low - (uint8_t)newest);
    *epoch = ahead == UINT8_MAX ? newest - 1 : newest + ahead;
    return ahead <= 1 ||
           (ahead == UINT8_MAX &&
            fabric->ops->now(fabric) < atomic_load_explicit(&keys->old_until, memory_order_relaxed));
}

/* NULL: the epoch is not held any more, or there is no memory. */
static struct seal_key *key_of(struct udp_keys *keys, struct udp_rx_key *rx, uint32_t epoch)
{
    uint32_t place = epoch % rx->places;
    struct seal_key *key = &rx->key[place];
    if (key->set && rx->epoch[place] == epoch)
        return key;
    pthread_mutex_lock(&keys->lock);
    uint32_t newest = atomic_load_explicit(&keys->rx_epoch, memory_order_relaxed);
    bool old = epoch + 1 == newest;
    bool held =
        epoch - newest <= 1 || (old && atomic_load_explicit(&keys->old_until, memory_order_relaxed) != 0);
    if (held) {
        (void)derive(keys->rx_secret[epoch % UDP_EPOCHS_HELD], !keys->direction, rx->kind, rx->channel,
                     true, key);
        rx->epoch[place] = epoch;
    }
    pthread_mutex_unlock(&keys->lock);
    return held && key->set ? key : NULL;
}

/* The peer has moved on: the secret of the next epoch takes the place of the one before the last. Where that
 * cannot be derived (no memory), the next packet tries again. */
static void note_epoch(struct udp_keys *keys, uint32_t epoch, struct fabric *fabric)
{
    uint8_t next[SEAL_SECRET_BYTES];
    if (atomic_load_explicit(&keys->rx_epoch, memory_order_relaxed) + 1 != epoch)
        return;
    pthread_mutex_lock(&keys->lock);
    memcpy(next, keys->rx_secret[epoch % UDP_EPOCHS_HELD], sizeof next);
    if (atomic_load_explicit(&keys->rx_epoch, memory_order_relaxed) + 1 == epoch && seal_next_epoch(next)) {
        lh_time until = fabric->ops->now(fabric) + UDP_OLD_KEY_NS;
        memcpy(keys->rx_secret[(epoch + 1) % UDP_EPOCHS_HELD], next, sizeof next);
        atomic_store_explicit(&keys->old_until, until, memory_order_relaxed);
        atomic_store_explicit(&keys->rx_epoch, epoch, memory_order_release);
    }
    pthread_mutex_unlock(&keys->lock);
    seal_wipe(next, sizeof next);
}

void udp_keys_forget_old(struct udp_keys *keys, struct fabric *fabric)
{
    lh_time until = atomic_load_explicit(&keys->old_until, memory_order_relaxed);
    if (until == 0 || fabric->ops->now(fabric) < until)
        return;
    pthread_mutex_lock(&keys->lock);
    if (atomic_load_explicit(&keys->old_until, memory_order_relaxed) == until) {
        uint32_t newest = atomic_load_explicit(&keys->rx_epoch, memory_order_relaxed);
        seal_wipe(keys->rx_secret[(newest - 1) % UDP_EPOCHS_HELD], SEAL_SECRET_BYTES);
        atomic_store_explicit(&keys->old_until, 0, memory_order_relaxed);
    }
    pthread_mutex_unlock(&keys->lock);
}

/* Keys of epochs that are gone. */
static void wipe_gone(struct udp_keys *keys, struct udp_rx_key *rx)
{
    uint32_t newest = atomic_load_explicit(&keys->rx_epoch, memory_order_relaxed);
    bool old_held = atomic_load_explicit(&keys->old_until, memory_order_relaxed) != 0;
    for (uint32_t i = 0; i < rx->places; i++) {
        uint32_t ahead = rx->epoch[i] - newest;
        if (rx->key[i].set && ahead > 1 && !(ahead == UINT32_MAX && old_held))
            seal_key_wipe(&rx->key[i]);
    }
}

enum udp_opened udp_keys_open(struct udp_keys *keys, struct udp_rx_key *rx, const uint8_t *packet,
                              uint32_t bytes, struct fabric *fabric, uint8_t *plain)
{
    struct seal_window *window = rx->window;
    struct seal_header header;
    uint32_t epoch;
    if (!seal_read(packet, bytes, KEY_BYTES, &header) || header.kind != rx->kind ||
        !find_epoch(keys, (uint8_t)(header.spi >> 24), fabric, &epoch))
        return UDP_FORGED;
    bool past = rx->takes_past && seal_window_is_past(window, header.count);
    if (window != NULL && !past && !seal_window_takes(window, header.count))
        return UDP_REPLAYED;
    struct seal_key *key = key_of(keys, rx, epoch);
    if (key == NULL || !seal_open(key, packet, bytes, plain))
        return UDP_FORGED;
    if (window != NULL && !past)
        seal_window_add(window, header.count);
    note_epoch(keys, epoch, fabric);
    wipe_gone(keys, rx);
    if (past)
        return UDP_OPENED_PAST;
    if (header.count < rx->next)
        return UDP_OPENED;
    rx->next = header.count + 1;
    return UDP_OPENED_NEWEST;
}
