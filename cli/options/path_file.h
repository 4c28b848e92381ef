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
 * folder, which is created. NULL: none. Valid until the next call. CLI_PROCEED, or reports that the given one
 * is a file of something else. */
int cli_path_file(const char *given, const char **file);

#endif
