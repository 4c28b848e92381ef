/*
 * stats.h - counters of everything sent, dropped, retransmitted, repaired or late.
 *
 * One list defines each counter's field, its name in the command's output, and its meaning. Counters only
 * grow. They can be read while traffic flows: each value is exact, but the set is not a snapshot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_STATS_H
#define LONGHAUL_STATS_H

#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(field, meaning). Packets are wire packets, bytes are payload bytes unless the name contains wire. */
#define LH_STATS(X)                                                                                        \
    X(tx_packets, "data packets given to the fabric")                                                      \
    X(tx_bytes, "payload bytes of those")                                                                  \
    X(tx_wire_bytes, "bytes of those on the wire, IP header and up")                                       \
    X(tx_retransmitted_packets, "data packets retransmitted")                                              \
    X(tx_retransmitted_bytes, "payload bytes retransmitted")                                               \
    X(tx_backpressure, "times the fabric was full")                                                        \
    X(tx_control, "control messages sent")                                                                 \
    X(rx_packets, "data packets that passed every check")                                                  \
    X(rx_bytes, "payload bytes of those")                                                                  \
    X(rx_duplicate_packets, "duplicate data packets")                                                      \
    X(rx_late_packets, "data packets of a closed slot or an old generation")                               \
    X(rx_stale_packets, "data packets that the fabric accepted for a closed slot or beyond its buffer")    \
    X(rx_control, "control messages that passed every check")                                              \
    X(rx_inbox_overflow, "packets dropped because a staging queue was full")                               \
    X(rx_socket_drops, "packets the kernel dropped for lack of receive buffer")                            \
    X(rx_marked_packets, "data packets that arrived marked: congestion experienced (ECN)")                 \
    X(rx_congestion_notifications, "congestion notification packets (CNP) received")                       \
    X(feedback_sent, "reports of what arrived, for the peer's congestion controller")                      \
    X(feedback_received, "such reports received")                                                          \
    X(bad_icrc, "packets whose iCRC is wrong")                                                             \
    X(bad_header, "packets with an invalid RoCE header")                                                   \
    X(bad_source, "packets from an address that is not the peer's")                                        \
    X(bad_qpn, "packets for a queue pair that does not exist")                                             \
    X(bad_key, "packets with a wrong memory key")                                                          \
    X(bad_range, "packets that exceed their message")                                                      \
    X(bad_length, "packets with an invalid length for their offset")                                       \
    X(bad_channel, "packets on a channel that does not carry their offset")                                \
    X(bad_control, "control messages that are malformed")                                                  \
    X(bad_token, "control messages of another incarnation of this queue pair")                             \
    X(cts_sent, "clear-to-send announcements")                                                             \
    X(cts_repeated, "clear-to-send announcements retransmitted")                                           \
    X(acks_sent, "acknowledgements sent")                                                                  \
    X(acks_received, "acknowledgements received")                                                          \
    X(nacks_sent, "reports of missing chunks sent")                                                        \
    X(nacks_received, "reports of missing chunks received")                                                \
    X(probes_sent, "tail probes sent")                                                                     \
    X(timeouts, "retransmission timeouts that expired")                                                    \
    X(spurious_chunks, "chunks that arrived twice")                                                        \
    X(parity_chunks_sent, "parity chunks submitted; those unsent when all data has arrived are dropped")   \
    X(chunks_recovered, "lost chunks that were decoded")                                                   \
    X(submessages_failed, "submessages with more losses than their parity could recover")                  \
    X(fallbacks, "times a receiver requested chunks that it could not recover")                            \
    X(encode_ns, "time spent encoding, in ns")                                                             \
    X(decode_ns, "time spent decoding, in ns")                                                             \
    X(schemes_planned, "times auto compared the schemes for messages of a size")                           \
    X(schemes_changed, "times auto changed the scheme for messages of a size")                             \
    X(messages_sent, "messages sent and acknowledged")                                                     \
    X(messages_received, "messages received completely")                                                   \
    X(messages_partial, "messages delivered without some of their bytes, by a deadline or before")         \
    X(messages_preempted, "of these, ended by the next message")                                           \
    X(deadline_hits, "of these, ended by their deadline")                                                  \
    X(missing_bytes, "bytes that these lack")                                                              \
    X(messages_failed, "messages that failed")                                                             \
    X(operations_refused, "one-sided operations of the peer that were not allowed")                        \
    X(link_dropped, "packets that the emulated link lost")                                                 \
    X(link_duplicated, "packets that the emulated link duplicated")                                        \
    X(link_reordered, "packets that the emulated link reordered")                                          \
    X(link_corrupted, "packets that the emulated link corrupted")                                          \
    X(tx_pieces, "parts of data packets sent, since the path MTU is below them")                           \
    X(rx_pieces, "parts of data packets received, likewise")                                               \
    X(path_mtu_probes, "padded probes of the path MTU sent (RFC 8899)")                                    \
    X(path_mtu_lowered, "times that packets became smaller: full ones did not pass (PMTU black hole)")     \
    X(path_mtu_raised, "times that packets became larger again")                                           \
    X(rx_auth_failures, "packets that are not what the peer encrypted, or in clear text, dropped")         \
    X(rx_replays, "encrypted packets that had come before, dropped")

struct lh_stats {
#define LH_STATS_FIELD(field, meaning) uint64_t field;
    LH_STATS(LH_STATS_FIELD)
#undef LH_STATS_FIELD
};

/* Return the number of counters, and the name, meaning and value of one; NULL and 0 beyond the last. */
LH_API size_t lh_stats_count(void);
LH_API const char *lh_stats_name(size_t index);
LH_API const char *lh_stats_meaning(size_t index);
LH_API uint64_t lh_stats_value(const struct lh_stats *stats, size_t index);
/* Returns the sum of the bad_ counters: invalid packets, all dropped. */
LH_API uint64_t lh_stats_bad_packets(const struct lh_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
