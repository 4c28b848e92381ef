/*
 * params.h - the parameters of the hybrid scheme: as text, and as the bytes that travel.
 *
 * Bytes: 0 code, an index of the table of codes | 1 tail in eighths of a round trip, 255: all |
 * 2-3 target | 4-5 loss of a chunk | 6-7 burst in sixteenths of a chunk. Big-endian. Target and loss are
 * -1000 log10 of the value.
 *
 * The user gives target and tail; loss, burst and the code that suits them are what the receiver has measured
 * when it posts the message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_PARAMS_H
#define LH_SCHEMES_HYBRID_PARAMS_H

#include <longhaul/scheme.h>

#define HYBRID_TARGET_DEFAULT 1e-4 /* of a message: one in 10000 waits for a round trip more */
#define HYBRID_TARGET_MIN     1e-12
#define HYBRID_TARGET_MAX     0.5
/* Assumed of a path that has not lost anything yet: one chunk in 1000. Parity for that is 2 % of the
 * tail, and costs no time where nothing is lost. */
#define HYBRID_PRIOR_LOSS 1e-3
#define HYBRID_LOSS_MIN   1e-9
#define HYBRID_LOSS_MAX   0.5
#define HYBRID_BURST_MAX  4000.0
#define HYBRID_TAIL_ALL   255u
#define HYBRID_TAIL_MAX   16u /* eighths; the injection of two round trips is remembered (reach.h) */
#define HYBRID_SPREAD     32u /* submessages that are interleaved */

struct hybrid_params {
    uint32_t code;
    uint32_t tail_eighths;
    double target;
    double loss;
    double burst;
};

/* "target=1e-4,tail=1.5", in any order. -LH_EINVAL, -LH_ERANGE. */
int hybrid_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
/* Every byte is looked at. */
bool hybrid_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
/* Valid ones. */
struct hybrid_params hybrid_params_of(const uint8_t params[LH_SCHEME_PARAMS]);
/* Puts a measured loss and burst length, and the code for them, into valid params. The loss is rounded
 * up, and limited to what the scheme is planned for. rows_most: what a slot holds; the first code is
 * taken if none has as few. */
void hybrid_params_measured(double loss, double burst, uint32_t rows_most,
                            uint8_t params[LH_SCHEME_PARAMS]);
/* The code, as schemes/ec has it. */
void hybrid_code_params(uint32_t code, uint8_t ec_params[LH_SCHEME_PARAMS]);
/* Data chunks of a submessage at most, and parity rows that it can have. */
uint32_t hybrid_code_size(uint32_t code);
uint32_t hybrid_code_rows(uint32_t code);
/* The code with the fewest rows that suffice for losses of this kind, of those with at most rows_most. */
uint32_t hybrid_code_for(double loss, double burst, uint32_t rows_most);
/* Data chunks of a full submessage of any code, at least. */
#define HYBRID_SIZE_LEAST 100u

#endif
