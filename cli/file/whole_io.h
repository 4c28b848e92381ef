/*
 * whole_io.h - pread and pwrite that go on until all is done.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_WHOLE_IO_H
#define LH_CLI_FILE_WHOLE_IO_H

#include <stddef.h>
#include <stdint.h>

/* Bytes read, fewer only at the end of the file; or -errno. */
int64_t cli_read_at(int file, void *data, size_t bytes, uint64_t offset);
/* 0 or -errno. */
int cli_write_at(int file, const void *data, size_t bytes, uint64_t offset);

#endif
