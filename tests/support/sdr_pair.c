/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/sdr_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define WORLD "sdr-pair"

static void open_end(struct sdr_pair_end *end, uint32_t host, const struct sdr_pair_options *options)
{
    char device[FABRIC_NAME_MAX];
    struct lh_context_attr attr = {.channels = options->channels ? options->channels : 2,
                                   .workers = LH_SDR_NO_WORKERS};
    struct sdr_qp_attr qp_attr = {.max_log_num_msgs = options->slots_log ? options->slots_log : 2};
    struct lh_qp_attr more = {
        .mtu_bytes = options->mtu_bytes ? options->mtu_bytes : SDR_PAIR_MTU,
        .slot_bytes = options->slot_bytes ? options->slot_bytes : 256 * 1024,
        .chunk_bytes = options->chunk_bytes ? options->chunk_bytes : 4 * SDR_PAIR_MTU,
        .immediate_message_bits = options->message_bits,
        .immediate_fragment_bits = options->fragment_bits,
        .rate_bps = options->rate_bps,
        .congestion = options->congestion,
    };
    snprintf(device, sizeof device, "sim:%s/%u", WORLD, host);
    assert_int_equal(lh_sdr_context_create(device, &attr, &end->context), 0);
    assert_int_equal(lh_sdr_qp_create(end->context, &qp_attr, &more, &end->qp), 0);
    end->arena = malloc(SDR_PAIR_ARENA_BYTES);
    assert_non_null(end->arena);
    memset(end->arena, SDR_PAIR_BLANK, SDR_PAIR_ARENA_BYTES);
    end->mr = sdr_mr_reg(end->context, end->arena, SDR_PAIR_ARENA_BYTES, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(end->mr);
    assert_int_equal(sdr_mr_lkey_get(end->mr, &end->lkey), SDR_SUCCESS);
}

static void connect_to(struct sdr_qp *qp, struct sdr_qp *peer)
{
    uint8_t info[QP_INFO_BYTES_MAX];
    size_t bytes;
    assert_int_equal(sdr_qp_info_size_get(peer, &bytes), SDR_SUCCESS);
    assert_true(bytes <= sizeof info);
    assert_int_equal(sdr_qp_info_get(peer, info), SDR_SUCCESS);
    assert_int_equal(sdr_qp_connect(qp, info), SDR_SUCCESS);
}

void sdr_pair_open(struct sdr_pair *pair, const struct sdr_pair_options *options)
{
    struct lh_prng prng;
    *pair = (struct sdr_pair){.world = sim_world_create(WORLD, options->seed, &options->link)};
    assert_non_null(pair->world);
    for (uint32_t i = 0; i < 2; i++)
        open_end(&pair->ends[i], i, options);
    connect_to(pair->ends[0].qp, pair->ends[1].qp);
    connect_to(pair->ends[1].qp, pair->ends[0].qp);
    lh_prng_seed(&prng, options->seed ^ 0x5DA7A);
    for (uint32_t i = 0; i < SDR_PAIR_ARENA_BYTES; i += 8) {
        uint64_t word = lh_prng_next(&prng);
        memcpy(pair->ends[SDR_PAIR_TX].arena + i, &word, 8);
    }
}

void sdr_pair_close(struct sdr_pair *pair)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct sdr_pair_end *end = &pair->ends[i];
        assert_int_equal(sdr_qp_destroy(end->qp), SDR_SUCCESS);
        assert_int_equal(sdr_mr_dereg(end->mr), SDR_SUCCESS);
        assert_int_equal(sdr_context_destroy(end->context), SDR_SUCCESS);
        free(end->arena);
    }
    sim_world_destroy(pair->world);
}

/* Both ends, until nothing is due now. Returns when something will be. */
static lh_time settle(struct sdr_pair *pair)
{
    lh_time now = sim_world_now(pair->world);
    for (uint32_t turn = 0; turn < 100000; turn++) {
        lh_time soonest = LH_TIME_NEVER;
        for (uint32_t i = 0; i < 2; i++) {
            lh_time next = LH_TIME_NEVER;
            assert_int_equal(lh_sdr_progress(pair->ends[i].context, &next), 0);
            soonest = next < soonest ? next : soonest;
        }
        if (soonest > now)
            return soonest;
    }
    fail_msg("something is due for ever at %llu ns", (unsigned long long)now);
    return 0;
}

void sdr_pair_run(struct sdr_pair *pair, lh_time span_ns)
{
    lh_time end = sim_world_now(pair->world) + span_ns;
    for (;;) {
        lh_time next = settle(pair);
        lh_time event = sim_world_next_event(pair->world);
        next = event < next ? event : next;
        if (next > end)
            break;
        sim_world_advance(pair->world, next);
    }
    sim_world_advance(pair->world, end);
    settle(pair);
}

int sdr_pair_recv(struct sdr_pair *pair, uint32_t offset, uint32_t bytes, struct sdr_recv_handle **handle)
{
    struct sdr_pair_end *end = &pair->ends[SDR_PAIR_RX];
    struct sdr_recv_wr wr = {
        .max_length = bytes, .lkey = end->lkey, .address = (uint64_t)(uintptr_t)(end->arena + offset)};
    return sdr_recv_post(end->qp, &wr, handle);
}

int sdr_pair_send(struct sdr_pair *pair, uint32_t offset, uint32_t bytes, uint32_t immediate,
                  struct sdr_send_handle **handle)
{
    struct sdr_pair_end *end = &pair->ends[SDR_PAIR_TX];
    struct sdr_send_wr wr = {
        .opcode = SDR_WR_WRITE_WITH_IMM,
        .imm_value = immediate,
        .length = bytes,
        .lkey = end->lkey,
        .local_addr = (uint64_t)(uintptr_t)(end->arena + offset),
    };
    return sdr_send_post(end->qp, &wr, handle);
}

uint32_t sdr_pair_finish(struct sdr_pair *pair, struct sdr_send_handle *handle)
{
    struct sdr_send_status status = {.flags = UINT32_MAX};
    int done = 0;
    for (uint32_t turn = 0; turn < 100000 && !done; turn++) {
        sdr_pair_run(pair, turn ? 10 * LH_NS_PER_US : 0);
        sdr_send_poll(handle, &done, &status);
    }
    assert_true(done);
    return status.flags;
}

struct lh_stats sdr_pair_stats(const struct sdr_pair *pair, uint32_t end)
{
    struct lh_stats stats;
    assert_int_equal(lh_sdr_stats(pair->ends[end].qp, &stats), 0);
    return stats;
}

bool sdr_pair_same(const struct sdr_pair *pair, uint32_t at, uint32_t from, uint32_t bytes)
{
    return memcmp(pair->ends[SDR_PAIR_RX].arena + at, pair->ends[SDR_PAIR_TX].arena + from, bytes) == 0;
}

bool sdr_pair_blank(const struct sdr_pair *pair, uint32_t at, uint32_t bytes)
{
    const uint8_t *arena = pair->ends[SDR_PAIR_RX].arena;
    for (uint32_t i = 0; i < bytes; i++)
        if (arena[at + i] != SDR_PAIR_BLANK)
            return false;
    return true;
}

uint32_t sdr_pair_chunks(struct sdr_recv_handle *handle)
{
    uint8_t *bitmap;
    size_t count;
    uint32_t set = 0;
    assert_int_equal(sdr_recv_bitmap_get(handle, &bitmap, &count), SDR_SUCCESS);
    for (size_t i = 0; i < count; i++)
        set += bitmap[i] != 0;
    return set;
}
