/*
 * path_file.h - the small file in which a path_history is kept.
 *
 * It is a cache: a file that is missing, damaged or cannot be written costs what it would have brought, and
 * is no error. It is replaced as a whole, so that no reader sees half of it; of two writers at the same time
 * the later one wins. A file that is not one of ours is never written: only a missing or an empty one, and
 * one that begins like ours. Links are followed; mode and owner stay.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_HISTORY_PATH_FILE_H
#define LH_HISTORY_PATH_FILE_H

#include "history/path_history.h"

#define PATH_FILE_NAME_MAX 4096u /* PATH_MAX */

/* The text of a host address, for a record. family: 4 or 6; address in network order; an IPv4-mapped IPv6
 * address is the IPv4 address that it stands for. */
void path_file_address(char out[PATH_HISTORY_ADDRESS_MAX], uint8_t family, const uint8_t address[16]);

/* False: nothing usable is known of the path. Else the record, and its age. */
bool path_file_read(const char *file, const char *peer, const char *local, struct path_record *record,
                    lh_time *age_ns);
/* Remembers the record, as of now (its time_s is not read). False: not written. */
bool path_file_write(const char *file, const struct path_record *record);

#endif
