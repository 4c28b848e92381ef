/*
 * hybrid_groups.h - the submessages of the hybrid scheme at its sender: parameters, strength, missing rows,
 * encodings.
 *
 * A submessage of n data chunks can be decoded once any n of its data and parity rows have arrived.
 * `needed` is n less what has arrived; in flight are its chunks and rows that were injected and not
 * reported lost. As soon as nothing else is to be injected, each submessage gets as many chunks more as
 * make
 *     P(fewer than `needed` of those in flight arrive) <= failure
 * true. At the end of a message that is parity. Later, when reports have made a failure more likely than
 * HYBRID_PATIENCE times that, it is further parity; rows that are not there yet are replaced by lost chunks.
 * A batch of rows that a report interrupts is finished by the first bound, not by that one.
 * So parity is chosen for the tail as it is: what has arrived needs none, and a retransmission in flight
 * counts as one chunk that may be lost.
 *
 * A submessage's rows are injected in order. Those of a batch share a stamp, the number of the MARK that
 * covers them (sr_ledger.h): when it has settled at the receiver, rows that have not arrived are lost.
 *
 * The only chunk of a message has no parity: its rows are copies of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_GROUPS_H
#define LH_SCHEMES_HYBRID_GROUPS_H

#include <stdint.h>

#include <longhaul/scheme.h>

#include "schemes/ec_layout.h"
#include "schemes/sr_ledger.h"
#include "wire/scheme_messages.h"

/* ---- strength -------------------------------------------------------------------------------------- */

/*
 * How much parity makes a submessage safe: pure arithmetic.
 *
 * Of `sent` chunks of one submessage, data and parity, any `needed` suffice. A chunk is lost with `loss`;
 * losses come in bursts whose lengths are geometric and of mean `burst` as far as they hit this
 * submessage (1: each by itself). Without bursts the number of losses is Binomial(sent, loss); with
 * bursts it is the geometric Poisson (Polya-Aeppli) distribution: bursts arrive as a Poisson process.
 */

struct hybrid_loss {
    double chunk; /* 0 to below 1 */
    double burst; /* at least 1 */
};

/* The chance that of `sent` chunks fewer than `needed` arrive. */
double hybrid_failure(const struct hybrid_loss *loss, uint32_t sent, uint32_t needed);
/* The least number of chunks that must follow `in_flight` others so that this chance is at most `failure`; at
 * most `most`. 0 when nothing is needed. */
uint32_t hybrid_strength(const struct hybrid_loss *loss, uint32_t in_flight, uint32_t needed,
                         double failure, uint32_t maximum);

/* ---- groups ---------------------------------------------------------------------------------------- */

#define HYBRID_COPIES_MAX 8u /* of an only chunk, beside itself */

struct hybrid_group {
    uint8_t sent;        /* rows injected */
    uint8_t sent_before; /* of those, before the newest batch */
    uint8_t want;        /* rows to be injected in all */
    uint8_t asked;       /* rows that were given to the encoder */
    uint8_t ready;       /* rows that it has computed */
    uint8_t arrived;     /* rows at the receiver, as reported */
    uint8_t settled;     /* rows whose fate is known: those that have not arrived are lost */
    uint8_t repeats;     /* lost chunks to be retransmitted */
    bool met;            /* the receiver can decode it */
    bool covered;        /* for statistics: what was planned is in flight, */
    bool failed;         /* and did not suffice */
    uint32_t stamp;      /* of the newest batch, and of the one before it */
    uint32_t stamp_before;
};

struct hybrid_groups {
    const struct ec_layout *layout;
    struct hybrid_group *all;
    uint32_t rows_in_flight;
    uint32_t rows_arrived;
    uint32_t work_from; /* no submessage before has something to be injected */
    uint32_t newly_failed;
};

/* What an evaluation goes by. */
struct hybrid_rule {
    struct hybrid_loss loss; /* burst: of the wire */
    double failure;          /* of one full submessage */
    uint32_t from_stamp;     /* chunks injected before that count as if they had arrived */
    bool waits;              /* other data is to be injected: only what is certain to fail is repaired */
};

/* Bytes of the array behind it, for a transfer of at most that many chunks. */
size_t hybrid_groups_bytes(uint32_t chunks_max);
/* layout stays the caller's, as the memory of hybrid_groups_bytes(). */
void hybrid_groups_init(struct hybrid_groups *groups, const struct ec_layout *layout, void *memory);
/* Rows that a submessage can have in all. */
uint32_t hybrid_groups_rows_max(const struct hybrid_groups *groups);
/* Loss as it hits one submessage of a block of that many: after a lost chunk the next one of the same
 * submessage is lost, too, when the burst goes on for so many chunks. */
struct hybrid_loss hybrid_groups_loss(const struct hybrid_loss *loss, uint32_t block_groups);

/* A report. False, and nothing is changed, for what no receiver of ours can have written. */
bool hybrid_groups_on_rows(struct hybrid_groups *groups, const struct hybrid_rows *rows);
/* Of an only chunk: a MARK that covers its copies has settled. */
void hybrid_groups_settle_copies(struct hybrid_groups *groups, uint32_t mark);
/* Evaluates submessages first … end - 1. */
void hybrid_groups_evaluate(struct hybrid_groups *groups, const struct sr_ledger *ledger, uint32_t first,
                            uint32_t end, const struct hybrid_rule *rule);
/* The first from work_from on that has something to inject now, a lost chunk or (rows_may_leave) a row;
 * layout->groups: none. */
uint32_t hybrid_groups_work(struct hybrid_groups *groups, bool rows_may_leave);
/* Rows of this submessage that can be injected now. */
uint32_t hybrid_group_rows_due(const struct hybrid_group *group);
/* One row of this submessage is injected, with this stamp. Returns its number. */
uint32_t hybrid_groups_take_row(struct hybrid_groups *groups, uint32_t group, uint32_t stamp);
/* The lost chunk of this submessage that is retransmitted first; UINT32_MAX: none is lost any more. */
uint32_t hybrid_groups_lost_chunk(const struct hybrid_groups *groups, const struct sr_ledger *ledger,
                                  uint32_t group);

/* ---- encoding -------------------------------------------------------------------------------------- */

/*
 * Which parity is computed, and when.
 *
 * The end of a message is near when no more data is to come than is in flight: about a round trip of it.
 * Parity of submessages whose data is injected from then on is computed ahead, as many rows as they would
 * need if nothing of them was acknowledged. Rows beyond that, and those of submessages that were injected
 * earlier, are computed when they are wanted. So a long message costs the encoder no more than its end
 * does.
 *
 * At most HYBRID_ENCODINGS_AHEAD requests are pending. They are carried out in their order.
 */

#define HYBRID_ENCODINGS_AHEAD 16u /* a few for each of several threads */

struct hybrid_encoding {
    uint32_t next_ahead; /* submessage; layout->groups: none, or not near the end */
    bool near;
    uint32_t given; /* requests ever */
    uint32_t done;  /* of those, as far as the groups know */
    struct {
        uint32_t group;
        uint8_t rows; /* ready when it is done */
    } pending[HYBRID_ENCODINGS_AHEAD];
};

/* What an LH_ACTION_ENCODE asks for. */
struct hybrid_encode {
    uint32_t group;
    uint32_t first_row;
    uint32_t rows;
};

void hybrid_encoding_init(struct hybrid_encoding *encoding, const struct ec_layout *layout);
/* So many requests have been carried out. */
void hybrid_encoding_on_encoded(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                                uint32_t encoded);
/* The end of the message is near; sent_through: data chunks that were injected. Only the first call
 * counts. */
void hybrid_encoding_on_near(struct hybrid_encoding *encoding, const struct ec_layout *layout,
                             uint32_t sent_through);
/* The next request; false: nothing is to be computed, or enough is pending. rows_ahead: of each
 * submessage that is computed ahead. */
bool hybrid_encoding_next(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                          uint32_t sent_through, uint32_t rows_ahead, struct hybrid_encode *encode);

/* ---- params ---------------------------------------------------------------------------------------- */

/*
 * The parameters of the hybrid scheme: as text, and as the bytes that travel.
 *
 * Bytes: 0 code, an index of the table of codes | 1 tail in eighths of a round trip, 255: all |
 * 2-3 target | 4-5 loss of a chunk | 6-7 burst in sixteenths of a chunk. Big-endian. Target and loss are
 * -1000 log10 of the value.
 *
 * The user gives target and tail; loss, burst and the code that suits them are what the receiver has measured
 * when it posts the message.
 */

#define HYBRID_TARGET_DEFAULT 1e-4 /* of a message: one in 10000 waits for a round trip more */
#define HYBRID_TARGET_MIN     1e-12
#define HYBRID_TARGET_MAX     0.5
/* Assumed of a path that has not lost anything yet: one chunk in 1000. Parity for that is 2 % of the
 * tail, and costs no time where nothing is lost. */
#define HYBRID_PRIOR_LOSS 1e-3
#define HYBRID_LOSS_MAX   0.5
#define HYBRID_TAIL_ALL   255u
#define HYBRID_TAIL_MAX   16u /* eighths; the injection of two round trips is remembered */
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
 * up, and limited to what the scheme is planned for. rows_max: what a slot holds; the first code is
 * taken if none has as few. */
void hybrid_params_measured(double loss, double burst, uint32_t rows_max, uint8_t params[LH_SCHEME_PARAMS]);
/* The code, as schemes/ec has it. */
void hybrid_code_params(uint32_t code, uint8_t ec_params[LH_SCHEME_PARAMS]);
/* Data chunks of a submessage at most, and parity rows that it can have. */
uint32_t hybrid_code_size(uint32_t code);
uint32_t hybrid_code_rows(uint32_t code);
/* The code with the fewest rows that suffice for losses of this kind, of those with at most rows_max. */
uint32_t hybrid_code_for(double loss, double burst, uint32_t rows_max);
/* Data chunks of a full submessage of any code, at least. */
#define HYBRID_SIZE_MIN 100u

/* ---- reach ----------------------------------------------------------------------------------------- */

/*
 * What was injected within the last so many eighths of a round trip: `tail=` limits parity to that.
 *
 * Each injection bears a stamp that only grows (sr_ledger.h). The stamp of the moment is sampled every
 * eighth of a round trip, so the limit is met to an eighth.
 */

struct hybrid_reach {
    lh_time next_ns; /* when the next sample is due */
    uint32_t count;  /* samples ever */
    uint32_t stamps[HYBRID_TAIL_MAX];
};

void hybrid_reach_init(struct hybrid_reach *reach);
/* Chunks are injected now, with this stamp. */
void hybrid_reach_on_injection(struct hybrid_reach *reach, uint32_t stamp, lh_time rtt_ns, lh_time now);
/* What has a stamp below this was injected more than `eighths` of a round trip ago, at the latest
 * injection. 0 for HYBRID_TAIL_ALL, UINT32_MAX for 0. */
uint32_t hybrid_reach_from(const struct hybrid_reach *reach, uint32_t eighths);

/* ---- coding ---------------------------------------------------------------------------------------- */

/* The code of the hybrid scheme: that of schemes/ec, with the parameters of params.h. */

extern const struct lh_scheme_coding hybrid_coding;

/* params must be valid. A message of one chunk has no parity (layout->places is 0). */
struct ec_layout hybrid_layout_of(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);

#endif
