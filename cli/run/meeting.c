/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/meeting.h"

#include "cli/terminal/diagnostic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* Keeps a free port while the ranks run: nobody else gets it, and rank 0 may listen there, since neither
 * socket minds that the address is in use (SO_REUSEADDR), and this one does not listen. */
static int reserve_port(struct cli_run_job *job, int *fd)
{
    struct sockaddr_in any = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(job->remotes ? INADDR_ANY : INADDR_LOOPBACK)};
    socklen_t size = sizeof any;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd >= 0) {
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
        if (!bind(*fd, (struct sockaddr *)&any, size) &&
            !getsockname(*fd, (struct sockaddr *)&any, &size)) {
            job->port = ntohs(any.sin_port);
            return CLI_PROCEED;
        }
        close(*fd);
    }
    return cli_failed("no free port: %s", strerror(errno));
}

/* The user's, or a random one: others, such as other users of this machine, cannot join. */
static int make_secret(struct cli_run_job *job)
{
    uint8_t random[16];
    const char *given = getenv("LONGHAUL_SECRET");
    if (given && *given) {
        if (strlen(given) >= sizeof job->secret)
            return cli_failed("LONGHAUL_SECRET: longer than %zu bytes", sizeof job->secret - 1);
        strcpy(job->secret, given);
        return CLI_PROCEED;
    }
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return cli_failed("getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(job->secret + 2 * i, 3, "%02x", random[i]);
    return CLI_PROCEED;
}

int cli_meeting_choose(struct cli_run_job *job, int *fd)
{
    int status = make_secret(job);
    return status == CLI_PROCEED ? reserve_port(job, fd) : status;
}
