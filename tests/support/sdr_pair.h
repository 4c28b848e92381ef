/*
 * sdr_pair.h - two connected SDR queue pairs in a simulated world, driven by hand in virtual time.
 *
 * End i is on host i; neither has workers. Each end has one registered arena: that of the sender holds
 * pseudorandom bytes, that of the receiver is filled with SDR_PAIR_BLANK, so that every byte that was
 * written where it should not be can be told.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TEST_SDR_PAIR_H
#define LH_TEST_SDR_PAIR_H

#include <longhaul/sdr_ext.h>
#include <sdr_mr.h>

#include "netsim/fabric/sim_packets.h"

#define SDR_PAIR_BLANK       0xEE
#define SDR_PAIR_MTU         1024u
#define SDR_PAIR_ARENA_BYTES (4u << 20)
#define SDR_PAIR_TX          0 /* the end that sends in most tests */
#define SDR_PAIR_RX          1

struct sdr_pair_end {
    struct sdr_context *context;
    struct sdr_qp *qp;
    struct sdr_mr *mr;
    uint8_t *arena;
    uint32_t lkey;
};

struct sdr_pair {
    struct sim_world *world;
    struct sdr_pair_end ends[2];
};

/* What differs from the defaults: zero is 2 channels, 4 slots of 256 KiB, SDR_PAIR_MTU, chunks of 4
 * such packets, no link. */
struct sdr_pair_options {
    uint64_t seed;
    struct lh_link_spec link;
    uint32_t channels;
    uint32_t slots_log;
    uint64_t slot_bytes;
    uint32_t mtu_bytes;
    uint32_t chunk_bytes;
    uint8_t message_bits; /* with fragment_bits: the immediate split */
    uint8_t fragment_bits;
    uint64_t rate_bps;
    const char *congestion;
};

/* Any failure ends the test. */
void sdr_pair_open(struct sdr_pair *pair, const struct sdr_pair_options *options);
void sdr_pair_close(struct sdr_pair *pair);

/* Lets that much virtual time pass, with both ends making progress whenever something is due. */
void sdr_pair_run(struct sdr_pair *pair, lh_time span_ns);

/* A receive of `bytes` at `offset` of the receiver's arena; SDR_SUCCESS, or what the call said. */
int sdr_pair_recv(struct sdr_pair *pair, uint32_t offset, uint32_t bytes, struct sdr_recv_handle **handle);
/* One send from `offset` of the sender's arena. */
int sdr_pair_send(struct sdr_pair *pair, uint32_t offset, uint32_t bytes, uint32_t immediate,
                  struct sdr_send_handle **handle);
/* Runs until the send has completed, and returns its flags. */
uint32_t sdr_pair_finish(struct sdr_pair *pair, struct sdr_send_handle *handle);

struct lh_stats sdr_pair_stats(const struct sdr_pair *pair, uint32_t end);
/* Whether the receiver's arena at `at` has the sender's bytes from `from` (or is blank). */
bool sdr_pair_same(const struct sdr_pair *pair, uint32_t at, uint32_t from, uint32_t bytes);
bool sdr_pair_blank(const struct sdr_pair *pair, uint32_t at, uint32_t bytes);
/* How many bytes of the bitmap are set. */
uint32_t sdr_pair_chunks(struct sdr_recv_handle *handle);

#endif
