/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* errno of the first flush that failed. stdio itself drops what it could not write and forgets why. */
static int first_error;

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned bars; /* on the terminal; the cursor stands in the last */

void cli_output_lock(void)
{
    pthread_mutex_lock(&lock);
}

void cli_output_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void go_to_first_bar(void)
{
    fputc('\r', stderr);
    if (bars > 1)
        fprintf(stderr, "\033[%uA", bars - 1);
}

void cli_output_bar(unsigned number, const char *line)
{
    if (number == 0)
        go_to_first_bar();
    fprintf(stderr, "%s%s\033[K", number ? "\n" : "", line);
    fflush(stderr);
    bars = number + 1;
}

void cli_output_erase_bars(void)
{
    if (!bars)
        return;
    go_to_first_bar();
    fputs("\033[J", stderr);
    fflush(stderr);
    bars = 0;
}

void cli_output_start(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void cli_output_flush(void)
{
    cli_output_lock();
    if (fflush(stdout) && !first_error)
        first_error = errno;
    cli_output_unlock();
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
