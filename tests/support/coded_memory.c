/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/coded_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *filled(size_t bytes, struct lh_prng *prng)
{
    uint8_t *memory = malloc(bytes > 0 ? bytes : 1);
    assert(memory != NULL);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (uint8_t)lh_prng_below(prng, 256);
    return memory;
}

void coded_memory_start(struct coded_memory *memory, const struct lh_scheme_coding *coding,
                        const uint8_t *params, uint32_t chunks, uint32_t chunk_bytes, struct lh_prng *prng)
{
    assert(chunk_bytes >= 8);
    uint64_t bytes = (uint64_t)chunks * chunk_bytes;
    if (chunks > 0)
        bytes -= lh_prng_below(prng, chunk_bytes);
    memset(memory, 0, sizeof(*memory));
    memory->coding = coding;
    memory->extra_chunks = coding->extra_chunks(params, chunks);
    memory->message = filled(bytes, prng);
    memory->bitmap = calloc(memory->extra_chunks + 1, 1);
    assert(memory->bitmap != NULL);
    size_t extra_bytes = (size_t)memory->extra_chunks * chunk_bytes;
    memory->fresh = filled(extra_bytes, prng);
    struct lh_coding common = {.chunks = chunks, .chunk_bytes = chunk_bytes, .bytes = bytes};
    memcpy(common.params, params, LH_SCHEME_PARAMS);
    memory->sender = common;
    memory->sender.message = memory->message;
    memory->sender.extra = filled(extra_bytes, prng);
    memcpy(memory->sender.extra, memory->fresh, extra_bytes);
    memory->receiver = common;
    memory->receiver.room = filled(bytes, prng);
    memory->receiver.extra = filled(extra_bytes, prng);
}

void coded_memory_end(struct coded_memory *memory)
{
    free(memory->message);
    free(memory->bitmap);
    free(memory->fresh);
    free(memory->sender.extra);
    free(memory->receiver.room);
    free(memory->receiver.extra);
}

static size_t chunk_length(const struct coded_memory *memory, uint32_t chunk)
{
    const struct lh_coding *coding = &memory->sender;
    uint64_t left = coding->bytes - (uint64_t)chunk * coding->chunk_bytes;
    return left < coding->chunk_bytes ? left : coding->chunk_bytes;
}

const uint8_t *coded_memory_chunk(const struct coded_memory *memory, uint32_t chunk)
{
    uint32_t bytes = memory->sender.chunk_bytes;
    if (chunk < memory->sender.chunks)
        return memory->message + (size_t)chunk * bytes;
    size_t at = (size_t)(chunk - memory->sender.chunks) * bytes;
    assert(memcmp(memory->sender.extra + at, memory->fresh + at, bytes) != 0);
    return memory->sender.extra + at;
}

void coded_memory_encode(struct coded_memory *memory, uint32_t group, uint32_t first_row, uint32_t rows)
{
    assert(group < memory->coding->groups(memory->sender.params, memory->sender.chunks));
    memory->coding->encode(&memory->sender, group, first_row, rows);
}

void coded_memory_arrive(struct coded_memory *memory, uint32_t chunk, const uint8_t *data)
{
    uint32_t bytes = memory->receiver.chunk_bytes;
    if (chunk < memory->receiver.chunks) {
        memcpy(memory->receiver.room + (size_t)chunk * bytes, data, chunk_length(memory, chunk));
        return;
    }
    uint32_t place = chunk - memory->receiver.chunks;
    assert(place < memory->extra_chunks);
    memcpy(memory->receiver.extra + (size_t)place * bytes, data, bytes);
}

uint32_t coded_memory_decode(struct coded_memory *memory, const uint8_t *chunk_bitmap)
{
    const struct lh_coding *coding = &memory->receiver;
    uint32_t groups = memory->coding->groups(coding->params, coding->chunks);
    uint32_t recovered = 0;
    for (uint32_t group = 0; group < groups; group++)
        recovered += memory->coding->decode(coding, group, chunk_bitmap, memory->bitmap);
    assert(memcmp(coding->room, memory->message, coding->bytes) == 0);
    return recovered;
}
