/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/scheme.h"

#include "schemes/ec/coding.h"
#include "schemes/ec/model_params.h"
#include "schemes/ec/params.h"
#include "schemes/ec/predictor.h"
#include "schemes/ec/receiver.h"
#include "schemes/ec/sender.h"
#include "wire/wire_numbers.h"

#define HELP_PARAMETERS                                                                                    \
    "k=DATA,m=PARITY a submessage, default 32 and 8; spread=SUBMESSAGES interleaved, default 0: all; "     \
    "beta=ROUND TRIPS to wait, default 0.5; fallback=ir or sr"

#define MDS_NAME "ec:mds"
#define MDS_HELP "erasure coding, any m losses of a submessage cost nothing; " HELP_PARAMETERS
#define XOR_NAME "ec:xor"
#define XOR_HELP                                                                                           \
    "erasure coding by XOR, one loss of each m-th chunk of a submessage costs nothing; " HELP_PARAMETERS

#define EC_MACHINES                                                                                        \
    .sender_bytes = ec_sender_bytes, .sender_start = ec_sender_start,                                      \
    .sender_on_message = ec_sender_on_message, .sender_step = ec_sender_step,                              \
    .receiver_bytes = ec_receiver_bytes, .receiver_start = ec_receiver_start,                              \
    .receiver_on_message = ec_receiver_on_message, .receiver_step = ec_receiver_step

const struct lh_scheme ec_mds_scheme = {
    .name = MDS_NAME,
    .help = MDS_HELP,
    .id = WIRE_EC_MDS,
    .parse = ec_mds_parse,
    .params_valid = ec_mds_params_valid,
    EC_MACHINES,
    .coding = &ec_coding,
};

const struct lh_scheme ec_xor_scheme = {
    .name = XOR_NAME,
    .help = XOR_HELP,
    .id = WIRE_EC_XOR,
    .parse = ec_xor_parse,
    .params_valid = ec_xor_params_valid,
    EC_MACHINES,
    .coding = &ec_coding,
};

#define EC_ENTRY                                                                                           \
    .predictor = &ec_predictor, .parameters = "k, m, spread, beta, fallback and rto",                      \
    .defaults = ec_model_defaults, .take = ec_model_take, .format = ec_model_format

/* Codes of more data chunks send as much parity for less loss, and more parity is rarely better than falling
 * back once in a while. */
static const char *const mds_automatic[] = {
    "ec:mds,k=8,m=2",
    "ec:mds,k=8,m=4",
    "ec:mds,k=8,m=8",
    "ec:mds,k=16,m=1",
    "ec:mds,k=16,m=2",
    "ec:mds,k=16,m=4",
    "ec:mds,k=16,m=8",
    "ec:mds,k=32,m=1",
    "ec:mds,k=32,m=2",
    "ec:mds,k=32,m=4",
    "ec:mds,k=32,m=8",
    "ec:mds,k=32,m=16",
    "ec:mds,k=64,m=1",
    "ec:mds,k=64,m=2",
    "ec:mds,k=64,m=4",
    "ec:mds,k=64,m=8",
    "ec:mds,k=64,m=16",
    "ec:mds,k=128,m=1",
    "ec:mds,k=128,m=2",
    "ec:mds,k=128,m=4",
    "ec:mds,k=128,m=8",
    "ec:mds,k=128,m=16",
    NULL,
};
static const char *const xor_automatic[] = {
    "ec:xor,k=32,m=4", "ec:xor,k=32,m=8", "ec:xor,k=64,m=8", "ec:xor,k=128,m=16", NULL,
};

const struct scheme_entry ec_mds_entry = {
    .shown = {.kind = LH_MODEL_EC_MDS,
              .name = MDS_NAME,
              .help = MDS_HELP,
              .compared = "ec:mds,k=32,m=8",
              .codes = true,
              .machines = &ec_mds_scheme},
    EC_ENTRY,
    .automatic = mds_automatic,
    .candidates = ec_mds_candidates,
    .planner_rank = 3,
    .encode_rate = ec_mds_encode_rate,
};

const struct scheme_entry ec_xor_entry = {
    .shown = {.kind = LH_MODEL_EC_XOR,
              .name = XOR_NAME,
              .help = XOR_HELP,
              .compared = "ec:xor,k=32,m=8",
              .codes = true,
              .machines = &ec_xor_scheme},
    EC_ENTRY,
    .automatic = xor_automatic,
    .candidates = ec_xor_candidates,
    .planner_rank = 2,
    .encode_rate = ec_xor_encode_rate,
};
