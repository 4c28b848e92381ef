/*
 * xdp_program.h - the XDP program of an interface: UDP datagrams to open ports go to AF_XDP sockets, all
 * other packets to the kernel.
 *
 * The program is written here, instruction by instruction, and loaded by bpf(2): no library, no compiler.
 * It is attached by a BPF link, which ends with the process: nothing is left behind, however that ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_XDP_XDP_PROGRAM_H
#define LH_FABRIC_XDP_XDP_PROGRAM_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/udp/udp_address.h"

#define XDP_PROGRAM_STEPS_MAX 80u
#define XDP_PROGRAM_NAME      "longhaul" /* as `ip link` and bpftool show it */
#define XDP_PORTS_MAX         4096u      /* open at a time */
#define XDP_PLACES_MAX        64u        /* fabrics on an interface */

/* Of the map of open ports. Network order; IPv4 in the first 4 bytes of the address, the rest 0. */
struct xdp_port_key {
    uint8_t address[16];
    uint16_t port;
    uint16_t ethertype;
};

struct xdp_program {
    int ports;   /* map: struct xdp_port_key → uint32_t, place x queues */
    int sockets; /* map: place x queues + receive queue → AF_XDP socket */
    int link;    /* -1: not attached */
    uint32_t queues;
    bool native; /* attached in the driver; else behind it, in generic mode */
};

/* Writes the program for the first `queues` receive queues; the maps are descriptors. Returns its length.
 * Pure. */
uint32_t xdp_program_make(int ports_fd, int sockets_fd, uint32_t queues,
                          struct bpf_insn steps[XDP_PROGRAM_STEPS_MAX]);

/* Makes the maps, for that many receive queues; loads the program and attaches it to the interface, in native
 * mode where the driver has it. -LH_EDEVICE, -LH_ESYSTEM: the message names the interface and the remedy. */
int xdp_program_attach(const char *interface, uint32_t ifindex, uint32_t queues,
                       struct xdp_program *program);
/* Detaches and frees. */
void xdp_program_close(struct xdp_program *program);

/* From now on datagrams to this address and port come to the sockets of the place. -LH_ESYSTEM */
int xdp_program_open_port(const struct xdp_program *program, const union udp_address *address,
                          uint32_t place);
/* They go to the kernel again. */
void xdp_program_close_port(const struct xdp_program *program, const union udp_address *address);
/* The socket of the place for a receive queue; until it is closed. -LH_ESYSTEM */
int xdp_program_set_socket(const struct xdp_program *program, uint32_t place, uint32_t queue, int fd);

#endif
