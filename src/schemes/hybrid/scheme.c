/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/scheme.h"

#include "schemes/hybrid/coding.h"
#include "schemes/hybrid/model_params.h"
#include "schemes/hybrid/params.h"
#include "schemes/hybrid/predictor.h"
#include "schemes/hybrid/receiver.h"
#include "schemes/hybrid/sender.h"
#include "wire/wire_numbers.h"

#define NAME "hybrid"
#define HELP                                                                                               \
    "selective repeat while data is injected, parity for what is in flight at its end; "                   \
    "target=SHARE of messages that need more, default 1e-4; tail=ROUND TRIPS covered, default all"

const struct lh_scheme hybrid_scheme = {
    .name = NAME,
    .help = HELP,
    .id = WIRE_HYBRID,
    .parse = hybrid_parse,
    .params_valid = hybrid_params_valid,
    .sender_bytes = hybrid_sender_bytes,
    .sender_start = hybrid_sender_start,
    .sender_on_message = hybrid_sender_on_message,
    .sender_step = hybrid_sender_step,
    .receiver_bytes = hybrid_receiver_bytes,
    .receiver_start = hybrid_receiver_start,
    .receiver_on_message = hybrid_receiver_on_message,
    .receiver_step = hybrid_receiver_step,
    .coding = &hybrid_coding,
    .measured = hybrid_params_measured,
};

const struct scheme_entry hybrid_entry = {
    .shown = {.kind = LH_MODEL_HYBRID,
              .name = NAME,
              .help = HELP,
              .compared = NAME,
              .codes = true,
              .machines = &hybrid_scheme},
    .announced = WIRE_ANNOUNCES_HYBRID,
    .automatic = (const char *const[]){NAME, NULL},
    .predictor = &hybrid_predictor,
    .parameters = "target, tail and rto",
    .defaults = hybrid_model_defaults,
    .take = hybrid_model_take,
    .format = hybrid_model_format,
    .candidates = hybrid_candidates,
    .planner_rank = 4,
    .for_ends = true,
    .encode_rate = hybrid_encode_rate,
};
