/*
 * completion_formula.h - the SDR-RDMA paper's completion times (section 4.2, appendices A and B), which the
 * benchmarks print beside what they measure.
 *
 * Selective repeat is the paper's lower bound: chunk i starts at i T_inj, each loss of it costs
 * RTO + T_inj, the message is there with its last chunk, and is known to be there an RTT later.
 *
 * Erasure code: (M + ceil(M / R)) T_inj for data and parity. When every submessage decodes, an RTT follows;
 * else (1 + beta) RTT until the request for the failed ones is at the sender, and selective repeat of f k
 * chunks. f is binomial here, where the paper inserts its mean, which is no whole number of submessages.
 *
 * All times are in seconds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_COMPLETION_FORMULA_H
#define LH_BENCH_COMPLETION_FORMULA_H

struct formula_path {
    double inject_s; /* T_inj of one chunk */
    double rtt_s;
    double loss; /* of one chunk */
};

struct formula_code {
    double k;
    double m;
    double beta;
    double decodes; /* the chance that a submessage does */
};

/* Without loss: injection and one round trip. */
double formula_ideal(const struct formula_path *path, double chunks);

double formula_sr_mean(const struct formula_path *path, double rto_s, double chunks);
double formula_sr_quantile(const struct formula_path *path, double rto_s, double chunks, double p);

/* Appendix B. */
double formula_mds_decodes(double loss, double k, double m);
double formula_xor_decodes(double loss, double k, double m);

/* Chance that one of the submessages does not decode. */
double formula_ec_fallback(const struct formula_code *code, double chunks);
double formula_ec_mean(const struct formula_path *path, const struct formula_code *code, double rto_s,
                       double chunks);
double formula_ec_quantile(const struct formula_path *path, const struct formula_code *code, double rto_s,
                           double chunks, double p);

/* What the paper says of a scheme: RTO is 3 RTT, 1 RTT for sr-nack; ec:mds and ec:xor are of 32 + 8 chunks
 * with beta = 0.5. `scheme` is as lh_attr takes it; only its name counts. */
struct formula_times {
    double ideal_s;
    double sent_s; /* injection of the data, and of the parity of an erasure code, and a round trip */
    double mean_s;
    double tail_s; /* 99.9 % */
};

struct formula_times formula_of(const char *scheme, const struct formula_path *path, double chunks);

#endif
