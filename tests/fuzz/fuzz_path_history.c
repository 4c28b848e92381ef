/*
 * fuzz_path_history.c - a file of remembered paths, with anything in it.
 *
 * Whatever it says: each record is within its bounds, no path is there twice, and what is written back reads
 * the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "history/path_history.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct path_record *record)
{
    size_t peer = strnlen(record->peer, sizeof record->peer);
    size_t local = strnlen(record->local, sizeof record->local);
    assert(peer > 0 && peer < sizeof record->peer && local > 0 && local < sizeof record->local);
    assert(record->rate_bps >= PATH_HISTORY_RATE_MIN_BPS && record->rate_bps <= PATH_HISTORY_RATE_MAX_BPS);
    assert(record->rtt_ns > 0 && record->rtt_ns <= PATH_HISTORY_RTT_MAX_NS);
}

static void check_same(const struct path_history *a, const struct path_history *b)
{
    assert(a->count == b->count);
    for (uint32_t i = 0; i < a->count; i++)
        assert(!strcmp(a->records[i].peer, b->records[i].peer) &&
               !strcmp(a->records[i].local, b->records[i].local) &&
               a->records[i].rate_bps == b->records[i].rate_bps &&
               a->records[i].rtt_ns == b->records[i].rtt_ns &&
               a->records[i].time_s == b->records[i].time_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct path_history history, again;
    static char written[PATH_HISTORY_TEXT_MAX];
    /* Of its own size, so that a sanitizer sees a byte too far. */
    char *text = malloc(size ? size : 1);
    assert(text);
    if (size)
        memcpy(text, data, size);
    path_history_parse(text, size, &history);
    assert(history.count <= PATH_HISTORY_MAX);
    for (uint32_t i = 0; i < history.count; i++) {
        const struct path_record *record = &history.records[i];
        check_record(record);
        assert(path_history_find(&history, record->peer, record->local, record->time_s) == record);
    }
    path_history_parse(written, path_history_format(&history, written), &again);
    check_same(&history, &again);
    if (history.count > 0) { /* the last is as good as a new one */
        const struct path_record last = history.records[history.count - 1];
        assert(path_history_put(&history, &last) && history.count <= PATH_HISTORY_MAX);
        assert(path_history_find(&history, last.peer, last.local, last.time_s) == &history.records[0]);
    }
    free(text);
    return 0;
}
