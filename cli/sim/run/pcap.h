/*
 * pcap.h - simulated packets as a capture file: nanosecond pcap, Ethernet, as RoCEv2 would look on that
 * wire.
 *
 * Headers are made up from what the simulator knows; payload is zeros, or left out (the original length
 * stays). Host n has the address 10.0.0.0 + n + 1; a flow is a queue pair: its number + 256 is the
 * destination QP, and its lower 14 bits are in the UDP source port. Data packets are RDMA writes of one
 * packet each on a reliable connection. An acknowledgement has the number of the last packet before which
 * none is missing; it is a NAK (sequence error) as long as the very first one is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_PCAP_H
#define LH_CLI_SIM_RUN_PCAP_H

#include <longhaul/netsim.h>

#include <stdio.h>

/* Bytes of the file's header, of a record's, and of a packet without its payload. */
#define CLI_PCAP_FILE_HEADER   24
#define CLI_PCAP_RECORD_HEADER 16
#define CLI_PCAP_SNAP          74

/* Writes the file's header. */
void cli_pcap_start(FILE *file);
/* Writes one packet with its record header. header_bytes: transport.header, so that the payload's length is
 * known. full: with the payload, which Wireshark wants to see before it calls a packet well-formed. */
void cli_pcap_packet(FILE *file, const struct lh_netsim_packet *packet, uint32_t header_bytes, bool full);

#endif
