/*
 * scheme_table.h - the schemes of this build. lh_schemes() is in <longhaul/scheme.h>, lh_model_schemes() in
 * <longhaul/model.h>.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SCHEME_TABLE_H
#define LH_SCHEMES_SCHEME_TABLE_H

#include "model/predictor.h"

/* All of them, ended by NULL: also those that only the model knows. */
const struct scheme_entry *const *scheme_table(void);
/* NULL: there is none. The name need not end in zero. */
const struct scheme_entry *scheme_table_named(const char *name, size_t bytes);
const struct scheme_entry *scheme_table_kind(enum lh_model_kind kind);
/* The bytes of the name with which a text begins, "ec:mds" of "ec:mds,k=32", and of
 * "bounded:deadline=20ms" that of "bounded,deadline=20ms"; *rest: what stands behind the comma or colon,
 * "" without one. */
size_t scheme_table_name(const char *text, const char **rest);
/* The machines of a scheme that the library runs; NULL: there are none of that name. */
const struct lh_scheme *scheme_table_machines(const char *name, size_t bytes);
/* The flag by which a peer announces that it can send by this scheme, one that peers of the first release do
 * not know; 0: there is none. */
uint16_t scheme_table_announced(const struct lh_scheme *scheme);
/* The flags of all schemes: what this build announces. */
uint16_t scheme_table_announcements(void);

/* ---- scheme model ---------------------------------------------------------------------------------- */

/*
 * The calls of the model that need a scheme: each finds the scheme's predictor in the
 * table.
 */

/* -LH_EINVAL, -LH_ERANGE: there is no such scheme, or as model_predictor_start(). */
int scheme_model_start(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                       struct model_prediction *prediction);

#endif
