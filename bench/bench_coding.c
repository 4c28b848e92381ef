/*
 * How fast the erasure codes are: (32, 8) over 128 MiB of data in chunks of 64 KiB, and over one group of
 * 16 KiB chunks that stays in the cache; beside ISA-L with the same matrix, and what the memory gives.
 *
 * All cases take turns, so that what else runs on the machine hits all of them; medians. By CPU time; one
 * and two threads are compared by wall time.
 *
 * usage: bench_coding [--small-pages] [--kernel NAME]
 * {"kernel":…,"pages":…,"runs":…,"read":…,…}                          GB/s of data; what CASES lists
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/code.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>

#include "base/bytes.h"
#include "report.h"

#define K           32u
#define M           8u
#define DATA_BYTES  ((size_t)128 << 20)
#define CHUNK_BYTES ((size_t)64 << 10)
#define GROUPS      (DATA_BYTES / (K * CHUNK_BYTES))
/* In the cache: one group, again and again. */
#define CACHED_CHUNK_BYTES ((size_t)16 << 10)
#define CACHED_ROUNDS      50u
#define HUGE_PAGE_BYTES    ((size_t)2 << 20)
#define RUNS               7u

struct group {
    const void *data[K];
    void *chunks[K + M]; /* the same, and parity */
};

static const struct lh_code mds = {LH_CODE_MDS, K, M};
static const struct lh_code xor = {LH_CODE_XOR, K, M};
static uint8_t isal_tables[32 * K * M];
static uint8_t *data, *parity;
static struct group groups[GROUPS], cached;
static const void *all_data[GROUPS * K];
static void *all_parity[GROUPS * M];
static struct lh_encoder *one_thread, *two_threads;
static volatile uint64_t sink;

static void *memory(size_t bytes, int advice)
{
    uint8_t *at =
        mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    at += HUGE_PAGE_BYTES - (uintptr_t)at % HUGE_PAGE_BYTES;
    madvise(at, bytes, advice);
    return at;
}

static void place(struct group *group, uint8_t *data_at, uint8_t *parity_at, size_t chunk_bytes)
{
    for (uint32_t j = 0; j < K; j++)
        group->data[j] = group->chunks[j] = data_at + j * chunk_bytes;
    for (uint32_t i = 0; i < M; i++)
        group->chunks[K + i] = parity_at + i * chunk_bytes;
}

/* The matrix from the library itself: the parity of chunks of which one is 1. */
static void take_matrix(void)
{
    uint8_t ones[K] = {0}, column[M], matrix[M * K];
    const void *in[K];
    void *out[M];
    for (uint32_t j = 0; j < K; j++)
        in[j] = &ones[j];
    for (uint32_t i = 0; i < M; i++)
        out[i] = &column[i];
    for (uint32_t j = 0; j < K; j++) {
        ones[j] = 1;
        lh_encode(&mds, in, out, 1);
        ones[j] = 0;
        for (uint32_t i = 0; i < M; i++)
            matrix[i * K + j] = column[i];
    }
    ec_init_tables(K, M, matrix, isal_tables);
}

static void set_up(int advice)
{
    data = memory(DATA_BYTES, advice);
    parity = memory(DATA_BYTES / K * M, advice);
    for (size_t at = 0; at < DATA_BYTES; at += sizeof(uint64_t)) {
        uint64_t word = (at + 1) * UINT64_C(0x9E3779B97F4A7C15);
        memcpy(data + at, &word, sizeof word);
    }
    memset(parity, 1, DATA_BYTES / K * M);
    for (size_t g = 0; g < GROUPS; g++) {
        place(&groups[g], data + g * K * CHUNK_BYTES, parity + g * M * CHUNK_BYTES, CHUNK_BYTES);
        memcpy(all_data + g * K, groups[g].data, sizeof groups[g].data);
        memcpy(all_parity + g * M, groups[g].chunks + K, M * sizeof(void *));
    }
    place(&cached, data, parity, CACHED_CHUNK_BYTES);
    take_matrix();
    if (lh_encoder_create(0, NULL, &one_thread) != 0 || lh_encoder_create(1, NULL, &two_threads) != 0) {
        fprintf(stderr, "bench_coding: %s\n", lh_last_error());
        exit(1);
    }
}

/* ---- what is measured: each over one group ----------------------------------------------------------- */

static void mds_encode_ours(struct group *group, size_t bytes)
{
    lh_encode(&mds, group->data, group->chunks + K, bytes);
}

static void mds_encode_isal(struct group *group, size_t bytes)
{
    ec_encode_data((int)bytes, K, M, isal_tables, (uint8_t **)group->chunks, (uint8_t **)group->chunks + K);
    lh_vzeroupper();
}

/* 8 data chunks are lost: every fourth. What comes back is what was there. */
static void mds_decode_ours(struct group *group, size_t bytes)
{
    uint8_t present[K + M];
    for (uint32_t i = 0; i < K + M; i++)
        present[i] = i >= K || i % 4 != 1;
    lh_decode(&mds, group->chunks, present, bytes);
}

static void xor_encode_ours(struct group *group, size_t bytes)
{
    lh_encode(&xor, group->data, group->chunks + K, bytes);
}

static void xor_encode_isal(struct group *group, size_t bytes)
{
    for (uint32_t i = 0; i < M; i++) {
        void *chunks[K / M + 1];
        uint32_t count = 0;
        for (uint32_t j = i; j < K; j += M)
            chunks[count++] = group->chunks[j];
        chunks[count++] = group->chunks[K + i];
        xor_gen((int)count, (int)bytes, chunks);
    }
    lh_vzeroupper();
}

static void copy(struct group *group, size_t bytes)
{
    /* As much is written as is read, so the parity is written K / M times. */
    for (uint32_t j = 0; j < K; j++)
        memcpy(group->chunks[K + j % M], group->data[j], bytes);
}

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
read_all(struct group *group, size_t bytes)
{
    for (uint32_t j = 0; j < K; j++) {
        typedef uint64_t vector __attribute__((vector_size(64), aligned(64)));
        const vector *at = group->data[j];
        vector sums[4] = {{0}};
        for (size_t i = 0; i < bytes / sizeof(vector); i += 4)
            for (size_t n = 0; n < 4; n++)
                sums[n] |= at[i + n];
        sums[0] |= sums[1] | sums[2] | sums[3];
        sink = sums[0][0] | sums[0][7];
    }
}

struct bench_case {
    const char *name;
    void (*run)(struct group *group, size_t bytes); /* or, of all groups: */
    const struct lh_code *code;
    bool cached;
    bool two_threads;
};

static const struct bench_case cases[] = {
    {"read", read_all, NULL, false, false},
    {"copy", copy, NULL, false, false},
    {"mds_encode_isal", mds_encode_isal, NULL, false, false},
    {"mds_encode", mds_encode_ours, NULL, false, false},
    {"mds_decode", mds_decode_ours, NULL, false, false},
    {"xor_encode_isal", xor_encode_isal, NULL, false, false},
    {"xor_encode", xor_encode_ours, NULL, false, false},
    {"mds_encode_one_thread", NULL, &mds, false, false},
    {"mds_encode_two_threads", NULL, &mds, false, true},
    {"xor_encode_one_thread", NULL, &xor, false, false},
    {"xor_encode_two_threads", NULL, &xor, false, true},
    {"cached_read", read_all, NULL, true, false},
    {"cached_mds_encode_isal", mds_encode_isal, NULL, true, false},
    {"cached_mds_encode", mds_encode_ours, NULL, true, false},
    {"cached_mds_decode", mds_decode_ours, NULL, true, false},
    {"cached_xor_encode_isal", xor_encode_isal, NULL, true, false},
    {"cached_xor_encode", xor_encode_ours, NULL, true, false},
};
#define CASES (sizeof cases / sizeof cases[0])

/* GB/s of data. */
static double measure(const struct bench_case *one)
{
    /* Of the thread: what else runs on this core is not counted, but what it does to memory is. */
    const clockid_t clock = one->code ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    double begin = report_seconds(clock);
    double bytes = (double)DATA_BYTES;
    if (one->code) {
        lh_encoder_encode(one->two_threads ? two_threads : one_thread, one->code, GROUPS, all_data,
                          all_parity, CHUNK_BYTES);
    } else if (one->cached) {
        for (unsigned i = 0; i < CACHED_ROUNDS; i++)
            one->run(&cached, CACHED_CHUNK_BYTES);
        bytes = (double)CACHED_ROUNDS * K * CACHED_CHUNK_BYTES;
    } else {
        for (size_t g = 0; g < GROUPS; g++)
            one->run(&groups[g], CHUNK_BYTES);
    }
    return bytes / (report_seconds(clock) - begin) * 1e-9;
}

/* Ours and ISA-L's must have done the same. */
static void compare(void (*ours)(struct group *, size_t), void (*theirs)(struct group *, size_t),
                    const char *what)
{
    static uint8_t kept[M * CHUNK_BYTES];
    theirs(&groups[1], CHUNK_BYTES);
    memcpy(kept, groups[1].chunks[K], sizeof kept);
    memset(groups[1].chunks[K], 0, sizeof kept);
    ours(&groups[1], CHUNK_BYTES);
    if (memcmp(kept, groups[1].chunks[K], sizeof kept) != 0) {
        fprintf(stderr, "bench_coding: %s: not what ISA-L gives\n", what);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    bool small_pages = false;
    for (int i = 1; i < argc; i++) {
        small_pages |= strcmp(argv[i], "--small-pages") == 0;
        if (i + 1 < argc && strcmp(argv[i], "--kernel") == 0 && lh_code_kernel_use(argv[i + 1]) != 0) {
            fprintf(stderr, "bench_coding: %s\n", lh_last_error());
            return 2;
        }
    }
    set_up(small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    compare(mds_encode_ours, mds_encode_isal, "Reed-Solomon");
    compare(xor_encode_ours, xor_encode_isal, "XOR");
    static double rates[CASES][RUNS];
    for (unsigned run = 0; run < RUNS; run++)
        for (size_t c = 0; c < CASES; c++) {
            /* Decoding needs parity that fits, not what copying or XOR left there. */
            if (cases[c].run == mds_decode_ours)
                measure(&cases[c - 1]);
            rates[c][run] = measure(&cases[c]);
        }
    printf("{\"kernel\":\"%s\",\"pages\":\"%s\",\"runs\":%u", lh_code_kernel(),
           small_pages ? "small" : "huge", RUNS);
    for (size_t c = 0; c < CASES; c++)
        printf(",\"%s\":%.3f", cases[c].name, report_quantile(rates[c], RUNS, 0.5));
    printf("}\n");
    lh_encoder_destroy(one_thread);
    lh_encoder_destroy(two_threads);
    return 0;
}
