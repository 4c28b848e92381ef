/*
 * path_file.h - where the command remembers paths.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_PATH_FILE_H
#define LH_CLI_OPTIONS_PATH_FILE_H

/* The help of --path-file. */
#define CLI_PATH_FILE_HELP "file of remembered paths, or 'none' (longhaul/paths in the user's cache folder)"

/* For lh_attr.path_file: what --path-file gives (NULL: not given). By default a file in the user's cache
 * folder, which is created. NULL: none. Valid until the next call. */
const char *cli_path_file(const char *given);

#endif
