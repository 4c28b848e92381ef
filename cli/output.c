/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As shells report a process that a signal ended. */
#define EXIT_BY_SIGNAL 128

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

int cli_output_end(int status)
{
    /* What failed within a printf() left no reason: a further write has it. */
    if (ferror(stdout))
        fputc('\n', stdout);
    cli_output_flush();
    /* Some file systems report a full disk no earlier. */
    if (close(STDOUT_FILENO) && !first_error)
        first_error = errno;
    if (status != CLI_EXIT_OK || (!first_error && !ferror(stdout)))
        return status;
    if (first_error == EPIPE)
        return EXIT_BY_SIGNAL + SIGPIPE;
    return cli_failed("standard output: %s", first_error ? strerror(first_error) : "writing failed");
}
