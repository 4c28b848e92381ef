/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/attributes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "history/path_file.h"
#include "schemes/auto_choice.h"
#include "schemes/scheme_table.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

typedef unsigned long long wide; /* for %llu */

void lh_attr_init(struct lh_attr *attr)
{
    *attr = (struct lh_attr){.struct_bytes = sizeof *attr};
}

void lh_security_init(struct lh_security *security)
{
    *security = (struct lh_security){.struct_bytes = sizeof *security};
}

int lh_reliability_check(const char *text)
{
    struct scheme_choice choice;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.reliability = text;
    return scheme_choose(&attr, &choice);
}

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static int check_mtu(uint32_t mtu)
{
    if (mtu == 0 || (roce_payload_is_valid(mtu) && mtu >= ATTR_MTU_MIN))
        return 0;
    return lh_fail(LH_EINVAL, "mtu_bytes %u: invalid (use a multiple of %u from %u to %u)", mtu,
                   ROCE_PAYLOAD_STEP, ATTR_MTU_MIN, ROCE_PAYLOAD_MAX);
}

static int check_chunk(const struct lh_attr *attr)
{
    uint32_t unit = attr->mtu_bytes ? attr->mtu_bytes : ATTR_MTU_MIN;
    if (attr->chunk_bytes == 0 || (attr->chunk_bytes >= unit && attr->chunk_bytes <= ATTR_CHUNK_MAX))
        return 0;
    return lh_fail(LH_EINVAL, "chunk_bytes %u: out of range (use %s, %u, to %u)", attr->chunk_bytes,
                   attr->mtu_bytes ? "the MTU" : "the smallest MTU", unit, ATTR_CHUNK_MAX);
}

static int check_slots(const struct lh_attr *attr)
{
    if (attr->slots != 0 && (!is_power_of_two(attr->slots) || attr->slots > ATTR_SLOTS_MAX))
        return lh_fail(LH_EINVAL, "slots %u: invalid (use a power of two up to %u)", attr->slots,
                       ATTR_SLOTS_MAX);
    if (attr->slot_bytes > (uint64_t)ATTR_PACKETS_MAX * ATTR_MTU_DEFAULT)
        return lh_fail(LH_EINVAL, "slot_bytes %llu: out of range (at most %llu)", (wide)attr->slot_bytes,
                       (wide)ATTR_PACKETS_MAX * ATTR_MTU_DEFAULT);
    return 0;
}

static int check_counts(const struct lh_attr *attr)
{
    if (attr->channels > ATTR_CHANNELS_MAX)
        return lh_fail(LH_EINVAL, "channels %u: out of range (1 to %u)", attr->channels, ATTR_CHANNELS_MAX);
    if (attr->generations > ATTR_GENERATIONS_MAX)
        return lh_fail(LH_EINVAL, "generations %u: out of range (1 to %u)", attr->generations,
                       ATTR_GENERATIONS_MAX);
    if (attr->workers > ATTR_WORKERS_MAX && attr->workers != LH_NO_WORKERS)
        return lh_fail(LH_EINVAL, "workers %u: out of range (1 to %u, or LH_NO_WORKERS)", attr->workers,
                       ATTR_WORKERS_MAX);
    if (attr->coders > ATTR_CODERS_MAX && attr->coders != LH_NO_CODERS)
        return lh_fail(LH_EINVAL, "coders %u: out of range (1 to %u, or LH_NO_CODERS)", attr->coders,
                       ATTR_CODERS_MAX);
    return 0;
}

/* Far more than any link needs, and far from where sums of times would wrap. */
static int check_times(const struct lh_attr *attr)
{
    if (attr->spin_ns > ATTR_SPIN_MAX_NS && attr->spin_ns != LH_NO_SPIN)
        return lh_fail(LH_EINVAL, "spin_ns %llu: out of range (at most %llu = 1 s, or LH_NO_SPIN)",
                       (wide)attr->spin_ns, (wide)ATTR_SPIN_MAX_NS);
    if (attr->peer_timeout_ns <= ATTR_PEER_TIMEOUT_MAX_NS)
        return 0;
    return lh_fail(LH_EINVAL, "peer_timeout_ns %llu: out of range (at most %llu = a day)",
                   (wide)attr->peer_timeout_ns, (wide)ATTR_PEER_TIMEOUT_MAX_NS);
}

static int check_rates(const struct lh_attr *attr)
{
    const uint64_t rates[] = {attr->rate_bps, attr->rate_max_bps};
    for (size_t i = 0; i < 2; i++)
        if (rates[i] > ATTR_RATE_MAX_BPS)
            return lh_fail(LH_EINVAL, "%s %llu: out of range (at most %llu = 100 Tbit/s, or 0 for none)",
                           i == 0 ? "rate_bps" : "rate_max_bps", (wide)rates[i], (wide)ATTR_RATE_MAX_BPS);
    return attr->congestion ? lh_congestion_check(attr->congestion) : 0;
}

static int check_path_file(const struct lh_attr *attr)
{
    if (!attr->path_file || strnlen(attr->path_file, PATH_FILE_NAME_MAX) < PATH_FILE_NAME_MAX)
        return 0;
    return lh_fail(LH_EINVAL, "path_file is longer than %u bytes", PATH_FILE_NAME_MAX - 1);
}

/* Who asks for a key gets one, or nothing. */
static int check_security(const struct lh_attr *attr)
{
    const struct lh_security *security = attr->security;
    if (!security)
        return 0;
    if (security->struct_bytes != sizeof *security)
        return lh_fail(LH_EINVAL,
                       "security.struct_bytes %zu: call lh_security_init() first (%zu in this library)",
                       security->struct_bytes, sizeof *security);
    if (security->encryption < LH_ENCRYPTION_FULL || security->encryption > LH_ENCRYPTION_OFF)
        return lh_fail(LH_EINVAL, "security.encryption %d: invalid (use LH_ENCRYPTION_FULL, _AUTH or _OFF)",
                       (int)security->encryption);
    if (security->encryption == LH_ENCRYPTION_OFF)
        return 0;
    bool has_file = security->key_file && *security->key_file;
    if (has_file && (security->code || security->secret))
        return lh_fail(LH_EINVAL, "security.%s: there is a key file, too (set one of them)",
                       security->code ? "code" : "secret");
    if (security->code && security->secret)
        return lh_fail(LH_EINVAL, "security.secret: there is a code, too (set one of them)");
    if (!has_file && !security->code && !security->secret)
        return lh_fail(LH_EINVAL, "security.key_file: not set (name a key file, or set security to NULL)");
    return 0;
}

/* A peer that is silent for longer counts as gone: no message would end by its deadline. */
static int check_deadline(const struct lh_attr *attr, lh_time deadline_ns)
{
    lh_time limit_ns = attr->peer_timeout_ns ? attr->peer_timeout_ns : ATTR_PEER_TIMEOUT_DEFAULT_NS;
    if (attr->match_tags)
        return lh_fail(LH_EINVAL,
                       "match_tags with a deadline: a receive that chooses waits until a message "
                       "has its tag; use another reliability, or no match_tags");
    if (deadline_ns < limit_ns || deadline_ns == LH_DEADLINE_NONE)
        return 0;
    return lh_fail(LH_EINVAL,
                   "deadline of %llu us: exceeds peer_timeout_ns (use less than %llu ms, or raise that)",
                   (wide)(deadline_ns / LH_NS_PER_US), (wide)(limit_ns / LH_NS_PER_MS));
}

/* A segment of a scheme that codes is two SDR messages: its chunks, and their parity. What was not asked for
 * (0) is not judged; chunks that were not are taken for as small as they may become. */
static int check_coding(const struct lh_attr *attr)
{
    struct scheme_choice choice;
    int error = scheme_choose(attr, &choice);
    if (!error && choice.scheme->deadline)
        error = check_deadline(attr, choice.scheme->deadline(choice.params));
    if (error || !scheme_codes(&choice))
        return error;
    if (attr->slots == 1)
        return lh_fail(LH_EINVAL, "slots 1: %s needs at least 2, one of them for parity",
                       choice.scheme->name);
    struct lh_attr minimum = *attr;
    if (minimum.chunk_bytes == 0)
        minimum.chunk_bytes = minimum.mtu_bytes ? minimum.mtu_bytes : ATTR_MTU_MIN;
    if (attr->slot_bytes != 0 && scheme_segment_bytes(&choice, &minimum) == 0)
        return lh_fail(LH_EINVAL,
                       "slot_bytes %llu: too small for %s: the parity of one group of %u-byte chunks does "
                       "not fit; use larger slots, smaller chunks or less parity",
                       (wide)attr->slot_bytes, attr->reliability ? attr->reliability : choice.scheme->name,
                       minimum.chunk_bytes);
    return 0;
}

static int copy_given(const struct lh_attr *given, struct lh_attr *copy)
{
    lh_attr_init(copy);
    if (!given)
        return 0;
    if (given->struct_bytes < sizeof(size_t) || given->struct_bytes > sizeof *copy)
        return lh_fail(LH_EINVAL, "struct_bytes %zu: call lh_attr_init() first (%zu in this library)",
                       given->struct_bytes, sizeof *copy);
    memcpy(copy, given, given->struct_bytes);
    copy->struct_bytes = sizeof *copy;
    return 0;
}

int attr_check(const struct lh_attr *given, struct lh_attr *checked)
{
    struct lh_attr attr;
    int error = copy_given(given, &attr);
    if (!error)
        error = check_mtu(attr.mtu_bytes);
    if (!error)
        error = check_chunk(&attr);
    if (!error)
        error = check_slots(&attr);
    if (!error)
        error = check_counts(&attr);
    if (!error)
        error = check_times(&attr);
    if (!error)
        error = check_rates(&attr);
    if (!error)
        error = check_path_file(&attr);
    if (!error)
        error = check_security(&attr);
    if (!error)
        error = check_coding(&attr);
    if (!error)
        *checked = attr;
    return error;
}

static void set_default_u32(uint32_t *value, uint32_t preset)
{
    if (*value == 0)
        *value = preset;
}

static void set_default_u64(uint64_t *value, uint64_t preset)
{
    if (*value == 0)
        *value = preset;
}

bool attr_is_loopback(const char *device)
{
    static const char *const loopback[] = {"udp:[::1]", "udp:::1", "udp:127."};
    for (size_t i = 0; device && i < sizeof loopback / sizeof loopback[0]; i++)
        if (strncmp(device, loopback[i], strlen(loopback[i])) == 0)
            return true;
    return false;
}

/* Where nothing tells the path: loopback and the simulated network take the largest packets. */
static uint32_t default_mtu(const char *device)
{
    bool is_large = attr_is_loopback(device) || (device && strncmp(device, "sim:", 4) == 0);
    return is_large ? ATTR_MTU_DEFAULT : ATTR_MTU_UNKNOWN_PATH;
}

static uint64_t default_slot_bytes(const struct lh_attr *attr)
{
    return attr->chunk_bytes > ATTR_SLOT_BYTES_DEFAULT ? attr->chunk_bytes : ATTR_SLOT_BYTES_DEFAULT;
}

static int check_together(const struct lh_attr *attr)
{
    if (attr->chunk_bytes < attr->mtu_bytes)
        return lh_fail(LH_EINVAL, "chunk_bytes %u: below the MTU (use at least %u)", attr->chunk_bytes,
                       attr->mtu_bytes);
    if (attr->slot_bytes < attr->chunk_bytes)
        return lh_fail(LH_EINVAL, "slot_bytes %llu: below one chunk (use at least %u)",
                       (wide)attr->slot_bytes, attr->chunk_bytes);
    if (attr->slot_bytes / attr->mtu_bytes > ATTR_PACKETS_MAX)
        return lh_fail(LH_EINVAL, "slot_bytes %llu: out of range (at most %llu: %u packets of %u bytes)",
                       (wide)attr->slot_bytes, (wide)ATTR_PACKETS_MAX * attr->mtu_bytes, ATTR_PACKETS_MAX,
                       attr->mtu_bytes);
    if (attr->window_bytes < attr->chunk_bytes)
        return lh_fail(LH_EINVAL, "window_bytes %llu: below one chunk (use at least %u)",
                       (wide)attr->window_bytes, attr->chunk_bytes);
    return check_coding(attr);
}

int attr_complete(struct lh_attr *attr)
{
    set_default_u32(&attr->mtu_bytes, default_mtu(attr->device));
    set_default_u32(&attr->chunk_bytes, attr->mtu_bytes);
    if (attr->chunk_bytes > attr->mtu_bytes)
        attr->chunk_bytes = (uint32_t)qp_info_chunk_for(attr->chunk_bytes, attr->mtu_bytes);
    set_default_u64(&attr->slot_bytes, default_slot_bytes(attr));
    if (attr->slot_bytes > attr->chunk_bytes)
        attr->slot_bytes -= attr->slot_bytes % attr->chunk_bytes;
    set_default_u32(&attr->slots, ATTR_SLOTS_DEFAULT);
    set_default_u32(&attr->channels, 1);
    set_default_u32(&attr->generations, ATTR_GENERATIONS_DEFAULT);
    set_default_u32(&attr->workers, 1);
    set_default_u32(&attr->coders, 1);
    if (attr->workers == LH_NO_WORKERS)
        attr->coders = LH_NO_CODERS; /* they could wake nobody */
    set_default_u64(&attr->window_bytes, ATTR_WINDOW_BYTES_DEFAULT);
    set_default_u64(&attr->receive_buffer_bytes, ATTR_RECEIVE_BUFFER_DEFAULT);
    set_default_u64(&attr->peer_timeout_ns, ATTR_PEER_TIMEOUT_DEFAULT_NS);
    return check_together(attr);
}

int attr_complete_for(struct lh_attr *attr, uint32_t fits_bytes)
{
    const struct lh_attr asked = *attr;
    attr->mtu_bytes = asked.mtu_bytes ? asked.mtu_bytes : fits_bytes;
    int error = attr_complete(attr);
    for (uint32_t mtu = roce_mtu_for(fits_bytes); error && !asked.mtu_bytes && mtu >= ROCE_MTU_MIN;
         mtu /= 2) {
        *attr = asked;
        attr->mtu_bytes = mtu;
        error = attr_complete(attr);
    }
    if (error) { /* the reason of the largest */
        *attr = asked;
        attr->mtu_bytes = asked.mtu_bytes ? asked.mtu_bytes : fits_bytes;
        error = attr_complete(attr);
    }
    return error;
}

void attr_fill_packets(struct lh_attr *attr, uint32_t fits_bytes)
{
    struct lh_attr complete = *attr;
    if (attr->mtu_bytes == 0 && fits_bytes != 0)
        attr->mtu_bytes = attr_complete_for(&complete, fits_bytes) ? fits_bytes : complete.mtu_bytes;
}

/* ---- scheme ---------------------------------------------------------------------------------------- */

#define CODED_CHUNKS 65536u /* a code that has no parity for so many has none */

static bool name_is(const struct lh_scheme *scheme, const char *name, size_t bytes)
{
    return strlen(scheme->name) == bytes && memcmp(scheme->name, name, bytes) == 0;
}

static const struct lh_scheme *find_by_name(const struct lh_scheme *own, const char *name, size_t bytes)
{
    if (own && name_is(own, name, bytes))
        return own;
    return scheme_table_machines(name, bytes);
}

static int fail_unknown(const struct lh_scheme *own, const char *name, size_t bytes)
{
    char known[256];
    size_t used = 0;
    known[0] = '\0';
    if (own)
        used = (size_t)snprintf(known, sizeof known, " %s", own->name);
    for (const struct lh_scheme *const *s = lh_schemes(); *s && used < sizeof known; s++)
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", (*s)->name);
    return lh_fail(LH_EINVAL, "reliability \"%.*s\": unknown (use one of auto%s)", (int)bytes, name, known);
}

/* A scheme of the caller's own may have that name, too. */
static bool is_auto(const struct lh_scheme *own, const char *name, size_t bytes)
{
    return strlen(SCHEME_NAME_AUTO) == bytes && memcmp(SCHEME_NAME_AUTO, name, bytes) == 0 &&
           !(own && name_is(own, name, bytes));
}

static int choose_auto(const char *rest, struct scheme_choice *choice)
{
    struct scheme_choice chosen = {.automatic = true};
    int error = auto_params_parse(rest, &chosen.by, &chosen.max_overhead);
    if (error)
        return error;
    chosen.scheme = scheme_table_machines(SCHEME_NAME_PLAIN, strlen(SCHEME_NAME_PLAIN));
    error = chosen.scheme->parse("", chosen.params);
    if (!error)
        *choice = chosen;
    return error;
}

int scheme_choose(const struct lh_attr *attr, struct scheme_choice *choice)
{
    const char *preset = attr->scheme ? attr->scheme->name : SCHEME_NAME_DEFAULT;
    const char *text = attr->reliability ? attr->reliability : preset;
    const char *rest;
    size_t name_bytes = scheme_table_name(text, &rest);
    if (name_bytes > 0 && text[name_bytes] != '\0' && *rest == '\0')
        return lh_fail(LH_EINVAL, "reliability \"%s\": no parameter after the %s (leave it out)", text,
                       text[name_bytes] == ',' ? "comma" : "colon");
    if (attr->scheme && attr->scheme->id < LH_SCHEME_ID_USER)
        return lh_fail(LH_EINVAL, "scheme %s: id %u out of range (%u to 255 for your own)",
                       attr->scheme->name, attr->scheme->id, LH_SCHEME_ID_USER);
    if (is_auto(attr->scheme, text, name_bytes))
        return choose_auto(rest, choice);
    const struct lh_scheme *scheme = find_by_name(attr->scheme, text, name_bytes);
    if (!scheme)
        return fail_unknown(attr->scheme, text, name_bytes);
    struct scheme_choice chosen = {.scheme = scheme};
    int error = scheme->parse(rest, chosen.params);
    if (error)
        return error;
    *choice = chosen;
    return 0;
}

const struct lh_scheme *scheme_find(const struct lh_scheme *own, uint8_t id)
{
    if (own && own->id == id)
        return own;
    for (const struct lh_scheme *const *s = lh_schemes(); *s; s++)
        if ((*s)->id == id)
            return *s;
    return NULL;
}

uint16_t scheme_announcements(void)
{
    return scheme_table_announcements();
}

bool scheme_is_known(const struct scheme_choice *choice, uint16_t flags)
{
    return (scheme_table_announced(choice->scheme) & ~flags) == 0;
}

bool scheme_codes(const struct scheme_choice *choice)
{
    const struct lh_scheme_coding *coding = choice->scheme->coding;
    return coding && coding->extra_chunks(choice->params, CODED_CHUNKS) > 0;
}

uint64_t scheme_segment_bytes(const struct scheme_choice *choice, const struct lh_attr *attr)
{
    if (!choice->scheme->coding)
        return attr->slot_bytes;
    uint32_t slot_chunks = (uint32_t)(attr->slot_bytes / attr->chunk_bytes);
    uint64_t chunks = choice->scheme->coding->transfer_chunks_max(choice->params, slot_chunks);
    assert(chunks <= slot_chunks);
    return chunks * attr->chunk_bytes;
}
