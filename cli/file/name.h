/*
 * name.h - which names a file that comes from elsewhere may have.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_NAME_H
#define LH_CLI_FILE_NAME_H

#include <stddef.h>

/* What file systems take (NAME_MAX), and a message carries. */
#define CLI_FILE_NAME_MAX 255

/* What names of unfinished files end in. */
#define CLI_PARTIAL_SUFFIX ".longhaul-partial"
#define CLI_RESUME_SUFFIX  ".longhaul-resume"
#define CLI_COMMIT_SUFFIX  ".longhaul-commit"

/* The name of an unfinished file: .NAME and the suffix; where that is longer than a name may be, the
 * beginning of NAME and its digest take its place. So it is found again by NAME alone, also after a crash.
 * Returns out. */
char *cli_file_name_unfinished(const char *name, const char *suffix, char out[CLI_FILE_NAME_MAX + 1]);

/* NULL when the name is one plain name that is safe to create; else what is wrong with it, in words that go
 * after "the name". */
const char *cli_file_name_wrong(const char *name, size_t bytes);

#endif
