/* SPDX-License-Identifier: BSD-3-Clause */
#include "history/path_history.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/congestion.h>
#include <longhaul/types.h>

/* ---- path history ---------------------------------------------------------------------------------- */

#define TITLE                                                                                              \
    PATH_HISTORY_BEGINNING ": peer, local address, bit/s, shortest round trip in ns, seconds since 1970\n"

#define DIGITS_MAX 19u /* no such number exceeds 64 bits */

_Static_assert(sizeof TITLE <= PATH_HISTORY_LINE_MAX, "the text has a line for the title");

/* ---- reading ----------------------------------------------------------------------------------------- */

/* The part of a line that is not read yet; at is NULL behind the last field. */
struct line {
    const char *at, *end;
};

/* The next field: up to a space or the end. Its bytes; 0: it is empty, or there is none. */
static size_t next_field(struct line *line, const char **field)
{
    *field = line->at;
    if (!line->at)
        return 0;
    const char *space = memchr(line->at, ' ', (size_t)(line->end - line->at));
    size_t bytes = (size_t)((space ? space : line->end) - line->at);
    line->at = space ? space + 1 : NULL;
    return bytes;
}

static bool is_address_character(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
}

static bool is_address(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!is_address_character(text[i]))
            return false;
    return bytes > 0 && bytes < PATH_HISTORY_ADDRESS_MAX;
}

static bool read_address(struct line *line, char out[PATH_HISTORY_ADDRESS_MAX])
{
    const char *field;
    size_t bytes = next_field(line, &field);
    if (!is_address(field, bytes))
        return false;
    memcpy(out, field, bytes);
    out[bytes] = 0;
    return true;
}

static bool read_number(struct line *line, uint64_t *value)
{
    const char *field;
    size_t bytes = next_field(line, &field);
    *value = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (field[i] < '0' || field[i] > '9')
            return false;
        *value = 10 * *value + (uint64_t)(field[i] - '0');
        if (i == DIGITS_MAX)
            return false;
    }
    return bytes > 0;
}

static bool is_possible(const struct path_record *record)
{
    return is_address(record->peer, strnlen(record->peer, sizeof record->peer)) &&
           is_address(record->local, strnlen(record->local, sizeof record->local)) &&
           record->rate_bps >= PATH_HISTORY_RATE_MIN_BPS && record->rate_bps <= PATH_HISTORY_RATE_MAX_BPS &&
           record->rtt_ns > 0 && record->rtt_ns <= PATH_HISTORY_RTT_MAX_NS && record->time_s <= INT64_MAX;
}

static bool read_record(struct line line, struct path_record *record)
{
    return read_address(&line, record->peer) && read_address(&line, record->local) &&
           read_number(&line, &record->rate_bps) && read_number(&line, &record->rtt_ns) &&
           read_number(&line, &record->time_s) && !line.at && is_possible(record);
}

/* count: it is not there. */
static uint32_t index_of(const struct path_history *history, const char *peer, const char *local)
{
    uint32_t i = 0;
    while (i < history->count &&
           (strcmp(history->records[i].peer, peer) != 0 || strcmp(history->records[i].local, local) != 0))
        i++;
    return i;
}

void path_history_parse(const char *text, size_t bytes, struct path_history *history)
{
    const char *at = text, *end = text + (bytes < PATH_HISTORY_TEXT_MAX ? bytes : PATH_HISTORY_TEXT_MAX);
    history->count = 0;
    /* Each turn takes a newline; what comes after the last one is a line that was cut. */
    while (history->count < PATH_HISTORY_MAX && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            return;
        struct path_record record;
        if (read_record((struct line){at, newline}, &record) &&
            index_of(history, record.peer, record.local) == history->count)
            history->records[history->count++] = record;
        at = newline + 1;
    }
}

bool path_history_is_text(const char *text, size_t bytes)
{
    size_t beginning = sizeof PATH_HISTORY_BEGINNING - 1;
    return bytes == 0 || (bytes >= beginning && memcmp(text, PATH_HISTORY_BEGINNING, beginning) == 0);
}

/* ---- writing ----------------------------------------------------------------------------------------- */

size_t path_history_format(const struct path_history *history, char *out)
{
    size_t used = sizeof TITLE - 1;
    assert(history->count <= PATH_HISTORY_MAX);
    memcpy(out, TITLE, used);
    for (uint32_t i = 0; i < history->count; i++) {
        const struct path_record *record = &history->records[i];
        char line[PATH_HISTORY_LINE_MAX];
        int bytes = snprintf(line, sizeof line, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", record->peer,
                             record->local, record->rate_bps, record->rtt_ns, record->time_s);
        assert(bytes > 0 && (size_t)bytes < sizeof line);
        memcpy(out + used, line, (size_t)bytes);
        used += (size_t)bytes;
    }
    return used;
}

/* ---- use --------------------------------------------------------------------------------------------- */

static bool is_current(const struct path_record *record, uint64_t now_s)
{
    return record->time_s <= now_s && now_s - record->time_s <= PATH_HISTORY_AGE_MAX_S;
}

const struct path_record *path_history_find(const struct path_history *history, const char *peer,
                                            const char *local, uint64_t now_s)
{
    uint32_t i = index_of(history, peer, local);
    return i < history->count && is_current(&history->records[i], now_s) ? &history->records[i] : NULL;
}

bool path_history_put(struct path_history *history, const struct path_record *record)
{
    struct path_record newest = *record; /* it may be one of the history's */
    uint32_t kept = 0;
    if (!is_possible(&newest))
        return false;
    for (uint32_t i = 0; i < history->count; i++) {
        const struct path_record *old = &history->records[i];
        bool same = !strcmp(old->peer, newest.peer) && !strcmp(old->local, newest.local);
        if (!same && is_current(old, newest.time_s))
            history->records[kept++] = *old;
    }
    kept = kept < PATH_HISTORY_MAX ? kept : PATH_HISTORY_MAX - 1;
    memmove(&history->records[1], &history->records[0], kept * sizeof history->records[0]);
    history->records[0] = newest;
    history->count = kept + 1;
    return true;
}

bool path_history_rtt_agrees(lh_time remembered_ns, lh_time measured_ns)
{
    return measured_ns >= remembered_ns / 2 && measured_ns / 2 <= remembered_ns;
}

/* ---- known paths ----------------------------------------------------------------------------------- */

bool known_paths_is_learned(const struct lh_congestion_report *report)
{
    const lh_time *ns = report->limited_ns;
    lh_time busy_ns = ns[LH_LIMIT_HOST] + ns[LH_LIMIT_RATE] + ns[LH_LIMIT_WINDOW] + ns[LH_LIMIT_CREDIT] +
                      ns[LH_LIMIT_FABRIC];
    double holds = (double)report->bandwidth_bps / 8 * (double)report->rtt_minimum_ns / (double)LH_NS_PER_S;
    return report->feedback && report->bandwidth_bps > 0 && report->rtt_minimum_ns > 0 &&
           busy_ns >= report->rtt_minimum_ns && (double)report->arrived_bytes >= holds;
}

/* Peers name their own addresses: they can take each other's places, and no more. */
static struct known_path *place_of(struct known_paths *paths, const uint8_t address[16])
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < 16; i++)
        hash = (hash ^ address[i]) * UINT64_C(0x100000001B3);
    return &paths->paths[(hash ^ hash >> 32) % KNOWN_PATHS];
}

static bool is_of(const struct known_path *path, uint8_t family, const uint8_t address[16])
{
    return path->family == family && memcmp(path->address, address, sizeof path->address) == 0;
}

void known_paths_put(struct known_paths *paths, uint8_t family, const uint8_t address[16],
                     const struct lh_congestion_report *report, lh_time now)
{
    struct known_path *path = place_of(paths, address);
    if (!is_of(path, family, address)) {
        *path = (struct known_path){.family = family};
        memcpy(path->address, address, sizeof path->address);
    }
    path->rate_bps = report->bandwidth_bps;
    path->rtt_ns = report->rtt_minimum_ns;
    path->measured_ns = now;
}

bool known_paths_take(struct known_paths *paths, uint8_t family, const uint8_t address[16], lh_time now,
                      struct known_path *known)
{
    struct known_path *path = place_of(paths, address);
    if (!is_of(path, family, address) ||
        (path->taken_ns != 0 && now - path->taken_ns < KNOWN_PATHS_TURN * path->rtt_ns))
        return false;
    path->taken_ns = now;
    *known = *path;
    return true;
}
