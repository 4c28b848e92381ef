/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/paths_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char paths_file[80];

static char folder[64];

int paths_folder_make(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/longhaul-test-paths.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(paths_file, sizeof paths_file, "%s/paths", folder);
    return 0;
}

int paths_folder_remove(void **state)
{
    (void)state;
    remove(paths_file);
    return rmdir(folder);
}
