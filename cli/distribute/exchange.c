/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/distribute/exchange.h"

#include "cli/file/little_endian.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All have the same length: length of the message u32 | message | zeros */
#define LENGTH_BYTES 4u
#define RECORD_BYTES (LENGTH_BYTES + CLI_FILE_MESSAGE_MAX)

/* ---- faults ------------------------------------------------------------------------------------------ */

static bool fault_of(struct cli_fault *fault, uint32_t rank, const char *text)
{
    if (*fault->text)
        return false;
    fault->rank = rank;
    snprintf(fault->text, sizeof fault->text, "%s", text);
    return false;
}

static bool fault_is_lost(struct cli_fault *fault, uint32_t rank)
{
    return fault_of(fault, rank, "lost: no answer (start all again; --resume continues)");
}

bool cli_exchange_failed(struct lh_group *group, const struct lh_collective_result *result,
                         struct cli_fault *fault)
{
    uint32_t rank = result->failed_rank != LH_NO_RANK ? result->failed_rank : lh_group_rank(group);
    fault->interrupted |= result->error == -LH_ECANCELED;
    if (result->error == -LH_ECANCELED)
        return fault_of(fault, rank, "stopped by a signal");
    if (result->error == -LH_ECLOSED)
        return fault_of(fault, rank, "ended early (its output has the reason)");
    if (result->error == -LH_EPEER)
        return fault_is_lost(fault, rank);
    return fault_of(fault, rank, *result->message ? result->message : lh_strerror(result->error));
}

bool cli_exchange_call_failed(struct lh_group *group, struct cli_fault *fault)
{
    for (uint32_t rank = 0; rank < lh_group_size(group); rank++)
        if (lh_group_error(group, rank) == -LH_EPEER)
            return fault_is_lost(fault, rank);
    return fault_of(fault, lh_group_rank(group), lh_last_error());
}

bool cli_exchange_stopped(struct lh_group *group, struct cli_fault *fault)
{
    return fault_of(fault, lh_group_rank(group), "stopped by a signal");
}

void cli_exchange_find_fault(const struct cli_file_message *all, uint32_t ranks, struct cli_fault *fault)
{
    for (uint32_t rank = 0; rank < ranks && !*fault->text; rank++)
        if (all[rank].flags & CLI_FILE_NO)
            fault_of(fault, rank, *all[rank].text ? all[rank].text : "refused");
}

/* ---- operations -------------------------------------------------------------------------------------- */

bool cli_exchange_await(struct lh_group *group, struct lh_collective *op, struct cli_fault *fault)
{
    struct lh_collective_result result;
    int pending;
    do
        pending = lh_collective_wait(op, CLI_SLICE_NS, &result);
    while (pending == -LH_ETIMEDOUT && !cli_stopped());
    lh_collective_free(op);
    if (cli_stopped())
        return cli_exchange_stopped(group, fault);
    if (pending)
        return cli_exchange_call_failed(group, fault);
    return !result.error || cli_exchange_failed(group, &result, fault);
}

static void put_record(const struct cli_file_message *message, uint8_t record[RECORD_BYTES])
{
    memset(record, 0, RECORD_BYTES);
    cli_put_u32(record, (uint32_t)cli_file_encode(message, record + LENGTH_BYTES));
}

static bool get_record(const uint8_t *record, enum cli_file_kind kind, struct cli_file_message *message)
{
    uint32_t bytes = cli_get_u32(record);
    if (bytes > CLI_FILE_MESSAGE_MAX || cli_file_decode(record + LENGTH_BYTES, bytes, message) ||
        message->kind != kind)
        return false;
    if (kind != CLI_FILE_OFFER)
        cli_text_clean(message->text, strlen(message->text));
    return true;
}

bool cli_exchange_announce(struct lh_group *group, enum cli_file_kind kind,
                           struct cli_file_message *message, struct cli_fault *fault)
{
    struct lh_collective *op;
    uint8_t record[RECORD_BYTES] = {0};
    message->kind = kind;
    if (lh_group_rank(group) == 0)
        put_record(message, record);
    if (lh_broadcast(group, record, sizeof record, LH_U8, 0, NULL, &op))
        return cli_exchange_call_failed(group, fault);
    if (!cli_exchange_await(group, op, fault))
        return false;
    return get_record(record, kind, message) || fault_of(fault, 0, "sent a message that is not valid");
}

bool cli_exchange_gather(struct lh_group *group, enum cli_file_kind kind,
                         const struct cli_file_message *mine, struct cli_file_message *all,
                         struct cli_fault *fault)
{
    struct lh_collective *op;
    struct cli_file_message message = *mine;
    uint32_t ranks = lh_group_size(group);
    uint8_t record[RECORD_BYTES], *records = malloc((size_t)ranks * RECORD_BYTES);
    message.kind = kind;
    put_record(&message, record);
    if (!records)
        return fault_of(fault, lh_group_rank(group), "out of memory");
    if (lh_allgather(group, record, records, sizeof record, LH_U8, NULL, &op)) {
        free(records);
        return cli_exchange_call_failed(group, fault);
    }
    bool right = cli_exchange_await(group, op, fault);
    for (uint32_t rank = 0; rank < ranks && right; rank++)
        right = get_record(records + (size_t)rank * RECORD_BYTES, kind, &all[rank]) ||
                fault_of(fault, rank, "sent a message that is not valid");
    free(records);
    return right;
}
