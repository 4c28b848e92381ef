/* SPDX-License-Identifier: BSD-3-Clause */
#include "reliability/ec_scheme.h"

#include "reliability/ec_coding.h"
#include "reliability/ec_params.h"
#include "reliability/ec_receiver.h"
#include "reliability/ec_sender.h"
#include "reliability/scheme_list.h"

#define HELP_PARAMETERS                                                                                    \
    "k=DATA,m=PARITY a submessage, default 32 and 8; spread=SUBMESSAGES interleaved, default 0: all; "     \
    "beta=ROUND TRIPS to wait, default 0.5; fallback=ir or sr"

#define EC_MACHINES                                                                                        \
    .sender_bytes = ec_sender_bytes, .sender_start = ec_sender_start,                                      \
    .sender_on_message = ec_sender_on_message, .sender_step = ec_sender_step,                              \
    .receiver_bytes = ec_receiver_bytes, .receiver_start = ec_receiver_start,                              \
    .receiver_on_message = ec_receiver_on_message, .receiver_step = ec_receiver_step

const struct lh_scheme ec_mds_scheme = {
    .name = "ec:mds",
    .help = "erasure coding, any m losses of a submessage cost nothing; " HELP_PARAMETERS,
    .id = LH_SCHEME_ID_EC_MDS,
    .parse = ec_mds_parse,
    .params_valid = ec_mds_params_valid,
    EC_MACHINES,
    .coding = &ec_coding,
};

const struct lh_scheme ec_xor_scheme = {
    .name = "ec:xor",
    .help = "erasure coding by XOR, one loss of each m-th chunk of a submessage costs "
            "nothing; " HELP_PARAMETERS,
    .id = LH_SCHEME_ID_EC_XOR,
    .parse = ec_xor_parse,
    .params_valid = ec_xor_params_valid,
    EC_MACHINES,
    .coding = &ec_coding,
};
