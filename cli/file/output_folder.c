/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/output_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_output_folder_open(const char *path, int *folder, char reason[CLI_OUTPUT_FOLDER_REASON_MAX])
{
    if (!*path) {
        snprintf(reason, CLI_OUTPUT_FOLDER_REASON_MAX, "--output: empty (example: --output .)");
        return false;
    }
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) {
        snprintf(reason, CLI_OUTPUT_FOLDER_REASON_MAX, "--output %s: %s%s", path, strerror(errno),
                 errno == ENOENT ? " (create the folder first)" : "");
        return false;
    }
    if (faccessat(opened, ".", W_OK | X_OK, AT_EACCESS)) {
        snprintf(reason, CLI_OUTPUT_FOLDER_REASON_MAX, "--output %s: not writable: %s", path,
                 strerror(errno));
        close(opened);
        return false;
    }
    *folder = opened;
    return true;
}

mode_t cli_umask(void)
{
    mode_t mask = umask(077);
    umask(mask);
    return mask;
}
