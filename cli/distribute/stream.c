/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/distribute/stream.h"

#include "cli/terminal/stop.h"
#include "cli/terminal/wait.h"

#include <assert.h>
#include <stdlib.h>

/* Of a rank, in an all-gather: bytes that it has written; or that it has failed. */
#define STATUS_FAILED (-1)

bool cli_stream_open(struct cli_stream *stream, struct lh_group *group, const char *schedule)
{
    uint32_t ranks = lh_group_size(group);
    *stream = (struct cli_stream){.group = group, .ranks = ranks};
    lh_collective_options_init(&stream->options);
    stream->options.schedule = schedule;
    stream->memory = malloc(CLI_WINDOW * CLI_BLOCK_BYTES);
    stream->statuses = calloc((size_t)CLI_WINDOW * (1 + ranks), sizeof *stream->statuses);
    stream->positions = calloc(ranks, sizeof *stream->positions);
    return stream->memory && stream->statuses && stream->positions;
}

void cli_stream_start(struct cli_stream *stream, uint64_t size_bytes, uint64_t from_bytes)
{
    stream->size_bytes = size_bytes;
    stream->begun_bytes = stream->taken_bytes = from_bytes;
}

void cli_stream_close(struct cli_stream *stream)
{
    for (uint32_t i = 0; i < CLI_WINDOW; i++) {
        lh_collective_free(stream->blocks[i]);
        lh_collective_free(stream->gathers[i]);
    }
    free(stream->memory);
    free(stream->statuses);
    free(stream->positions);
    *stream = (struct cli_stream){0};
}

static size_t block_bytes(const struct cli_stream *stream, uint64_t from_bytes)
{
    uint64_t rest = stream->size_bytes - from_bytes;
    return rest < CLI_BLOCK_BYTES ? (size_t)rest : CLI_BLOCK_BYTES;
}

static int64_t *statuses_of(const struct cli_stream *stream, uint64_t block)
{
    return stream->statuses + block % CLI_WINDOW * (1 + stream->ranks);
}

/* ---- beginning --------------------------------------------------------------------------------------- */

bool cli_stream_may_begin(const struct cli_stream *stream)
{
    return stream->begun_bytes < stream->size_bytes && stream->begun - stream->taken < CLI_WINDOW;
}

uint8_t *cli_stream_head(const struct cli_stream *stream, size_t *bytes)
{
    *bytes = block_bytes(stream, stream->begun_bytes);
    return stream->memory + stream->begun % CLI_WINDOW * CLI_BLOCK_BYTES;
}

bool cli_stream_begin(struct cli_stream *stream, uint64_t written_bytes, bool failed,
                      struct cli_fault *fault)
{
    uint32_t place = stream->begun % CLI_WINDOW;
    int64_t *statuses = statuses_of(stream, stream->begun);
    size_t bytes;
    uint8_t *block = cli_stream_head(stream, &bytes);
    assert(cli_stream_may_begin(stream) && !stream->blocks[place] && !stream->gathers[place]);
    statuses[0] = failed ? STATUS_FAILED : (int64_t)written_bytes;
    if (lh_broadcast(stream->group, block, bytes, LH_U8, 0, &stream->options, &stream->blocks[place]) ||
        lh_allgather(stream->group, statuses, statuses + 1, 1, LH_I64, NULL, &stream->gathers[place]))
        return cli_exchange_call_failed(stream->group, fault);
    stream->begun++;
    stream->begun_bytes += bytes;
    return true;
}

/* ---- taking ------------------------------------------------------------------------------------------ */

bool cli_stream_is_done(const struct cli_stream *stream)
{
    return stream->taken_bytes == stream->size_bytes;
}

static int wait_for(struct cli_stream *stream, struct lh_collective *op, const char **schedule,
                    struct cli_fault *fault)
{
    struct lh_collective_result result;
    int pending = lh_collective_wait(op, CLI_SLICE_NS, &result);
    if (cli_stopped()) {
        cli_exchange_stopped(stream->group, fault);
        return -LH_ECANCELED;
    }
    if (pending == -LH_ETIMEDOUT)
        return pending;
    if (pending) {
        cli_exchange_call_failed(stream->group, fault);
        return pending;
    }
    if (result.error)
        cli_exchange_failed(stream->group, &result, fault);
    else if (schedule)
        *schedule = result.schedule;
    return result.error == -LH_ETIMEDOUT ? -LH_ECANCELED : result.error;
}

int cli_stream_wait(struct cli_stream *stream, struct cli_fault *fault)
{
    uint32_t place = stream->taken % CLI_WINDOW;
    assert(stream->taken < stream->begun);
    int code = wait_for(stream, stream->blocks[place], &stream->schedule, fault);
    return code ? code : wait_for(stream, stream->gathers[place], NULL, fault);
}

const uint8_t *cli_stream_tail(const struct cli_stream *stream, size_t *bytes)
{
    *bytes = block_bytes(stream, stream->taken_bytes);
    return stream->memory + stream->taken % CLI_WINDOW * CLI_BLOCK_BYTES;
}

static bool is_position(const struct cli_stream *stream, int64_t status)
{
    return status >= 0 && (uint64_t)status <= stream->size_bytes;
}

uint32_t cli_stream_failed_rank(const struct cli_stream *stream)
{
    const int64_t *statuses = statuses_of(stream, stream->taken) + 1;
    for (uint32_t rank = 0; rank < stream->ranks; rank++)
        if (!is_position(stream, statuses[rank]))
            return rank;
    return LH_NO_RANK;
}

void cli_stream_take(struct cli_stream *stream)
{
    uint32_t place = stream->taken % CLI_WINDOW;
    const int64_t *statuses = statuses_of(stream, stream->taken) + 1;
    lh_collective_free(stream->blocks[place]);
    lh_collective_free(stream->gathers[place]);
    stream->blocks[place] = stream->gathers[place] = NULL;
    for (uint32_t rank = 0; rank < stream->ranks; rank++)
        if (is_position(stream, statuses[rank]))
            stream->positions[rank] = statuses[rank];
    stream->taken_bytes += block_bytes(stream, stream->taken_bytes);
    stream->taken++;
}
