/*
 * auto_choice.h - `auto`: the scheme of each message by the model, remembered by size; its parameters.
 *
 * Each answer is at hand: for sizes that were asked before it is looked up. A new size gets the answer of
 * the nearest one that is known, at first none; a *job* weighs the candidates meanwhile, one each time
 * auto_choice_work() is called, which takes the time of one formula (docs/planning.md). The same happens when
 * the path has become another one. A size keeps its scheme unless another is faster by
 * AUTO_CHOICE_BETTER, or is about as fast and sends less: what is about as fast is not worth a change.
 *
 * A path that is measured can change with each message, and sizes with each receive. So that whoever weighs
 * finds time for packets, too, there is a rest after each job, of AUTO_CHOICE_PAUSE times what it took.
 *
 * The answers outlive the memory for weighing: auto_choice_keep() and auto_choice_recall() carry over which
 * candidate each size has.
 *
 * Candidates within LH_PLAN_TIE of the fastest count as equally fast; the one that sends least is taken.
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_AUTO_CHOICE_H
#define LH_SCHEMES_AUTO_CHOICE_H

#include <longhaul/plan.h>
#include <longhaul/scheme.h>

#define AUTO_CHOICE_CANDIDATES 32u
#define AUTO_CHOICE_CLASSES    257u /* of sizes, each remembered: four an octave, and no 0 */
#define AUTO_CHOICE_PAUSE      20u  /* times as long as a job took there is no other */

struct auto_candidate {
    const struct lh_scheme *scheme;
    uint8_t params[LH_SCHEME_PARAMS];
    struct lh_model_scheme model;
};

/* The path as it is planned for. */
struct auto_path {
    double rtt_s;
    double window_s; /* a gap counts as a loss after that */
    double bandwidth_bps;
    double chunk_loss;
    double burst_packets;
};

/* What is known of messages of about one size. */
struct auto_answer {
    bool known;
    uint64_t message_bytes;
    struct auto_path path; /* that was planned for */
    uint32_t chosen;       /* candidate */
    double seconds;        /* expected of it; 0: the model cannot tell */
    uint32_t other; /* the fastest that repairs the other way, by repeats or by parity; or UINT32_MAX */
    double other_seconds;
};

/* Weighing all candidates for one size. */
struct auto_job {
    bool active;
    uint32_t size_class;
    uint32_t next; /* candidate */
    struct lh_plan_question question;
    struct lh_plan_choice weighed[AUTO_CHOICE_CANDIDATES];
    struct auto_path path;
};

struct auto_choice {
    uint32_t chunk_bytes;
    struct lh_plan_question question; /* limits, and what is to be small */
    struct auto_candidate candidates[AUTO_CHOICE_CANDIDATES];
    uint32_t count;
    struct auto_answer answers[AUTO_CHOICE_CLASSES]; /* by class */
    struct auto_job job;
    lh_time worked_ns;   /* what the job has taken so far */
    lh_time pause_until; /* after a job that took long */
    bool pausing;        /* it is not over, says the caller: no job is begun */
    uint64_t asked;
    uint64_t plans;   /* jobs that were finished */
    uint64_t changes; /* of them, those by which a size got another scheme than before */
};

/* What is kept of a choice whose memory is given back. */
struct auto_kept {
    uint8_t chosen[AUTO_CHOICE_CLASSES]; /* candidate, from 1; 0: the size is not known */
    uint64_t plans, changes;
    lh_time pause_until;
};

struct auto_setup {
    uint32_t mtu_bytes;
    uint32_t chunk_bytes;
    uint32_t slot_chunks; /* that an SDR message holds */
    uint32_t slots;
    uint32_t cores; /* that may encode */
    enum lh_plan_by by;
    double max_overhead; /* INFINITY: no limit */
    uint16_t announced;  /* by the sender: schemes that not every one knows (scheme_table_announced()) */
};

void auto_choice_init(struct auto_choice *choice, const struct auto_setup *setup);
/* Each size of a choice with the same setup has its candidate again, and is planned for when it is asked. */
void auto_choice_recall(struct auto_choice *choice, const struct auto_kept *kept);
void auto_choice_keep(const struct auto_choice *choice, struct auto_kept *kept);
/* What a message of that many bytes comes by, a candidate; AUTO_CHOICE_NONE: no size is known. Starts a job
 * when that is to be found out. */
#define AUTO_CHOICE_NONE UINT32_MAX
uint32_t auto_choice_get(struct auto_choice *choice, uint64_t message_bytes, const struct auto_path *path);
/* Weighs one candidate. Whether there are more. */
bool auto_choice_work(struct auto_choice *choice);
/* That took so long, until now. Sets pause_until when the job is done. */
void auto_choice_worked(struct auto_choice *choice, lh_time now, lh_time took_ns);
/* What is known of messages of about that size; NULL: nothing was planned for them. */
const struct auto_answer *auto_choice_answer(const struct auto_choice *choice, uint64_t message_bytes);

/* ---- params ---------------------------------------------------------------------------------------- */

/* The parameters of `auto`. */

/* The text behind "auto,": "" or "by=mean|p50|p99|p999,overhead=SHARE". -LH_EINVAL. */
int auto_params_parse(const char *text, enum lh_plan_by *by, double *max_overhead);

#endif
