/* SPDX-License-Identifier: BSD-3-Clause */
#include "message_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/prng.h"

#define PERIOD_BYTES ((size_t)1021 * 4096)
#define CLEAR        0xA5

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* A file of one period, over and over. */
static uint8_t *map_repeated(size_t bytes)
{
    int file = memfd_create("bench", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)PERIOD_BYTES) != 0)
        die("memfd");
    uint8_t *range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        die("mmap");
    for (size_t at = 0; at < bytes; at += PERIOD_BYTES) {
        size_t part = bytes - at < PERIOD_BYTES ? bytes - at : PERIOD_BYTES;
        if (mmap(range + at, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
            die("mmap");
    }
    close(file);
    return range;
}

static uint8_t *map(size_t bytes)
{
    if (bytes > SOLID_BYTES)
        return map_repeated(bytes);
    uint8_t *range = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED)
        die("mmap");
    return range;
}

struct message_memory message_memory_open(size_t bytes)
{
    struct message_memory memory = {.bytes = bytes};
    memory.from = map(bytes);
    memory.to = map(bytes);
    memory.distinct_bytes = bytes > SOLID_BYTES ? PERIOD_BYTES : bytes;
    struct lh_prng prng;
    lh_prng_seed(&prng, bytes);
    for (size_t i = 0; i + 8 <= memory.distinct_bytes; i += 8) {
        uint64_t word = lh_prng_next(&prng);
        memcpy(memory.from + i, &word, 8);
    }
    return memory;
}

void message_memory_close(struct message_memory *memory)
{
    munmap(memory->from, memory->bytes);
    munmap(memory->to, memory->bytes);
}

static size_t distinct(const struct message_memory *memory, size_t bytes)
{
    return bytes < memory->distinct_bytes ? bytes : memory->distinct_bytes;
}

void message_memory_clear(struct message_memory *memory, size_t bytes)
{
    memset(memory->to, CLEAR, distinct(memory, bytes));
}

bool message_memory_same(const struct message_memory *memory, size_t bytes)
{
    return memcmp(memory->from, memory->to, distinct(memory, bytes)) == 0;
}
