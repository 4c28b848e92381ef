/*
 * loss.h - what a loss rate of packets means for chunks, independent or in bursts.
 *
 * Bursts are those of a link text (longhaul/link.h), Gilbert-Elliott with a bad state that loses every
 * packet: a packet after one that passed is lost with the chance `enter`, one after a lost one passes with
 * the chance 1 / burst. Independent loss is the same process with enter = loss and burst = 1 / (1 - loss).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_LOSS_H
#define LH_MODEL_LOSS_H

#include <stdbool.h>

struct model_loss {
    double packet;        /* share of packets that are lost */
    double burst;         /* mean packets of a row of lost ones */
    double enter;         /* chance that a packet after one that passed is lost */
    double chunk_packets; /* packets of a chunk */
    double chunk;  /* share of chunks that are lost: 1 - (1 - packet)^chunk_packets when independent */
    double leaves; /* chance that the chunk after a lost one is not lost; 1 - chunk when independent */
    bool bursty;
};

/* packet in [0, 1); burst 0: independent, else at least packet / (1 - packet); chunk_packets >= 1. */
struct model_loss model_loss_of_packets(double packet, double burst, double chunk_packets);
/* The same, told by the chunk's. The burst must allow the packets' loss that this comes to. */
struct model_loss model_loss_of_chunks(double chunk, double burst, double chunk_packets);

/* Chance that a packet is lost which is sent `steps` packets after one that was (after_lost) or was not. */
double model_loss_after(const struct model_loss *loss, bool after_lost, double steps);

#endif
