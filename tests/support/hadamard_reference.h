/*
 * hadamard_reference.h - the transform by its definition in longhaul/hadamard.h, in double precision; and
 * tensors of each type.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_HADAMARD_REFERENCE_H
#define LH_TESTS_HADAMARD_REFERENCE_H

#include <longhaul/hadamard.h>

#include "base/prng.h"

/* Of the element of a seed: 1 or -1. */
int tensor_sign(uint64_t seed, uint64_t element);
/* One coefficient of a block of `block` elements: row k of the matrix, each factor on its own. */
double tensor_coefficient(const double *in, uint32_t block, uint32_t k);
/* The orthonormal transform of a block in place, by halves: as tensor_coefficient() for each k. */
void tensor_transform(double *block, uint32_t elements);
/* Signs, blocks and packets of a whole tensor. norms: of each coefficient's block, or NULL. */
void tensor_encode(const struct lh_hadamard *hadamard, const double *in, double *out, double *norms,
                   size_t count);

/* Element i of a tensor of this type. */
double tensor_get(const void *tensor, size_t i, enum lh_hadamard_type type);
/* Sets it to the nearest number of the type. */
void tensor_put(void *tensor, size_t i, double value, enum lh_hadamard_type type);
size_t tensor_bytes(enum lh_hadamard_type type);
/* By how much a coefficient may differ, by the header: of a block of this norm. */
double tensor_tolerance(const struct lh_hadamard *hadamard, double value, double norm);

/* A sum of 12 uniform numbers: mean 0, standard deviation 1. */
double tensor_normal(struct lh_prng *prng);

#endif
