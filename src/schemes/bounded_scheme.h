/*
 * bounded_scheme.h - bounded completion in the table of schemes, and the model of its missing chunks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_SCHEME_H
#define LH_SCHEMES_BOUNDED_SCHEME_H

#include "model/predictor.h"
#include "model/repeat_model.h"
#include "schemes/ec_arrival_model.h"

extern const struct lh_scheme bounded_scheme;
extern const struct scheme_entry bounded_entry;

/* ---- missing --------------------------------------------------------------------------------------- */

/*
 * What a segment lacks that is sent once and then ended, and when it lacks nothing.
 *
 * All data is sent first, then the parity (schemes/ec_layout.h). With r rows of its parity a submessage
 * lacks what it lost when that is more than they can repair, and nothing else. Of a chunk of several
 * packets only those that were lost are missing.
 */

struct bounded_missing {
    struct model_loss loss;
    double packets;
    double parity;   /* chunks, behind the data; 0: no code */
    double inject_s; /* of a chunk */
    double data_s;   /* of all data */
    double rtt_s;
    double window_s;
    struct ec_missing missing;
    struct ec_partial_arrival partial;
    bool xor_code;
};

void bounded_missing_start(struct bounded_missing *segment, const struct lh_model_scheme *scheme,
                           const struct model_message *message);
/* Seconds from the injection of the first chunk to DONE, of a segment that ends without what is missing. */
double bounded_missing_settled(const struct bounded_missing *segment);
/* Log of the chance that nothing is missing so many seconds after the injection of the first chunk,
 * when DONE is received half a round trip after its last packet arrived. */
double bounded_missing_log_whole(const struct bounded_missing *segment, double seconds);
/* Share of the segment's bytes that is missing when it is ended then. */
double bounded_missing_share(const struct bounded_missing *segment, double seconds);

#endif
