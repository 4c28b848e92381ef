/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/scheme.h"

#include "schemes/sr/params.h"
#include "schemes/sr/predictor.h"
#include "schemes/sr/receiver.h"
#include "schemes/sr/sender.h"
#include "wire/wire_numbers.h"

#define NACK_NAME "sr-nack"
#define NACK_HELP "selective repeat, the receiver reports losses as soon as they show; no parameters"
#define RTO_NAME  "sr-rto"
#define RTO_HELP                                                                                           \
    "selective repeat with a timeout a chunk; alpha=NUMBER: timeout (1 + alpha) round trips, default 2"

const struct lh_scheme sr_nack_scheme = {
    .name = NACK_NAME,
    .help = NACK_HELP,
    .id = WIRE_SR_NACK,
    .parse = sr_nack_parse,
    .params_valid = sr_nack_params_valid,
    .sender_bytes = sr_sender_bytes,
    .sender_start = sr_nack_sender_start,
    .sender_on_message = sr_sender_on_message,
    .sender_step = sr_sender_step,
    .receiver_bytes = sr_receiver_bytes,
    .receiver_start = sr_nack_receiver_start,
    .receiver_on_message = sr_receiver_on_message,
    .receiver_step = sr_receiver_step,
};

const struct lh_scheme sr_rto_scheme = {
    .name = RTO_NAME,
    .help = RTO_HELP,
    .id = WIRE_SR_RTO,
    .parse = sr_rto_parse,
    .params_valid = sr_rto_params_valid,
    .sender_bytes = sr_sender_bytes,
    .sender_start = sr_rto_sender_start,
    .sender_on_message = sr_sender_on_message,
    .sender_step = sr_sender_step,
    .receiver_bytes = sr_receiver_bytes,
    .receiver_start = sr_rto_receiver_start,
    .receiver_on_message = sr_receiver_on_message,
    .receiver_step = sr_receiver_step,
};

static uint32_t nack_candidates(bool unspread, struct lh_model_scheme *out)
{
    if (unspread)
        return 0;
    out[0] = (struct lh_model_scheme){.kind = LH_MODEL_SR_NACK};
    return 1;
}

/* Timeouts of 3 round trips and of 2. */
static uint32_t rto_candidates(bool unspread, struct lh_model_scheme *out)
{
    if (unspread)
        return 0;
    out[0] = (struct lh_model_scheme){.kind = LH_MODEL_SR_RTO};
    out[1] = (struct lh_model_scheme){.kind = LH_MODEL_SR_RTO, .rto_rtts = 2};
    return 2;
}

const struct scheme_entry sr_nack_entry = {
    .shown = {.kind = LH_MODEL_SR_NACK,
              .name = NACK_NAME,
              .help = NACK_HELP,
              .compared = NACK_NAME,
              .machines = &sr_nack_scheme},
    .automatic = (const char *const[]){NACK_NAME, NULL},
    .predictor = &sr_nack_predictor,
    .parameters = "rto",
    .candidates = nack_candidates,
    .planner_rank = 0,
};

const struct scheme_entry sr_rto_entry = {
    .shown = {.kind = LH_MODEL_SR_RTO,
              .name = RTO_NAME,
              .help = RTO_HELP,
              .compared = RTO_NAME,
              .machines = &sr_rto_scheme},
    .automatic = (const char *const[]){RTO_NAME ",alpha=2", NULL},
    .predictor = &sr_rto_predictor,
    .parameters = "alpha and rto",
    .take = sr_rto_take,
    .format = sr_rto_format,
    .candidates = rto_candidates,
    .planner_rank = 1,
};
