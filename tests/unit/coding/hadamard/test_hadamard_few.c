/*
 * test_hadamard_few.c - the tests of test_hadamard.c with fewer tensors: two seconds in place of half a
 * minute, so that they run against each planted fault.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define FEW 1
#include "unit/coding/hadamard/test_hadamard.c"
