/*
 * test_sdr_faults.c - the SDR middleware under faults: late packets, lost control messages, forged ones,
 * and links that lose, double, reorder and damage.
 *
 * Each run follows from its seed, which is printed when something is wrong. The checker knows nothing of
 * the code under test: it compares the arenas, of which the receiver's starts blank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/sdr_pair.h"
#include "wire/roce_packet.h"

#define MTU   SDR_PAIR_MTU
#define CHUNK (4 * MTU)
#define SLOT  (256u * 1024)
#define MS    LH_NS_PER_MS

static struct sdr_pair open_pair(struct sdr_pair_options options)
{
    struct sdr_pair pair;
    options.seed = options.seed ? options.seed : 1;
    sdr_pair_open(&pair, &options);
    sdr_pair_run(&pair, 50 * MS); /* hello, and the first round trip */
    return pair;
}

/* ---- late packets ---- */

static uint64_t unwanted(const struct sdr_pair *pair)
{
    struct lh_stats rx = sdr_pair_stats(pair, SDR_PAIR_RX);
    return rx.rx_late_packets + rx.bad_key;
}

/* The receiver gives up while the packets are on the way, and uses the slot again at once. */
static void test_late_packets_change_nothing(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.link.delay_ns = 10 * MS, .slots_log = 1});
    struct sdr_recv_handle *recv[2], *next;
    struct sdr_send_handle *send;
    uint8_t *bitmap;
    size_t chunks;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv[0]), SDR_SUCCESS);
    assert_int_equal(sdr_pair_recv(&pair, SLOT, SLOT, &recv[1]), SDR_SUCCESS);
    sdr_pair_run(&pair, 50 * MS);
    assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 7, &send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    assert_int_equal(sdr_recv_bitmap_get(recv[0], &bitmap, &chunks), SDR_SUCCESS);
    assert_int_equal(sdr_recv_complete(recv[0]), SDR_SUCCESS);
    assert_int_equal(sdr_pair_recv(&pair, 2 * SLOT, SLOT, &next),
                     SDR_SUCCESS); /* the same slot: the other is in use */
    sdr_pair_run(&pair, 20 * MS);
    struct lh_stats rx = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_int_equal(rx.rx_late_packets, SLOT / MTU);
    assert_int_equal(rx.rx_packets, 0);
    assert_true(sdr_pair_blank(&pair, 0, 3 * SLOT));
    assert_int_equal(sdr_pair_chunks(next), 0);
    uint32_t immediate;
    assert_int_equal(sdr_recv_imm_get(next, &immediate), SDR_RETRY);
    /* The new use is as good as any. */
    assert_int_equal(sdr_pair_send(&pair, SLOT, SLOT, 8, &send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_send(&pair, 2 * SLOT, SLOT, 9, &send), SDR_SUCCESS);
    sdr_pair_run(&pair, 20 * MS);
    assert_int_equal(sdr_pair_chunks(recv[1]), chunks);
    assert_int_equal(sdr_pair_chunks(next), chunks);
    assert_true(sdr_pair_same(&pair, SLOT, SLOT, 2 * SLOT));
    sdr_pair_close(&pair);
}

/* Half of a message is there when the receiver completes: what comes after that changes nothing. */
static void test_early_completion_in_the_middle(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){
        .link = {.delay_ns = 5 * MS, .rate_bps = 100000000, .queue_bytes = 1 << 20}});
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, 50 * MS);
    assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 7, &send), SDR_SUCCESS);
    sdr_pair_run(&pair, 15 * MS);
    uint32_t arrived = lh_sdr_recv_chunks_arrived(recv);
    assert_true(arrived > 5 && arrived < SLOT / CHUNK - 5);
    assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
    static uint8_t before[SLOT];
    memcpy(before, pair.ends[SDR_PAIR_RX].arena, SLOT);
    uint64_t taken = sdr_pair_stats(&pair, SDR_PAIR_RX).rx_packets;
    sdr_pair_run(&pair, 50 * MS);
    assert_memory_equal(before, pair.ends[SDR_PAIR_RX].arena, SLOT);
    struct lh_stats rx = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_int_equal(rx.rx_packets, taken);
    assert_int_equal(rx.rx_packets + rx.rx_late_packets, SLOT / MTU);
    sdr_pair_close(&pair);
}

static uint64_t lost_bytes(const struct sdr_pair *pair)
{
    struct lh_congestion_report report;
    assert_int_equal(lh_sdr_congestion(pair->ends[SDR_PAIR_TX].qp, &report), 0);
    return report.lost_bytes;
}

/* Packets that come after the receiver has completed count as arrived, and not for those before them that are
 * lost: where nothing is reordered, what was lost once stays lost. As long as no report is lost: the one
 * before the receiver completed names its last packet, and the next one would count others with it. */
static void late_packets(uint64_t seed)
{
    struct lh_link_spec link = {
        .delay_ns = 5 * MS, .rate_bps = 100000000, .queue_bytes = 1 << 20, .loss = 2e-2, .seed = seed};
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.link = link, .congestion = "bbr"});
    link.loss = 0;
    sim_world_set_direction(pair.world, SDR_PAIR_RX, SDR_PAIR_TX, &link);
    uint64_t lost = 0;
    for (uint32_t message = 0; message < 8; message++) {
        struct sdr_recv_handle *recv;
        struct sdr_send_handle *send;
        assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
        sdr_pair_run(&pair, 100 * MS);
        assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 7, &send), SDR_SUCCESS);
        sdr_pair_run(&pair, 20 * MS);
        assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
        for (uint32_t tenths = 0; tenths < 500; tenths++) {
            sdr_pair_run(&pair, MS / 10);
            assert_true(lost_bytes(&pair) >= lost);
            lost = lost_bytes(&pair);
        }
    }
    assert_true(lost > 0 && sdr_pair_stats(&pair, SDR_PAIR_RX).rx_late_packets > 100);
    sdr_pair_close(&pair);
}

static void test_late_packets_are_not_the_lost_ones(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        late_packets(seed);
}

/* A slot is used again more often than there are generations while packets of all its uses are on the way.
 */
static void test_generations_wrap(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.link.delay_ns = 20 * MS, .slots_log = 1});
    struct sdr_recv_handle *recv[22];
    struct sdr_send_handle *send;
    /* All are announced (and 22 fit the window) before any packet comes: only the last two stay open. */
    for (uint32_t i = 0; i < 22; i++) {
        assert_int_equal(sdr_pair_recv(&pair, i % 4 * SLOT, SLOT, &recv[i]), SDR_SUCCESS);
        if (i < 20)
            assert_int_equal(sdr_recv_complete(recv[i]), SDR_SUCCESS);
    }
    sdr_pair_run(&pair, 100 * MS);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(sdr_pair_send(&pair, i * 1000, 100 * MTU, i, &send), SDR_SUCCESS);
        assert_int_equal(sdr_pair_finish(&pair, send), 0);
    }
    sdr_pair_run(&pair, 50 * MS);
    assert_int_equal(unwanted(&pair), 20 * 100);
    assert_true(sdr_pair_blank(&pair, 0, 4 * SLOT));
    for (uint32_t i = 20; i < 22; i++) {
        uint32_t immediate;
        assert_int_equal(sdr_pair_chunks(recv[i]), 0);
        assert_int_equal(sdr_recv_imm_get(recv[i], &immediate), SDR_RETRY);
        assert_int_equal(sdr_pair_send(&pair, i * SLOT / 4, SLOT, i, &send), SDR_SUCCESS);
        sdr_pair_run(&pair, 50 * MS);
        assert_int_equal(sdr_pair_chunks(recv[i]), SLOT / CHUNK);
        assert_true(sdr_pair_same(&pair, i % 4 * SLOT, i * SLOT / 4, SLOT));
    }
    assert_int_equal(unwanted(&pair), 20 * 100);
    sdr_pair_close(&pair);
}

/* ---- control messages that get lost ---- */

struct control_fault {
    struct sim_world *world;
    struct lh_prng prng;
    double loss, duplicate;
    lh_time delay_ns; /* of a duplicate: it comes late */
    uint64_t lost;
};

/* Data passes; control is lost, doubled and late. */
static bool spoil_control(void *context, struct sim_datagram *datagram)
{
    struct control_fault *fault = context;
    if (!datagram->control)
        return true;
    if (lh_prng_chance(&fault->prng, fault->duplicate)) {
        struct sim_datagram copy = *datagram;
        copy.at_ns = sim_world_now(fault->world) + 1 + lh_prng_below(&fault->prng, fault->delay_ns);
        assert_int_equal(sim_world_inject(fault->world, &copy), 0);
    }
    bool lost = lh_prng_chance(&fault->prng, fault->loss);
    fault->lost += lost;
    return !lost;
}

/* 60 messages through 4 slots: each in its place and in order, as if no control message were ever lost. */
static void check_lossy_control(uint64_t seed, double loss)
{
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.seed = seed, .link.delay_ns = MS});
    struct control_fault fault = {.world = pair.world, .loss = loss, .duplicate = 0.3, .delay_ns = 30 * MS};
    struct sdr_recv_handle *recv[4];
    uint32_t posted = 0, sent = 0, done = 0;
    lh_prng_seed(&fault.prng, seed);
    sim_world_tap(pair.world, spoil_control, &fault);
    for (uint32_t turn = 0; done < 60; turn++) {
        struct sdr_send_handle *send;
        uint32_t immediate;
        assert_true(turn < 60000);
        while (posted < 60 && posted - done < 4 &&
               sdr_pair_recv(&pair, posted % 4 * SLOT, CHUNK * 3, &recv[posted % 4]) == SDR_SUCCESS)
            posted++;
        if (sent < 60 && sdr_pair_send(&pair, sent * CHUNK, CHUNK * 3, sent, &send) == SDR_SUCCESS) {
            sdr_pair_finish(&pair, send);
            sent++;
        }
        sdr_pair_run(&pair, MS);
        if (done < posted && lh_sdr_recv_chunks_arrived(recv[done % 4]) == 3) {
            assert_int_equal(sdr_recv_imm_get(recv[done % 4], &immediate), SDR_SUCCESS);
            assert_int_equal(immediate, done);
            assert_true(sdr_pair_same(&pair, done % 4 * SLOT, done * CHUNK, 3 * CHUNK));
            assert_int_equal(sdr_recv_complete(recv[done % 4]), SDR_SUCCESS);
            done++;
        }
    }
    struct lh_stats rx = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_true(fault.lost > 0 && rx.cts_repeated > 0);
    assert_int_equal(rx.rx_packets, 60 * 12);
    assert_int_equal(lh_stats_bad_packets(&rx) + rx.rx_late_packets, 0);
    sdr_pair_close(&pair);
}

static void test_control_is_lost_and_doubled(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        check_lossy_control(seed, 0.1 * (double)(1 + seed % 7));
    }
}

/* A cut, then healed: what was announced in the dark is heard of within some round trips. */
static void test_partition_heals(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.link.delay_ns = MS});
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    sim_world_partition(pair.world, true);
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, 3000 * MS);
    assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 1, &send), SDR_RETRY);
    sim_world_partition(pair.world, false);
    sdr_pair_run(&pair, 400 * MS); /* 2^6 overdue times of a 2 ms round trip at most */
    assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 1, &send), SDR_SUCCESS);
    sdr_pair_run(&pair, 10 * MS);
    assert_int_equal(sdr_pair_chunks(recv), SLOT / CHUNK);
    sdr_pair_close(&pair);
}

/* Both directions of one QP are busy: a clear-to-send that the full link refuses goes out as soon as it
 * can. */
static void test_full_link_refuses_control(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair(
        (struct sdr_pair_options){.link = {.delay_ns = MS, .rate_bps = 10000000, .queue_bytes = 4096}});
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    uint8_t words[LH_SDR_MESSAGE_MAX] = {0};
    for (uint32_t i = 0; i < 100; i++) /* 80 ms of this link */
        assert_int_equal(lh_sdr_message_send(pair.ends[SDR_PAIR_RX].qp, words, sizeof words), 0);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, 10 * MS);
    assert_true(sdr_pair_stats(&pair, SDR_PAIR_RX).tx_backpressure > 0);
    assert_int_equal(sdr_pair_send(&pair, 0, MTU, 0, &send), SDR_SUCCESS);
    sdr_pair_close(&pair);
}

/* ---- forged and damaged control messages ---- */

#define HEADER (ROCE_SEND_HEADER_BYTES)

struct forger {
    struct sim_world *world;
    struct lh_prng prng;
    uint32_t first; /* bytes of the control message before this stay as they are */
    uint64_t forged;
};

/* Beside each control message goes a copy with some bytes changed, of which the iCRC is right. */
static bool forge_control(void *context, struct sim_datagram *datagram)
{
    struct forger *forger = context;
    uint8_t bytes[SIM_DATAGRAM_MAX];
    struct sim_datagram copy = *datagram;
    uint32_t end = datagram->bytes - ROCE_ICRC_BYTES;
    if (!datagram->control || end <= HEADER + forger->first)
        return true;
    memcpy(bytes, datagram->data, datagram->bytes);
    copy.data = bytes;
    copy.at_ns = sim_world_now(forger->world) + lh_prng_below(&forger->prng, 3 * MS);
    for (uint64_t changes = 1 + lh_prng_below(&forger->prng, 4); changes > 0; changes--) {
        uint32_t at =
            HEADER + forger->first + (uint32_t)lh_prng_below(&forger->prng, end - HEADER - forger->first);
        bytes[at] = (uint8_t)lh_prng_next(&forger->prng);
    }
    sim_datagram_seal(&copy);
    assert_int_equal(sim_world_inject(forger->world, &copy), 0);
    forger->forged++;
    return true;
}

/* Whatever is forged: what the receiver did not post is never written, and nothing falls over. The forger
 * of first 0 hits versions, lengths and tokens too; that of 8 knows the token, and lies about times and
 * receives. */
static void check_forged(uint64_t seed, uint32_t first)
{
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.seed = seed, .link.delay_ns = MS});
    struct forger forger = {.world = pair.world, .first = first};
    struct sdr_recv_handle *recv[4] = {0};
    lh_prng_seed(&forger.prng, seed);
    sim_world_tap(pair.world, forge_control, &forger);
    for (uint32_t turn = 0; turn < 300; turn++) {
        struct sdr_send_handle *send;
        uint8_t words[LH_SDR_MESSAGE_MAX] = {0};
        size_t bytes;
        uint32_t i = turn % 4;
        if (recv[i])
            assert_int_equal(sdr_recv_complete(recv[i]), SDR_SUCCESS);
        if (sdr_pair_recv(&pair, (2 * i + 1) * SLOT, SLOT / 2 + i, &recv[i]) != SDR_SUCCESS)
            recv[i] = NULL;
        for (uint32_t way = 0; way < 2; way++) {
            lh_sdr_message_send(pair.ends[way].qp, words, 1 + lh_prng_below(&forger.prng, sizeof words));
            while (lh_sdr_message_recv(pair.ends[way].qp, words, &bytes) == 0)
                assert_true(bytes >= 1 && bytes <= sizeof words);
        }
        sdr_pair_send(&pair, turn * CHUNK % (SDR_PAIR_ARENA_BYTES - SLOT), 20 * MTU, turn, &send);
        sdr_pair_run(&pair, 3 * MS);
    }
    assert_true(forger.forged > 300);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(sdr_pair_blank(&pair, 2 * i * SLOT, SLOT));
        assert_true(sdr_pair_blank(&pair, (2 * i + 1) * SLOT + SLOT / 2 + i, SLOT / 2 - i));
    }
    struct lh_stats rx = sdr_pair_stats(&pair, SDR_PAIR_RX), tx = sdr_pair_stats(&pair, SDR_PAIR_TX);
    assert_true(rx.bad_control + tx.bad_control > 0);
    assert_true(first > 0 || rx.bad_token + tx.bad_token > 0);
    sdr_pair_close(&pair);
}

static void test_forged_control(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        check_forged(seed, 0);
        check_forged(seed, 8);
    }
}

/* Where the fields of the first entry lie in a datagram. */
enum {
    ENTRY = HEADER + CONTROL_HEADER_BYTES,
    ENTRY_SLOT = ENTRY + 4,
    ENTRY_GENERATION = ENTRY + 6,
    ENTRY_LENGTH = ENTRY + 8,
};

/* Writes a byte into each clear-to-send that passes. */
static bool spoil_entry(void *context, struct sim_datagram *datagram)
{
    const uint32_t *place = context;
    if (datagram->control && datagram->data[HEADER + 1] == CONTROL_CTS) {
        datagram->data[*place] = 4; /* slots and generations count from 0 to 3; 2^26 bytes are no message */
        sim_datagram_seal(datagram);
    }
    return true;
}

/* A receive that cannot be is not used: the sender would write into another message's fields. */
static void test_impossible_receives_are_refused(void **state)
{
    (void)state;
    const uint32_t places[] = {ENTRY_SLOT, ENTRY_SLOT + 1, ENTRY_GENERATION, ENTRY_LENGTH};
    for (uint32_t i = 0; i < 4; i++) {
        struct sdr_pair pair = open_pair((struct sdr_pair_options){0});
        struct sdr_recv_handle *recv;
        struct sdr_send_handle *send;
        uint32_t place = places[i];
        sim_world_tap(pair.world, spoil_entry, &place);
        assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
        sdr_pair_run(&pair, MS);
        assert_int_equal(sdr_pair_send(&pair, 0, MTU, 0, &send), SDR_RETRY);
        assert_true(sdr_pair_stats(&pair, SDR_PAIR_TX).bad_control > 0);
        sim_world_tap(pair.world, NULL, NULL);
        sdr_pair_run(&pair, 200 * MS);
        assert_int_equal(sdr_pair_send(&pair, 0, MTU, 0, &send), SDR_SUCCESS);
        sdr_pair_close(&pair);
    }
}

/* Beside each message of the layer above goes one that is longer than its reader takes. */
static bool add_longer(void *context, struct sim_datagram *datagram)
{
    uint8_t bytes[SIM_DATAGRAM_MAX] = {0};
    struct sim_datagram longer = *datagram;
    const uint32_t message_bytes = LH_SDR_MESSAGE_MAX + CONTROL_HEADER_BYTES + 4;
    if (!datagram->control || datagram->data[HEADER + 1] != CONTROL_UPPER)
        return true;
    memcpy(bytes, datagram->data, datagram->bytes);
    bytes[HEADER + 2] = (uint8_t)(message_bytes >> 8);
    bytes[HEADER + 3] = (uint8_t)message_bytes;
    longer.data = bytes;
    longer.bytes = HEADER + message_bytes + ROCE_ICRC_BYTES;
    sim_datagram_seal(&longer);
    assert_int_equal(sim_world_inject(context, &longer), 0);
    return true;
}

/* Programs read messages into LH_SDR_MESSAGE_MAX bytes. */
static void test_messages_that_are_too_long_are_refused(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){0});
    struct sdr_qp *listener = pair.ends[SDR_PAIR_RX].qp;
    uint8_t words[LH_SDR_MESSAGE_MAX + 4] = {0};
    size_t bytes;
    struct sdr_qp *speaker = pair.ends[SDR_PAIR_TX].qp;
    assert_int_equal(lh_sdr_message_send(speaker, words, LH_SDR_MESSAGE_MAX + 1), -LH_ERANGE);
    sim_world_tap(pair.world, add_longer, pair.world);
    assert_int_equal(lh_sdr_message_send(speaker, words, 3), 0);
    sdr_pair_run(&pair, 10 * MS);
    assert_int_equal(lh_sdr_message_recv(listener, words, &bytes), 0);
    assert_int_equal(bytes, 3);
    assert_int_equal(lh_sdr_message_recv(listener, words, &bytes), -LH_EAGAIN);
    assert_int_equal(sdr_pair_stats(&pair, SDR_PAIR_RX).bad_control, 1);
    sdr_pair_close(&pair);
}

/* The link takes little at a time: the goodbye waits until all that was said before it is out. */
static void test_goodbye_comes_last(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair(
        (struct sdr_pair_options){.link = {.delay_ns = MS, .rate_bps = 10000000, .queue_bytes = 4096}});
    struct sdr_qp *listener = pair.ends[SDR_PAIR_TX].qp;
    uint8_t words[LH_SDR_MESSAGE_MAX] = {0};
    size_t bytes;
    uint32_t heard = 0;
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(lh_sdr_message_send(pair.ends[SDR_PAIR_RX].qp, words, sizeof words), 0);
    assert_int_equal(lh_sdr_goodbye(pair.ends[SDR_PAIR_RX].qp, LH_ECLOSED), 0);
    for (uint32_t turn = 0; turn < 10000 && lh_sdr_error(listener) == 0; turn++)
        sdr_pair_run(&pair, MS / 10);
    assert_int_equal(lh_sdr_error(listener), -LH_ECLOSED);
    while (lh_sdr_message_recv(listener, words, &bytes) == 0)
        heard++;
    assert_int_equal(heard, 50);
    sdr_pair_close(&pair);
}

/* What is no packet at all is counted, and everything still comes to its place. */
static void test_noise_in_place_of_control(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.seed = 3});
    struct lh_prng prng;
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    lh_prng_seed(&prng, 3);
    for (uint32_t i = 0; i < 500; i++) {
        uint8_t noise[1100];
        struct sim_datagram datagram = {.data = noise,
                                        .from = 0,
                                        .to = 1,
                                        .source_port = SIM_PORT_FIRST + 2,
                                        .destination_port = SIM_PORT_FIRST + 2};
        datagram.bytes = (uint32_t)lh_prng_below(&prng, sizeof noise);
        for (uint32_t b = 0; b < datagram.bytes; b++)
            noise[b] = (uint8_t)lh_prng_next(&prng);
        datagram.destination_port = (uint16_t)(SIM_PORT_FIRST + lh_prng_below(&prng, 3));
        assert_int_equal(sim_world_inject(pair.world, &datagram), 0);
    }
    sdr_pair_run(&pair, MS);
    struct lh_stats rx = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_int_equal(lh_stats_bad_packets(&rx), 500);
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 1, &send), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_pair_chunks(recv), SLOT / CHUNK);
    sdr_pair_close(&pair);
}

/* ---- links that lose, double, reorder and damage ---- */

/* Each packet is marked and exact, or not marked and never written; each chunk is marked when all its
 * packets are. Returns the packets that are there. */
static uint32_t check_exact(const struct sdr_pair *pair, struct sdr_recv_handle *recv, uint32_t at,
                            uint32_t from, uint32_t bytes)
{
    uint8_t *bitmap;
    size_t chunks;
    uint32_t there = 0;
    assert_int_equal(sdr_recv_bitmap_get(recv, &bitmap, &chunks), SDR_SUCCESS);
    assert_int_equal(chunks, (bytes + CHUNK - 1) / CHUNK);
    for (uint32_t c = 0; c < chunks; c++) {
        uint64_t bits;
        uint32_t whole = 1;
        assert_int_equal(sdr_recv_bitmap_chunk_expand(recv, c, &bits), SDR_SUCCESS);
        for (uint32_t i = 0; i < 4 && c * CHUNK + i * MTU < bytes; i++) {
            uint32_t offset = c * CHUNK + i * MTU;
            uint32_t length = bytes - offset < MTU ? bytes - offset : MTU;
            bool marked = (bits >> i) & 1;
            assert_true(marked ? sdr_pair_same(pair, at + offset, from + offset, length)
                               : sdr_pair_blank(pair, at + offset, length));
            there += marked;
            whole &= marked;
        }
        assert_int_equal(bitmap[c], whole);
    }
    return there;
}

struct outcome {
    uint64_t packets; /* sent */
    uint64_t arrived; /* at least once */
};

static struct outcome run_bad_link(uint64_t seed, const struct lh_link_spec *link)
{
    struct sdr_pair pair = open_pair(
        (struct sdr_pair_options){.seed = seed, .link = *link, .channels = 1 + (uint32_t)(seed % 3)});
    struct lh_prng prng;
    struct outcome outcome = {0};
    lh_prng_seed(&prng, seed);
    for (uint32_t turn = 0; turn < 10; turn++) {
        struct sdr_recv_handle *recv;
        struct sdr_send_handle *send;
        uint32_t bytes = 1 + (uint32_t)lh_prng_below(&prng, SLOT);
        uint32_t from = (uint32_t)lh_prng_below(&prng, SDR_PAIR_ARENA_BYTES - SLOT);
        memset(pair.ends[SDR_PAIR_RX].arena, SDR_PAIR_BLANK, SLOT);
        assert_int_equal(sdr_pair_recv(&pair, 0, bytes, &recv), SDR_SUCCESS);
        while (sdr_pair_send(&pair, from, bytes, turn, &send) == SDR_RETRY)
            sdr_pair_run(&pair, MS);
        assert_int_equal(sdr_pair_finish(&pair, send), 0);
        sdr_pair_run(&pair, 30 * MS);
        outcome.arrived += check_exact(&pair, recv, 0, from, bytes);
        assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
    }
    struct lh_stats rx = sdr_pair_stats(&pair, SDR_PAIR_RX);
    outcome.packets = sdr_pair_stats(&pair, SDR_PAIR_TX).tx_packets;
    assert_true(rx.rx_packets - rx.rx_duplicate_packets >= outcome.arrived);
    sdr_pair_close(&pair);
    return outcome;
}

static void test_bitmap_tells_the_truth(void **state)
{
    (void)state;
    const struct lh_link_spec link = {.delay_ns = 2 * MS,
                                      .jitter_ns = MS,
                                      .rate_bps = 1000000000,
                                      .loss = 0.05,
                                      .reorder = 0.1,
                                      .duplicate = 0.1,
                                      .corrupt = 0.05};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct lh_link_spec seeded = link;
        seeded.seed = seed;
        print_message("seed %llu\n", (unsigned long long)seed);
        struct outcome outcome = run_bad_link(seed, &seeded);
        double share = (double)outcome.arrived / (double)outcome.packets;
        assert_true(share > 0.80 && share < 0.97); /* about a tenth is lost, or damaged and dropped */
    }
}

static uint64_t trace_of(uint64_t seed)
{
    struct sdr_pair pair = open_pair((struct sdr_pair_options){
        .seed = seed,
        .link = {.delay_ns = MS, .jitter_ns = MS, .loss = 0.1, .duplicate = 0.1, .seed = seed}});
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    for (uint32_t turn = 0; turn < 8; turn++) {
        assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
        while (sdr_pair_send(&pair, turn * SLOT / 2, SLOT, turn, &send) == SDR_RETRY)
            sdr_pair_run(&pair, MS);
        sdr_pair_finish(&pair, send);
        sdr_pair_run(&pair, turn * MS);
        assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
    }
    uint64_t trace = sim_world_trace(pair.world);
    sdr_pair_close(&pair);
    return trace;
}

static void test_same_seed_same_run(void **state)
{
    (void)state;
    uint64_t one = trace_of(1), two = trace_of(2);
    assert_int_not_equal(one, two);
    assert_int_equal(trace_of(1), one);
    assert_int_equal(trace_of(2), two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_packets_change_nothing),
        cmocka_unit_test(test_late_packets_are_not_the_lost_ones),
        cmocka_unit_test(test_early_completion_in_the_middle),
        cmocka_unit_test(test_generations_wrap),
        cmocka_unit_test(test_control_is_lost_and_doubled),
        cmocka_unit_test(test_partition_heals),
        cmocka_unit_test(test_full_link_refuses_control),
        cmocka_unit_test(test_forged_control),
        cmocka_unit_test(test_impossible_receives_are_refused),
        cmocka_unit_test(test_messages_that_are_too_long_are_refused),
        cmocka_unit_test(test_goodbye_comes_last),
        cmocka_unit_test(test_noise_in_place_of_control),
        cmocka_unit_test(test_bitmap_tells_the_truth),
        cmocka_unit_test(test_same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
