/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* errno of the first flush that failed. stdio itself drops what it could not write and forgets why. */
static int first_error;

void cli_output_start(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void cli_output_flush(void)
{
    if (fflush(stdout) && !first_error)
        first_error = errno;
}

int cli_output_end(void)
{
    /* What failed within a printf() left no reason: a further write has it. */
    if (ferror(stdout))
        fputc('\n', stdout);
    cli_output_flush();
    /* Some file systems report a full disk no earlier. */
    if (close(STDOUT_FILENO) && !first_error)
        first_error = errno;
    return first_error || !ferror(stdout) ? first_error : EIO;
}
