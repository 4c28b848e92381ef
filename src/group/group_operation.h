/*
 * group_operation.h - one collective at one rank, from its call to its end: runs the dependencies of
 * collective/operation_progress.h over the links of its group.
 *
 * All under the lock of the mesh. An operation neither reads messages nor waits: arrivals come in as calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_OPERATION_H
#define LH_GROUP_GROUP_OPERATION_H

#include "group/operation_state.h"

/* Makes an operation, which has not begun. -LH_EINVAL, -LH_ENOMEM. */
int op_create(struct op_context *context, const struct op_request *request, const struct schedule *schedule,
              struct lh_collective **op);
/* Sends signatures and the first pieces. 0, or what ends it, and *rank says whose link failed, or who is the
 * cause; LH_NO_RANK: no one. Then call op_fail(). */
int op_begin(struct lh_collective *op, lh_time now, uint32_t *rank);
/* The signature of a rank. 0; -LH_EPROTOCOL: it differs, and text[size] says how. */
int op_on_signature(struct lh_collective *op, uint32_t rank, const struct signature *signature, char *text,
                    size_t size);
/* A piece of a rank that has agreed, in a buffer, or, without one, as data that is copied. Buffer and loss
 * are the operation's where it sets them to NULL. -LH_EPROTOCOL: no such piece; -LH_ENOMEM. */
struct op_piece {
    uint32_t piece; /* of the tag */
    const uint8_t *data;
    size_t bytes;
    struct bounce *bounce;
    struct loss *loss;
};
int op_on_piece(struct lh_collective *op, uint32_t rank, struct op_piece *in);
/* The contributions of a piece of such a rank. Likewise. */
int op_on_counts(struct lh_collective *op, uint32_t rank, const struct op_piece *in);
/* The buffer of a piece that waits for others is needed for more messages: copies it, where it is small or
 * few are left. -LH_ENOMEM. */
int op_unload(struct lh_collective *op, uint32_t rank, uint32_t piece);
/* Applies what is due, sends what may leave, and ends when all is done. 0, or what ends it, with the rank
 * that the error is of: then call op_fail(). */
int op_run(struct lh_collective *op, lh_time now, uint32_t *rank);
/* Whether it needs anything of a rank, or has something for it. */
bool op_needs(const struct lh_collective *op, uint32_t rank);
/* Ends it with an error. */
void op_fail(struct lh_collective *op, lh_time now, const struct notice *notice);
/* It is done. */
void op_destroy(struct lh_collective *op);

/* ---- deadlines ------------------------------------------------------------------------------------- */

/*
 * Deadlines of operations that nobody has given (`bounded`, or `bounded:deadline=auto`): a
 * group's timeout (longhaul/timeout.h) for each collective. The first operation has none, and is the
 * warm-up; after each of the others a rank proposes to all what its bytes took, over the reliable path,
 * and waits for nobody.
 */

/* A proposal. -LH_EPROTOCOL: it is none; -LH_ENOMEM. */
int deadlines_on_proposal(struct op_context *context, uint32_t rank, uint32_t collective,
                          const uint8_t *data, size_t bytes);

#endif
