/*
 * disk_space.h - disk space for a file whose length is claimed ahead: checked at once, set aside as it
 * arrives.
 *
 * A peer that announces a length and sends nothing takes no space from others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_DISK_SPACE_H
#define LH_CLI_FILE_DISK_SPACE_H

#include <stdint.h>

/* Set aside ahead of what has arrived; long pieces keep the file in one place on disk. */
#define CLI_DISK_SPACE_STEP ((uint64_t)64 << 20)

/* Whether the file system has room for a file of that length, counting what the file holds already. 0, or
 * -ENOSPC. 0 where it is unknown: writing fails then. */
int cli_disk_space_check(int file, uint64_t size_bytes);

/* Bytes that are free; 0 where it is unknown. */
uint64_t cli_disk_space_free(int file);

/* Sets space aside for bytes up to end_bytes, and a step more, of a file of size_bytes; *reserved_bytes: how
 * far that went already. 0, or -errno. 0 where the file system cannot: writing fails then. */
int cli_disk_space_reserve(int file, uint64_t size_bytes, uint64_t end_bytes, uint64_t *reserved_bytes);

#endif
