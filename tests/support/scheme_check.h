/*
 * scheme_check.h - a scheme whose machines are watched: the rules of longhaul/scheme.h, at each step.
 *
 * The first breach ends the process and names the rule. A checked scheme does what the scheme does, with a
 * larger state.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_SCHEME_CHECK_H
#define LH_TESTS_SUPPORT_SCHEME_CHECK_H

#include <longhaul/scheme.h>

/* X(name, what it demands) */
#define SCHEME_RULES(X)                                                                                    \
    X(action, "a kind of action that this machine may issue")                                              \
    X(list, "at most LH_ACTIONS_MAX actions")                                                              \
    X(range, "chunks of the message, or extra chunks, and one at least")                                   \
    X(budget, "no more chunks than budget_chunks")                                                         \
    X(recall, "no chunks without an event after a step that left budget unused")                           \
    X(next, "next_ns after now, or LH_TIME_NEVER")                                                         \
    X(in_flight, "in_flight_chunks set, at most the chunks that were injected")                            \
    X(again, "again only for chunks that were injected before")                                            \
    X(message, "a message of 1 to LH_SCHEME_MESSAGE_MAX bytes")                                            \
    X(encode, "rows of a group that there is, at most LH_ENCODES_MAX requests pending")                    \
    X(extra, "extra chunks only while extra_open")                                                         \
    X(complete, "COMPLETE once, of a known length, when every chunk is there or can be decoded")           \
    X(finish, "FINISH once, of a known length, only of a scheme with a deadline")                          \
    X(sent, "SENT once, only of a scheme with a deadline; no chunks after it, no encode pending")          \
    X(after, "nothing after COMPLETE, FINISH or FAIL")                                                     \
    X(error, "FAIL with an error of enum lh_error")

enum scheme_rule {
#define SCHEME_RULE_ENUM(name, words) SCHEME_RULE_##name,
    SCHEME_RULES(SCHEME_RULE_ENUM)
#undef SCHEME_RULE_ENUM
        SCHEME_RULE_COUNT,
};

/* The same for the same scheme, of which there are at most 16 in a process; NULL for NULL. */
const struct lh_scheme *scheme_checked(const struct lh_scheme *scheme);

/* Called at a breach instead of ending the process; must not return. NULL: end it. */
void scheme_check_on_breach(void (*handler)(enum scheme_rule rule));

#endif
