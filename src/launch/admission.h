/*
 * admission.h - who leaves when all places for handshakes of a listener are taken, and the cookies by which
 * a client that had to leave is recognised when it returns.
 *
 * Strangers connect as often as they like, 2,000 times a second, and send what they like. A client whose
 * handshake takes a round trip must not lose its place to them. So the victim is looked for in this order:
 *
 *   1  NEW, of an address with more than ADMISSION_SHARE places
 *   2  NEW, while these take more than a quarter of all places
 *   3  GREETED, of an address with more than ADMISSION_SHARE places
 *   4  NEW
 *   5  GREETED
 *   6  RETURNED, while these take more than half of all places
 *   7  QUEUED, of an address with more than ADMISSION_SHARE places, and more than the newcomer's has
 *
 * Within each: of the address with most places, then of the TCP connection with most (by its streams), then
 * the oldest (7: the youngest, which has waited least).
 * An IPv6 address counts by its /64 prefix, which one host may have for itself.
 *
 * A cookie is a MAC under a key of the listener over the client's address, and whatever else the protocol
 * binds to it (as in RFC 6347, section 4.2.1). The listener keeps nothing for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_ADMISSION_H
#define LH_LAUNCH_ADMISSION_H

#include <longhaul/types.h>

#define ADMISSION_SHARE        4u
#define ADMISSION_NONE         UINT32_MAX
#define ADMISSION_PLACES_MAX   64u
#define ADMISSION_KEY_BYTES    32u
#define ADMISSION_COOKIE_BYTES 16u

enum admission_standing {
    ADMISSION_NEW,      /* nothing valid was received from it */
    ADMISSION_GREETED,  /* its first message was valid */
    ADMISSION_RETURNED, /* it presented a cookie */
    ADMISSION_QUEUED,   /* its part is complete: it waits for this side */
    ADMISSION_SERVED,   /* never leaves */
};

/* The address of a client: its family, 4 or 6 (0: not known), and 16 bytes, IPv4 in the first four. */
struct admission_address {
    uint8_t family;
    uint8_t bytes[16];
};

struct admission_place {
    struct admission_address address;
    int connection; /* the same for streams of one TCP connection */
    enum admission_standing standing;
    uint64_t arrival; /* a place of a smaller number is older */
};

struct admission_key {
    uint8_t bytes[ADMISSION_KEY_BYTES];
};

/* The address of a connected socket's peer. */
struct admission_address admission_address_of(int fd);
/* Which of count places (all that there are, at most ADMISSION_PLACES_MAX) the newcomer gets;
 * ADMISSION_NONE: the newcomer is to be refused. Pure. */
uint32_t admission_victim(const struct admission_place *places, uint32_t count,
                          const struct admission_address *newcomer);
/* Random bytes of the system, at most 256: keys of cookies, nonces. -LH_ESYSTEM. */
int admission_random(void *out, size_t bytes);
/* The cookie of that address, bound to `bytes` of `bound`. -LH_ESYSTEM: no HMAC in this system's libcrypto.
 */
int admission_cookie_make(const struct admission_key *key, const struct admission_address *address,
                          const void *bound, size_t bytes, uint8_t cookie[ADMISSION_COOKIE_BYTES]);
/* Whether that is the cookie; in a time that does not depend on where it differs. */
bool admission_cookie_check(const struct admission_key *key, const struct admission_address *address,
                            const void *bound, size_t bytes, const uint8_t cookie[ADMISSION_COOKIE_BYTES]);

#endif
