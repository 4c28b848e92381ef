/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/scheme.h"

#include "schemes/bounded/coding.h"
#include "schemes/bounded/model_params.h"
#include "schemes/bounded/params.h"
#include "schemes/bounded/predictor.h"
#include "schemes/bounded/receiver.h"
#include "schemes/bounded/sender.h"
#include "wire/wire_numbers.h"

#define NAME "bounded"
#define HELP                                                                                               \
    "each packet once, delivers what has arrived by the deadline; deadline=TIME, default auto: by what "   \
    "messages took before; code=mds or xor with k=DATA,m=PARITY, default none"

const struct lh_scheme bounded_scheme = {
    .name = NAME,
    .help = HELP,
    .id = WIRE_BOUNDED,
    .parse = bounded_parse,
    .params_valid = bounded_params_valid,
    .sender_bytes = bounded_sender_bytes,
    .sender_start = bounded_sender_start,
    .sender_on_message = bounded_sender_on_message,
    .sender_step = bounded_sender_step,
    .receiver_bytes = bounded_receiver_bytes,
    .receiver_start = bounded_receiver_start,
    .receiver_on_message = bounded_receiver_on_message,
    .receiver_step = bounded_receiver_step,
    .coding = &bounded_coding,
    .deadline = bounded_deadline,
};

/* The planner chooses it only for data of which some may be missing (plan/plan_deadline.c). */
const struct scheme_entry bounded_entry = {
    .shown =
        {.kind = LH_MODEL_BOUNDED, .name = NAME, .help = HELP, .codes = true, .machines = &bounded_scheme},
    .code_is_optional = true,
    .predictor = &bounded_predictor,
    .parameters = "deadline, code, k and m",
    .take = bounded_model_take,
    .format = bounded_model_format,
    .encode_rate = bounded_encode_rate,
};
