/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_blocks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <xxhash.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/units.h>

#include "cli/options/option_values.h"
#include "cli/terminal/terminal.h"

/* ---- block ring ------------------------------------------------------------------------------------ */

/* Blocks beyond the window: read ahead or written behind. */
#define CLI_RING_EXTRA 4
#define PIPE_BLOCKS    7u

static size_t memory_bytes(const struct cli_block_ring *ring)
{
    return (size_t)ring->blocks * CLI_BLOCK_BYTES;
}

/* Memory that is not touched is not used: a small file takes a small part of the ring. */
static int allocate(struct cli_block_ring *ring)
{
    void *memory = mmap(NULL, memory_bytes(ring), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -LH_ENOMEM;
    /* Else each page of the first round through the ring costs a fault. */
    madvise(memory, memory_bytes(ring), MADV_HUGEPAGE);
    ring->memory = memory;
    ring->requests = calloc(ring->blocks, sizeof *ring->requests);
    return ring->requests ? 0 : -LH_ENOMEM;
}

int cli_block_ring_open(struct cli_block_ring *ring, struct lh_connection *connection, uint32_t blocks)
{
    struct lh_attr attr;
    int code = lh_connection_attr(connection, &attr);
    if (code)
        return code;
    uint64_t window = (attr.window_bytes + CLI_BLOCK_BYTES - 1) / CLI_BLOCK_BYTES + CLI_RING_EXTRA;
    /* Requests for control messages are in flight as well. */
    uint64_t maximum = LH_REQUESTS_MAX / 2, wanted = blocks ? blocks : window;
    *ring = (struct cli_block_ring){.connection = connection,
                                    .blocks = (uint32_t)(wanted < maximum ? wanted : maximum)};
    code = allocate(ring);
    if (!code)
        code = lh_register(connection, ring->memory, memory_bytes(ring), &ring->registered);
    if (code)
        cli_block_ring_close(ring);
    return code;
}

uint32_t cli_pipe_blocks(struct lh_connection *connection)
{
    struct lh_attr attr;
    return !lh_connection_attr(connection, &attr) && attr.window_bytes > CLI_WINDOW_DEFAULT ? 0
                                                                                            : PIPE_BLOCKS;
}

void cli_block_ring_close(struct cli_block_ring *ring)
{
    while (ring->requests && !cli_block_ring_empty(ring))
        cli_block_ring_release(ring);
    if (ring->registered)
        lh_deregister(ring->registered);
    free(ring->requests);
    if (ring->memory)
        munmap(ring->memory, memory_bytes(ring));
    *ring = (struct cli_block_ring){0};
}

int cli_block_ring_full(const struct cli_block_ring *ring)
{
    return ring->head - ring->tail == ring->blocks;
}

int cli_block_ring_empty(const struct cli_block_ring *ring)
{
    return ring->head == ring->tail;
}

static uint8_t *block(const struct cli_block_ring *ring, uint64_t index)
{
    return ring->memory + (size_t)(index % ring->blocks) * CLI_BLOCK_BYTES;
}

uint8_t *cli_block_ring_head(const struct cli_block_ring *ring)
{
    return block(ring, ring->head);
}

uint8_t *cli_block_ring_tail(const struct cli_block_ring *ring)
{
    return block(ring, ring->tail);
}

static struct lh_request **request(const struct cli_block_ring *ring, uint64_t index)
{
    return &ring->requests[index % ring->blocks];
}

int cli_block_ring_send(struct cli_block_ring *ring, size_t bytes)
{
    assert(!cli_block_ring_full(ring) && bytes <= CLI_BLOCK_BYTES);
    int code = lh_send(ring->connection, cli_block_ring_head(ring), bytes, ring->registered,
                       request(ring, ring->head));
    ring->head += !code;
    return code;
}

int cli_block_ring_post(struct cli_block_ring *ring)
{
    assert(!cli_block_ring_full(ring));
    int code = lh_recv(ring->connection, cli_block_ring_head(ring), CLI_BLOCK_BYTES, ring->registered,
                       request(ring, ring->head));
    ring->head += !code;
    return code;
}

int cli_block_ring_wait(struct cli_block_ring *ring, lh_time timeout_ns, struct lh_result *result)
{
    assert(!cli_block_ring_empty(ring));
    return lh_wait(*request(ring, ring->tail), timeout_ns, result);
}

void cli_block_ring_cancel(struct cli_block_ring *ring)
{
    for (uint64_t i = ring->tail; i < ring->head; i++)
        lh_cancel(*request(ring, i));
}

void cli_block_ring_release(struct cli_block_ring *ring)
{
    assert(!cli_block_ring_empty(ring));
    struct lh_request **done = request(ring, ring->tail);
    lh_request_free(*done);
    *done = NULL;
    ring->tail++;
}

/* ---- digest ---------------------------------------------------------------------------------------- */

int cli_digest_open(struct cli_digest *digest)
{
    digest->state = XXH3_createState();
    if (!digest->state)
        return -LH_ENOMEM;
    cli_digest_reset(digest);
    return 0;
}

void cli_digest_close(struct cli_digest *digest)
{
    XXH3_freeState(digest->state);
    digest->state = NULL;
}

void cli_digest_reset(struct cli_digest *digest)
{
    XXH3_128bits_reset(digest->state);
}

void cli_digest_add(struct cli_digest *digest, const void *data, size_t bytes)
{
    XXH3_128bits_update(digest->state, data, bytes);
}

void cli_digest_copy(struct cli_digest *to, const struct cli_digest *from)
{
    XXH3_copyState(to->state, from->state);
}

void cli_digest_get(const struct cli_digest *digest, uint8_t out[CLI_DIGEST_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest->state));
    memcpy(out, canonical.digest, CLI_DIGEST_BYTES);
}

void cli_digest_of(const void *data, size_t bytes, uint8_t out[CLI_DIGEST_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
    memcpy(out, canonical.digest, CLI_DIGEST_BYTES);
}

char *cli_digest_text(const uint8_t digest[CLI_DIGEST_BYTES], char out[CLI_DIGEST_TEXT_MAX])
{
    for (unsigned i = 0; i < CLI_DIGEST_BYTES; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", digest[i]);
    return out;
}

/* ---- attributes ------------------------------------------------------------------------------------ */

#define KNOWN       0x80000000u
#define MODES       0777u
#define NS_PER_S    1000000000
#define SECONDS_MIN (-((int64_t)1 << 31))   /* 1901, the oldest that file systems keep */
#define SECONDS_MAX ((int64_t)253402300799) /* 9999-12-31, the last with four digits */

struct cli_file_attributes cli_file_attributes_of(mode_t mode, struct timespec written)
{
    struct cli_file_attributes attributes = {.known = true, .mode = mode & MODES, .written = written};
    if (written.tv_sec < SECONDS_MIN)
        attributes.written = (struct timespec){.tv_sec = SECONDS_MIN};
    if (written.tv_sec > SECONDS_MAX)
        attributes.written = (struct timespec){.tv_sec = SECONDS_MAX};
    return attributes;
}

void cli_file_attributes_encode(const struct cli_file_attributes *attributes, uint8_t out[CLI_DIGEST_BYTES])
{
    assert((attributes->mode & ~MODES) == 0 && attributes->written.tv_nsec < NS_PER_S);
    cli_put_u64(out, (uint64_t)attributes->written.tv_sec);
    cli_put_u32(out + 8, (uint32_t)attributes->written.tv_nsec);
    cli_put_u32(out + 12, (attributes->known ? KNOWN : 0) | attributes->mode);
}

int cli_file_attributes_decode(const uint8_t in[CLI_DIGEST_BYTES], struct cli_file_attributes *attributes)
{
    static const uint8_t none[CLI_DIGEST_BYTES];
    int64_t seconds = (int64_t)cli_get_u64(in);
    uint32_t nanoseconds = cli_get_u32(in + 8), mode = cli_get_u32(in + 12);
    *attributes = (struct cli_file_attributes){.known = false};
    if (!memcmp(in, none, sizeof none))
        return 0;
    if ((mode & ~MODES) != KNOWN || nanoseconds >= NS_PER_S || seconds < SECONDS_MIN ||
        seconds > SECONDS_MAX)
        return -LH_EPROTOCOL;
    *attributes = (struct cli_file_attributes){
        .known = true, .mode = mode & MODES, .written = {.tv_sec = seconds, .tv_nsec = nanoseconds}};
    return 0;
}

/* ---- summary --------------------------------------------------------------------------------------- */

/* A transfer of fewer round trips is over before it could fill a path. */
#define FEW_ROUND_TRIPS 20u

/* What limited it. `send` chooses neither the size of messages nor how many are in flight: what the library
 * advises there is of no use. */
void cli_file_limit_print(const struct lh_bottleneck_report *report, lh_time elapsed_ns)
{
    char words[LH_BOTTLENECK_WORDS_MAX], rtt[LH_FORMAT_MAX];
    if (report->bottleneck == LH_BOTTLENECK_NONE)
        return;
    bool brief = report->rtt_ns > 0 && elapsed_ns / report->rtt_ns < FEW_ROUND_TRIPS;
    lh_bottleneck_words(report, words, sizeof words);
    if (report->bottleneck == LH_BOTTLENECK_APPLICATION && brief)
        snprintf(words, sizeof words,
                 "the round trip (%s: a file of this size is sent before it fills the path)",
                 lh_format_time(cli_seconds(report->rtt_ns), rtt, sizeof rtt));
    else if (report->bottleneck == LH_BOTTLENECK_APPLICATION)
        snprintf(words, sizeof words,
                 "reading the file (nothing to send for %.0f %% of the time: storage or CPU of this host)",
                 100 * report->share);
    printf("limited by: %s\n", words);
}

void cli_file_summary_print(const struct cli_file_summary *summary)
{
    char size[LH_FORMAT_MAX], resumed[LH_FORMAT_MAX], elapsed[LH_FORMAT_MAX], rate[LH_FORMAT_MAX];
    char digest[CLI_DIGEST_TEXT_MAX];
    double seconds = cli_seconds(summary->elapsed_ns);
    uint64_t moved = summary->size_bytes - summary->resumed_bytes;
    lh_format_size(summary->size_bytes, size, sizeof size);
    lh_format_size(summary->resumed_bytes, resumed, sizeof resumed);
    lh_format_time(seconds, elapsed, sizeof elapsed);
    lh_format_rate(seconds > 0 ? 8 * (double)moved / seconds : 0, rate, sizeof rate);
    printf("%s %s: %s", summary->done, summary->name, size);
    if (summary->resumed_bytes)
        printf(" (%s %s)", resumed, summary->replaced ? "unchanged" : "resumed");
    printf(" in %s", elapsed);
    if (moved > 0 && seconds > 0)
        printf(", %s", rate);
    if (summary->stats && summary->stats->tx_packets)
        printf(", %.2g %% retransmitted",
               100 * (double)summary->stats->tx_retransmitted_packets / (double)summary->stats->tx_packets);
    if (summary->stats && summary->stats->parity_chunks_sent)
        printf(", %" PRIu64 " parity chunk%s", summary->stats->parity_chunks_sent,
               cli_plural((double)summary->stats->parity_chunks_sent));
    if (summary->recovered)
        printf(", %" PRIu64 " chunk%s recovered", summary->recovered,
               cli_plural((double)summary->recovered));
    printf(", xxh3-128 %s\n", cli_digest_text(summary->digest, digest));
    if (moved && summary->bottleneck)
        cli_file_limit_print(summary->bottleneck, summary->elapsed_ns);
    cli_output_flush();
}

void cli_file_fate(uint64_t arrived_bytes, uint64_t kept_bytes, uint64_t size_bytes,
                   char out[CLI_FILE_FATE_MAX])
{
    char part[LH_FORMAT_MAX], size[LH_FORMAT_MAX];
    lh_format_size(kept_bytes ? kept_bytes : arrived_bytes, part, sizeof part);
    lh_format_size(size_bytes, size, sizeof size);
    out[0] = 0;
    if (kept_bytes)
        snprintf(out, CLI_FILE_FATE_MAX, "; kept %s of %s (--resume continues)", part, size);
    else if (arrived_bytes)
        snprintf(out, CLI_FILE_FATE_MAX, "; discarded %s of %s (--resume keeps it)", part, size);
}

void cli_file_note_replaced(const char *name, uint64_t found_bytes)
{
    char found[LH_FORMAT_MAX];
    if (found_bytes < CLI_BLOCK_BYTES)
        return;
    lh_format_size(found_bytes, found, sizeof found);
    cli_note("%s: replacing %s of an unfinished transfer (--resume continues one)", name, found);
}

void cli_file_note_other_size(const char *name, uint64_t unfinished_bytes, uint64_t size_bytes)
{
    cli_note("%s: the file has changed since the unfinished transfer: %" PRIu64 " bytes then, %" PRIu64
             " now; starting from the beginning",
             name, unfinished_bytes, size_bytes);
}

void cli_file_note_other_digest(const char *name, uint64_t compared_bytes)
{
    char compared[LH_FORMAT_MAX];
    lh_format_size(compared_bytes, compared, sizeof compared);
    cli_note("%s: the file has changed since the unfinished transfer: its first %s have another digest; "
             "starting from the beginning",
             name, compared);
}

void cli_file_note_attributes_lost(const char *name)
{
    cli_note("%s: permissions and time not preserved by the file system", name);
}

/* ---- errors of connections ------------------------------------------------------------------------- */

static const char *predicate_of(int code)
{
    switch (-code) {
    case LH_ECLOSED:
    case LH_ECANCELED:
        return "closed the connection";
    case LH_ETIMEDOUT:
        return "is stalled";
    case LH_EPROTOCOL:
        return "violated the file protocol";
    case LH_EVERSION:
        return "uses another version of the file protocol";
    default:
        return NULL;
    }
}

const char *cli_file_strerror(struct lh_connection *connection, int code, const char *other)
{
    static _Thread_local char text[96];
    const char *what = predicate_of(code);
    if (!what)
        return cli_connection_strerror(connection, code);
    snprintf(text, sizeof text, "the %s %s", other, what);
    return text;
}
