/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- addresses --------------------------------------------------------------------------------------- */

/* Connecting a datagram socket sends nothing, and chooses the address. */
static const char *choose_address(const struct addrinfo *host, char address[CLI_RUN_ADDRESS_MAX])
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    const char *failure = NULL;
    int fd = socket(host->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, host->ai_addr, host->ai_addrlen) ||
        getsockname(fd, (struct sockaddr *)&own, &size))
        failure = strerror(errno);
    else if (getnameinfo((struct sockaddr *)&own, size, address, CLI_RUN_ADDRESS_MAX, NULL, 0,
                         NI_NUMERICHOST))
        failure = "no address";
    if (fd >= 0)
        close(fd);
    return failure;
}

const char *cli_remote_address(const char *host, int family, char address[CLI_RUN_ADDRESS_MAX],
                               bool *unknown)
{
    const struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM};
    const char *at = strrchr(host, '@'), *failure = NULL;
    struct addrinfo *list;
    int failed = getaddrinfo(at ? at + 1 : host, "9", &hints, &list);
    *unknown = failed != 0;
    if (failed)
        return gai_strerror(failed);
    for (const struct addrinfo *one = list; one; one = one->ai_next) {
        failure = choose_address(one, address);
        if (!failure)
            break;
    }
    freeaddrinfo(list);
    return failure;
}

/* ---- the script -------------------------------------------------------------------------------------- */

/* As one word of a shell. */
static void put_quoted(FILE *out, const char *word)
{
    fputc('\'', out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (const char[]){*word, '\0'}, out);
    fputc('\'', out);
}

static void put_variable(FILE *out, const char *name, const char *value)
{
    fprintf(out, "export %s=", name);
    put_quoted(out, value);
    fputc('\n', out);
}

/* What runs there, of a POSIX shell. */
static char *make_script(const struct cli_run_job *job, uint32_t rank, char **command)
{
    const char *interfaces = getenv("LONGHAUL_SOCKET_IFNAME");
    char *script = NULL;
    size_t size;
    FILE *out = open_memstream(&script, &size);
    if (!out)
        return NULL;
    fprintf(out, "export RANK=%" PRIu32 " WORLD_SIZE=%" PRIu32 " MASTER_PORT=%u\n", rank, job->ranks,
            job->port);
    put_variable(out, "MASTER_ADDR", job->remotes[rank].master);
    put_variable(out, "LONGHAUL_SECRET", job->secret);
    if (interfaces)
        put_variable(out, "LONGHAUL_SOCKET_IFNAME", interfaces);
    fputs("exec", out);
    for (; *command; command++) {
        fputc(' ', out);
        put_quoted(out, *command);
    }
    fputs("\n", out);
    fclose(out);
    return script;
}

bool cli_remote_make(const struct cli_run_job *job, uint32_t rank, char **command,
                     struct cli_remote_command *remote)
{
    size_t count = 0;
    char *rest;
    remote->shell = strdup(job->shell);
    remote->script = make_script(job, rank, command);
    if (!remote->shell || !remote->script) {
        cli_remote_free(remote);
        return false;
    }
    for (char *word = strtok_r(remote->shell, " \t", &rest); word && count < CLI_REMOTE_WORDS_MAX;
         word = strtok_r(NULL, " \t", &rest))
        remote->words[count++] = word;
    remote->words[count++] = (char *)job->remotes[rank].host;
    remote->words[count++] = (char *)"sh";
    remote->words[count] = NULL;
    return true;
}

void cli_remote_free(struct cli_remote_command *remote)
{
    free(remote->shell);
    free(remote->script);
}
