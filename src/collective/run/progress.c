/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/progress.h"

#include <assert.h>

/* In lists, sends and receives are told apart by this bit. */
#define IS_RECEIVE (UINT32_C(1) << 31)

static uint32_t *next_in_list(struct progress *progress, uint32_t item)
{
    return item & IS_RECEIVE ? &progress->next_of_receives[item & ~IS_RECEIVE]
                             : &progress->next_of_sends[item];
}

static void append(struct progress *progress, struct progress_list *list, uint32_t item)
{
    *next_in_list(progress, item) = PROGRESS_NONE;
    if (list->first == PROGRESS_NONE)
        list->first = item;
    else
        *next_in_list(progress, list->last) = item;
    list->last = item;
}

static bool take(struct progress *progress, struct progress_list *list, uint32_t *item)
{
    if (list->first == PROGRESS_NONE)
        return false;
    *item = list->first;
    list->first = *next_in_list(progress, *item);
    return true;
}

/* ---- who waits for whom ------------------------------------------------------------------------------ */

static void examine_send(struct progress *progress, uint32_t send)
{
    const struct piece *piece = &progress->sends[send];
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t next = progress->next[piece->first + i];
        if (next < piece->before) {
            append(progress, &progress->states[next].waiting, send);
            return;
        }
    }
    append(progress, &progress->ready, send);
}

static void examine_receive(struct progress *progress, uint32_t receive)
{
    const struct piece *piece = &progress->receives[receive];
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t next = progress->next[piece->first + i];
        assert(next <= receive);
        if (next != receive) {
            append(progress, &progress->states[next].waiting, receive | IS_RECEIVE);
            return;
        }
    }
    append(progress, &progress->due, receive | IS_RECEIVE);
}

static void chain_receives(struct progress *progress)
{
    uint32_t entry = 0;
    for (uint32_t i = 0; i < progress->receive_count; i++) {
        progress->states[i] = (struct progress_receive){{PROGRESS_NONE, PROGRESS_NONE}, entry};
        entry += progress->receives[i].count;
    }
    for (uint32_t i = progress->receive_count; i-- > 0;) {
        const struct piece *piece = &progress->receives[i];
        for (uint32_t k = 0; k < piece->count; k++) {
            progress->follows[progress->states[i].entry + k] = progress->next[piece->first + k];
            progress->next[piece->first + k] = i;
        }
    }
}

static void note_reduced(struct progress *progress)
{
    for (uint32_t i = 0; i < progress->send_count; i++) {
        const struct piece *piece = &progress->sends[i];
        for (uint32_t k = 0; k < piece->count && piece->reduce; k++)
            progress->reduced_until[piece->first + k] = piece->before; /* sends are in order */
    }
}

void progress_begin(struct progress *progress, uint32_t blocks)
{
    assert(progress->send_count < IS_RECEIVE && progress->receive_count < IS_RECEIVE);
    progress->applied = 0;
    progress->ready = progress->due = (struct progress_list){PROGRESS_NONE, PROGRESS_NONE};
    for (uint32_t b = 0; b < blocks; b++) {
        progress->next[b] = PROGRESS_NONE;
        progress->reduced_until[b] = 0;
        progress->received[b] = false;
    }
    chain_receives(progress);
    note_reduced(progress);
    for (uint32_t i = 0; i < progress->send_count; i++)
        examine_send(progress, i);
}

/* ---- events ------------------------------------------------------------------------------------------ */

bool progress_next_send(struct progress *progress, uint32_t *send)
{
    return take(progress, &progress->ready, send);
}

void progress_on_arrival(struct progress *progress, uint32_t receive)
{
    assert(receive < progress->receive_count);
    examine_receive(progress, receive);
}

bool progress_next_due(struct progress *progress, uint32_t *receive)
{
    uint32_t item;
    if (!take(progress, &progress->due, &item))
        return false;
    *receive = item & ~IS_RECEIVE;
    return true;
}

void progress_on_applied(struct progress *progress, uint32_t receive)
{
    const struct piece *piece = &progress->receives[receive];
    struct progress_receive *state = &progress->states[receive];
    uint32_t item;
    for (uint32_t i = 0; i < piece->count; i++) {
        assert(progress->next[piece->first + i] == receive);
        progress->next[piece->first + i] = progress->follows[state->entry + i];
        progress->received[piece->first + i] = true;
    }
    progress->applied++;
    while (take(progress, &state->waiting, &item)) /* none of them waits for it again */
        if (item & IS_RECEIVE)
            examine_receive(progress, item & ~IS_RECEIVE);
        else
            examine_send(progress, item);
}

bool progress_is_final(const struct progress *progress, uint32_t receive, uint32_t index)
{
    const struct piece *piece = &progress->receives[receive];
    return piece->reduce && progress->follows[progress->states[receive].entry + index] == PROGRESS_NONE &&
           progress->reduced_until[piece->first + index] <= receive;
}

bool progress_is_complete(const struct progress *progress)
{
    return progress->applied == progress->receive_count;
}
