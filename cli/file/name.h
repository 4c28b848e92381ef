/*
 * name.h - which names a file that comes from elsewhere may have.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_NAME_H
#define LH_CLI_FILE_NAME_H

#include <stddef.h>

/* Prefix and suffix of NAME during a transfer; with both NAME still has to fit the 255 bytes of a
 * name. */
#define CLI_PARTIAL_SUFFIX ".longhaul-partial"
#define CLI_RESUME_SUFFIX  ".longhaul-resume"
#define CLI_COMMIT_SUFFIX  ".longhaul-commit"
#define CLI_FILE_NAME_MAX  237

/* NULL when the name is one plain name that is safe to create; else what is wrong with it, in words that go
 * after "the name". */
const char *cli_file_name_wrong(const char *name, size_t bytes);

#endif
