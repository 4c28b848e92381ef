/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/verbs_sizes.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <longhaul/types.h>

#include "base/error.h"

/* ---- sizing ---------------------------------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The largest power of two that is not above; 0 for 0. */
static uint32_t power_below(uint32_t value)
{
    return value == 0 ? 0 : 1u << (31 - __builtin_clz(value));
}

static uint32_t send_depth(const struct verbs_limits *limits, uint32_t channels, uint32_t mtu_bytes)
{
    uint64_t affordable = VERBS_BOUNCE_BYTES_MAX / ((uint64_t)channels * mtu_bytes);
    uint32_t depth = affordable < VERBS_SEND_DEPTH ? (uint32_t)affordable : VERBS_SEND_DEPTH;
    depth = depth > VERBS_SEND_DEPTH_MIN ? depth : VERBS_SEND_DEPTH_MIN;
    return power_below(smaller(depth, smaller(limits->max_qp_wr, limits->max_cqe)));
}

int verbs_sizes_choose(const struct verbs_limits *limits, uint32_t channels, uint32_t generations,
                       uint32_t mtu_bytes, bool own_queues, struct verbs_sizes *sizes)
{
    assert(channels > 0 && generations > 0 && mtu_bytes > 0);
    bool shared = !own_queues && limits->max_srq >= channels && limits->max_srq_wr >= VERBS_RECV_DEPTH_MIN;
    uint32_t queues = shared ? 1 : generations; /* that one completion queue serves */
    uint32_t depth = smaller(VERBS_RECV_DEPTH, limits->max_cqe) / queues;
    depth = power_below(smaller(depth, shared ? limits->max_srq_wr : limits->max_qp_wr));
    uint32_t sends = send_depth(limits, channels, mtu_bytes);
    if (depth < VERBS_RECV_DEPTH_MIN || sends < VERBS_SEND_DEPTH_MIN)
        return lh_fail(LH_EDEVICE,
                       "the device takes %u work requests a queue and %u completions; %u generations need "
                       "%u and %u",
                       limits->max_qp_wr, limits->max_cqe, generations, VERBS_SEND_DEPTH_MIN,
                       VERBS_RECV_DEPTH_MIN * queues);
    *sizes = (struct verbs_sizes){
        .shared = shared,
        .recv_depth = depth,
        .recv_cqe = depth * queues,
        .send_depth = sends,
        .send_cqe = sends,
    };
    return 0;
}

/* ---- gid ------------------------------------------------------------------------------------------- */

static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

uint32_t verbs_gid_family(const uint8_t bytes[16])
{
    return memcmp(bytes, mapped, sizeof mapped) == 0 ? 4 : 6;
}

enum verbs_gid_rank verbs_gid_rank(const struct verbs_gid *gid)
{
    static const uint8_t zero[16];
    const uint8_t *b = gid->bytes;
    if (!gid->roce_v2 || memcmp(b, zero, 15) == 0) /* all zero, or ::1 */
        return VERBS_GID_USELESS;
    if (verbs_gid_family(b) == 4) {
        if (b[12] == 0 || b[12] == 127 || b[12] >= 224)
            return VERBS_GID_USELESS;
        return b[12] == 169 && b[13] == 254 ? VERBS_GID_LINK_LOCAL : VERBS_GID_IPV4;
    }
    if (b[0] == 0xFF)
        return VERBS_GID_USELESS; /* a group */
    return b[0] == 0xFE && (b[1] & 0xC0) == 0x80 ? VERBS_GID_LINK_LOCAL : VERBS_GID_IPV6;
}

int verbs_gid_choose(const struct verbs_gid *gids, uint32_t count, int32_t wanted_index, uint32_t family)
{
    int best = -1;
    enum verbs_gid_rank best_rank = VERBS_GID_USELESS;
    for (uint32_t i = 0; i < count; i++) {
        if (wanted_index >= 0 && gids[i].index != (uint32_t)wanted_index)
            continue;
        if (family != 0 && verbs_gid_family(gids[i].bytes) != family)
            continue;
        enum verbs_gid_rank rank = verbs_gid_rank(&gids[i]);
        if (rank > best_rank) {
            best = (int)i;
            best_rank = rank;
        }
    }
    return best;
}

void verbs_gid_to_address(const uint8_t gid[16], uint8_t address[16])
{
    if (verbs_gid_family(gid) == 6) {
        memcpy(address, gid, 16);
        return;
    }
    memset(address, 0, 16);
    memcpy(address, gid + 12, 4);
}

void verbs_gid_from_address(uint32_t family, const uint8_t address[16], uint8_t gid[16])
{
    if (family == 6) {
        memcpy(gid, address, 16);
        return;
    }
    memcpy(gid, mapped, sizeof mapped);
    memcpy(gid + 12, address, 4);
}

/* ---- name ------------------------------------------------------------------------------------------ */

#define NUMBER_MAX 65535u

static const char *const protections[VERBS_PROTECTIONS] = {
    [VERBS_PROTECT_ANY] = "any",
    [VERBS_PROTECT_INDIRECT] = "indirect",
    [VERBS_PROTECT_WINDOW] = "window",
    [VERBS_PROTECT_MR] = "mr",
};

const char *verbs_protection_name(enum verbs_protection protection)
{
    return protections[protection];
}

/* A part of the name: `length` bytes from `text`. */
struct part {
    const char *text;
    size_t length;
};

static bool part_is(struct part part, const char *word)
{
    return strlen(word) == part.length && memcmp(part.text, word, part.length) == 0;
}

/* Whether the part is KEY=…; `value` is what stands behind. */
static bool part_has_key(struct part part, const char *key, struct part *value)
{
    size_t length = strlen(key);
    if (part.length <= length || memcmp(part.text, key, length) != 0 || part.text[length] != '=')
        return false;
    *value = (struct part){part.text + length + 1, part.length - length - 1};
    return true;
}

static bool read_number(struct part part, uint32_t *number)
{
    uint32_t value = 0;
    for (size_t i = 0; i < part.length; i++) {
        if (part.text[i] < '0' || part.text[i] > '9')
            return false;
        value = 10 * value + (uint32_t)(part.text[i] - '0');
        if (value > NUMBER_MAX)
            return false;
    }
    *number = value;
    return part.length > 0;
}

static bool read_protection(struct part part, enum verbs_protection *protection)
{
    for (uint32_t i = 0; i < VERBS_PROTECTIONS; i++) {
        if (part_is(part, protections[i])) {
            *protection = (enum verbs_protection)i;
            return true;
        }
    }
    return false;
}

static bool read_setting(struct part part, struct verbs_name *name)
{
    struct part value;
    uint32_t number;
    if (part_has_key(part, "gid", &value)) {
        bool valid = read_number(value, &number);
        name->gid_index = valid ? (int32_t)number : -1;
        return valid;
    }
    if (part_has_key(part, "ip", &value)) {
        name->family = part_is(value, "6") ? 6 : 4;
        return part_is(value, "4") || part_is(value, "6");
    }
    if (part_has_key(part, "protect", &value))
        return read_protection(value, &name->protection);
    if (part_has_key(part, "srq", &value)) {
        name->own_queues = part_is(value, "no");
        return part_is(value, "no") || part_is(value, "yes");
    }
    return false;
}

static bool read_part(struct part part, uint32_t index, struct verbs_name *name)
{
    if (memchr(part.text, '=', part.length) != NULL)
        return read_setting(part, name);
    if (index == 0) {
        if (part.length >= sizeof name->device)
            return false;
        memcpy(name->device, part.text, part.length);
        return true;
    }
    return index == 1 && read_number(part, &name->port) && name->port > 0;
}

int verbs_name_parse(const char *text, struct verbs_name *name)
{
    *name = (struct verbs_name){.gid_index = -1};
    struct part part = {text, 0};
    for (uint32_t index = 0;; index++) { /* each round takes a part; the last one ends the text */
        part.length = strcspn(part.text, "/");
        if (!read_part(part, index, name))
            return lh_fail(LH_EDEVICE,
                           "device \"verbs:%s\": invalid \"%.*s\" (syntax: DEVICE/PORT/gid=INDEX; options "
                           "ip=4, ip=6, protect=window, protect=mr, protect=indirect, srq=no)",
                           text, (int)part.length, part.text);
        part.text += part.length;
        if (*part.text == '\0')
            return 0;
        part.text++;
    }
}

/* ---- tx limit -------------------------------------------------------------------------------------- */

void tx_limit_init(struct tx_limit *limit, uint32_t minimum, uint32_t maximum)
{
    assert(minimum > 0 && minimum <= maximum);
    *limit = (struct tx_limit){.minimum = minimum, .maximum = maximum, .writes = minimum};
}

static uint32_t clamp(const struct tx_limit *limit, uint64_t writes)
{
    if (writes < limit->minimum)
        return limit->minimum;
    return writes < limit->maximum ? (uint32_t)writes : limit->maximum;
}

static void look_again(struct tx_limit *limit, uint64_t released, lh_time now)
{
    limit->reached = false;
    limit->since_ns = now;
    limit->released = released;
}

void tx_limit_on_released(struct tx_limit *limit, uint64_t released, uint32_t in_flight, lh_time now)
{
    if (in_flight == 0) {
        if (limit->reached)
            limit->writes = clamp(limit, 2 * (uint64_t)limit->writes);
        look_again(limit, released, now);
        return;
    }
    lh_time span_ns = now - limit->since_ns;
    if (span_ns < TX_LIMIT_NS)
        return;
    /* An interval is a millisecond or, without a poll, a little more: no product overflows. */
    uint64_t sent = released - limit->released;
    limit->writes = clamp(limit, sent * TX_LIMIT_NS / span_ns);
    look_again(limit, released, now);
}

uint32_t tx_limit_room(struct tx_limit *limit, uint32_t in_flight, uint32_t wanted)
{
    uint32_t room = in_flight < limit->writes ? limit->writes - in_flight : 0;
    if (wanted <= room)
        return wanted;
    limit->reached = true;
    return room;
}

/* ---- tx ring --------------------------------------------------------------------------------------- */

static struct tx_batch *batch_of(const struct tx_ring *ring, uint64_t number)
{
    return &ring->batches[number & (ring->writes_max - 1)];
}

uint32_t tx_ring_room(const struct tx_ring *ring)
{
    assert(ring->taken - ring->released <= ring->writes_max);
    return ring->writes_max - (uint32_t)(ring->taken - ring->released);
}

void tx_ring_push(struct tx_ring *ring, uint32_t writes)
{
    assert(writes > 0 && writes <= tx_ring_room(ring));
    *batch_of(ring, ring->next++) = (struct tx_batch){.writes = writes};
    ring->taken += writes;
}

bool tx_ring_complete(struct tx_ring *ring, uint64_t number)
{
    if (number < ring->oldest || number >= ring->next || batch_of(ring, number)->done)
        return false;
    batch_of(ring, number)->done = true;
    while (ring->oldest < ring->next && batch_of(ring, ring->oldest)->done) /* bounded by the ring */
        ring->released += batch_of(ring, ring->oldest++)->writes;
    return true;
}
