/*
 * held_release.h - a fabric that still reads what it has taken, as a NIC does, for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_HELD_RELEASE_H
#define LH_TESTS_SUPPORT_HELD_RELEASE_H

#include <sdr.h>

/* From here on the fabric of this queue pair releases nothing that it takes. One at a time. */
void held_release_begin(struct sdr_qp *qp);
/* It releases all, and holds nothing back any more. */
void held_release_end(struct sdr_qp *qp);

#endif
