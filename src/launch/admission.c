/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/admission.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "launch/tcp.h"

#define PREFIX_BYTES 8u /* of an IPv6 address, /64 */
#define BOUND_MAX    256u

/* ---- addresses --------------------------------------------------------------------------------------- */

struct admission_address admission_address_of(int fd)
{
    struct admission_address address;
    address.family = tcp_peer_address(fd, address.bytes);
    return address;
}

/* Whether two addresses share one budget of places. */
static bool is_same_source(const struct admission_address *a, const struct admission_address *b)
{
    size_t bytes = a->family == 6 ? PREFIX_BYTES : sizeof a->bytes;
    return a->family == b->family && memcmp(a->bytes, b->bytes, bytes) == 0;
}

static uint32_t count_source(const struct admission_place *places, uint32_t count,
                             const struct admission_address *address)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += is_same_source(&places[i].address, address);
    return found;
}

static uint32_t count_standing(const struct admission_place *places, uint32_t count,
                               enum admission_standing standing)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += places[i].standing == standing;
    return found;
}

/* ---- victims ----------------------------------------------------------------------------------------- */

/* The groups of the header, in their order. */
enum group {
    GROUP_NEW_ABOVE_SHARE = 1,
    GROUP_NEW_MANY,
    GROUP_GREETED_ABOVE_SHARE,
    GROUP_NEW,
    GROUP_GREETED,
    GROUP_RETURNED_MANY,
    GROUP_QUEUED_ABOVE_SHARE,
    GROUP_STAYS,
};

struct crowd {
    bool many_new, many_returned;
    uint32_t newcomers_places;
};

static enum group group_of(const struct admission_place *place, uint32_t places_of_source,
                           const struct crowd *crowd)
{
    bool above = places_of_source > ADMISSION_SHARE;
    switch (place->standing) {
    case ADMISSION_NEW:
        return above ? GROUP_NEW_ABOVE_SHARE : crowd->many_new ? GROUP_NEW_MANY : GROUP_NEW;
    case ADMISSION_GREETED:
        return above ? GROUP_GREETED_ABOVE_SHARE : GROUP_GREETED;
    case ADMISSION_RETURNED:
        return crowd->many_returned ? GROUP_RETURNED_MANY : GROUP_STAYS;
    case ADMISSION_QUEUED:
        return above && places_of_source > crowd->newcomers_places ? GROUP_QUEUED_ABOVE_SHARE : GROUP_STAYS;
    case ADMISSION_SERVED:
        break;
    }
    return GROUP_STAYS;
}

static uint32_t count_connection(const struct admission_place *places, uint32_t count, int connection)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += places[i].connection == connection;
    return found;
}

/* What decides, the most important first. */
struct claim {
    enum group group;
    uint32_t of_source, of_connection;
    uint64_t arrival;
};

/* Whether a leaves rather than b. */
static bool leaves_first(const struct claim *a, const struct claim *b)
{
    if (a->group != b->group)
        return a->group < b->group;
    if (a->of_source != b->of_source)
        return a->of_source > b->of_source;
    if (a->of_connection != b->of_connection)
        return a->of_connection > b->of_connection;
    return a->group == GROUP_QUEUED_ABOVE_SHARE ? a->arrival > b->arrival : a->arrival < b->arrival;
}

uint32_t admission_victim(const struct admission_place *places, uint32_t count,
                          const struct admission_address *newcomer)
{
    const struct crowd crowd = {
        .many_new = count_standing(places, count, ADMISSION_NEW) > count / 4,
        .many_returned = count_standing(places, count, ADMISSION_RETURNED) > count / 2,
        .newcomers_places = count_source(places, count, newcomer) + 1,
    };
    uint32_t victim = ADMISSION_NONE;
    struct claim first = {.group = GROUP_STAYS};
    assert(count <= ADMISSION_PLACES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t of_source = count_source(places, count, &places[i].address);
        const struct claim claim = {
            .group = group_of(&places[i], of_source, &crowd),
            .of_source = of_source,
            .of_connection = count_connection(places, count, places[i].connection),
            .arrival = places[i].arrival,
        };
        if (claim.group != GROUP_STAYS && (victim == ADMISSION_NONE || leaves_first(&claim, &first))) {
            victim = i;
            first = claim;
        }
    }
    assert(victim == ADMISSION_NONE || victim < count);
    return victim;
}

/* ---- cookies ----------------------------------------------------------------------------------------- */

int admission_random(void *out, size_t bytes)
{
    if (getrandom(out, bytes, 0) == (ssize_t)bytes)
        return 0;
    return lh_fail(LH_ESYSTEM, "getrandom: %s", strerror(errno));
}

int admission_cookie_make(const struct admission_key *key, const struct admission_address *address,
                          const void *bound, size_t bytes, uint8_t cookie[ADMISSION_COOKIE_BYTES])
{
    uint8_t text[1 + sizeof address->bytes + BOUND_MAX], mac[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    assert(bytes <= BOUND_MAX);
    text[0] = address->family;
    memcpy(text + 1, address->bytes, sizeof address->bytes);
    if (bytes)
        memcpy(text + 1 + sizeof address->bytes, bound, bytes);
    if (!HMAC(EVP_sha256(), key->bytes, sizeof key->bytes, text, 1 + sizeof address->bytes + bytes, mac,
              &length) ||
        length < ADMISSION_COOKIE_BYTES)
        return lh_fail(LH_ESYSTEM, "HMAC-SHA-256: not available in this system's libcrypto");
    memcpy(cookie, mac, ADMISSION_COOKIE_BYTES);
    return 0;
}

bool admission_cookie_check(const struct admission_key *key, const struct admission_address *address,
                            const void *bound, size_t bytes, const uint8_t cookie[ADMISSION_COOKIE_BYTES])
{
    uint8_t right[ADMISSION_COOKIE_BYTES];
    return admission_cookie_make(key, address, bound, bytes, right) == 0 &&
           CRYPTO_memcmp(right, cookie, sizeof right) == 0;
}
