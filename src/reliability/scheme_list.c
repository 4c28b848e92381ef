/*
 * scheme_list.c - the schemes of this build.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "reliability/scheme_list.h"

#include <string.h>

#include "reliability/ec_scheme.h"
#include "reliability/sr_params.h"
#include "reliability/sr_receiver.h"
#include "reliability/sr_sender.h"

static const struct lh_scheme sr_nack = {
    .name = "sr-nack",
    .help = "selective repeat, the receiver reports losses as soon as they show; no parameters",
    .id = LH_SCHEME_ID_SR_NACK,
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

static const struct lh_scheme sr_rto = {
    .name = "sr-rto",
    .help =
        "selective repeat with a timeout a chunk; alpha=NUMBER: timeout (1 + alpha) round trips, default 2",
    .id = LH_SCHEME_ID_SR_RTO,
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

const struct lh_scheme *const *lh_schemes(void)
{
    static const struct lh_scheme *const all[] = {&sr_nack, &sr_rto, &ec_mds_scheme, &ec_xor_scheme, NULL};
    return all;
}

const struct lh_scheme *scheme_list_find(const char *name, size_t bytes)
{
    for (const struct lh_scheme *const *s = lh_schemes(); *s; s++)
        if (strlen((*s)->name) == bytes && memcmp((*s)->name, name, bytes) == 0)
            return *s;
    return NULL;
}
