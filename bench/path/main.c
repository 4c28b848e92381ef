/*
 * main.c - longhaul-path: a bottleneck between two network namespaces, which any program's packets cross.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "commands.h"
#include "names.h"
#include "options.h"
#include "report.h"

#include "cli/path/path_line.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll
/* How long the left command waits for the right one. */
#define LISTEN_NS (5 * NS_PER_S)
#define POLL_NS   (20 * NS_PER_S / 1000)

enum { EXIT_SKIP = 77, EXIT_USAGE = 2 };

static volatile sig_atomic_t interrupted; /* stops path_run() */
static volatile sig_atomic_t ended, asked;

static void on_signal(int number)
{
    if (number == SIGUSR1)
        asked = 1;
    else if (number != SIGCHLD)
        ended = 1;
    interrupted = 1;
}

static void catch_signals(void)
{
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
    struct sigaction action = {.sa_handler = on_signal};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

struct show {
    const struct path_options *options;
    struct path_end end[PATH_ENDS];
    struct path path;
    int64_t started_ns;
    unsigned changes; /* made */
    pid_t left, right;
    int status;     /* of the left command */
    cpu_set_t ends; /* processors of both; none: any */
};

static void report(const struct show *show)
{
    FILE *out = show->options->json ? fopen(show->options->json, "we") : stdout;
    if (!out) {
        fprintf(stderr, "longhaul-path: %s: %s\n", show->options->json, strerror(errno));
        return;
    }
    path_report(out, &show->path, show->end, show->started_ns);
    if (out != stdout)
        fclose(out);
}

static void make_changes(struct show *show)
{
    const struct path_options *options = show->options;
    for (; show->changes < options->changes; show->changes++) {
        const struct path_change *change = &options->change[show->changes];
        if (path_now() - show->started_ns < change->at_ns)
            return;
        for (unsigned side = 0; side < PATH_ENDS; side++)
            path_set_rate(&show->path, side, change->rate_bps[side]);
    }
}

static void run_commands(struct show *show)
{
    char **const *argv = show->options->argv;
    int status;
    int64_t age_ns = path_now() - show->started_ns;
    if (!argv[PATH_LEFT])
        return;
    if (argv[PATH_RIGHT] && !show->right)
        show->right = path_command_start(&show->end[PATH_RIGHT], &show->ends, argv[PATH_RIGHT]);
    if (!show->left && (!show->right || path_command_listens(&show->end[PATH_RIGHT]) || age_ns > LISTEN_NS))
        show->left = path_command_start(&show->end[PATH_LEFT], &show->ends, argv[PATH_LEFT]);
    if (show->left && waitpid(show->left, &status, WNOHANG) == show->left) {
        show->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        ended = 1;
    }
}

static void perform(struct show *show)
{
    while (!ended) {
        interrupted = 0;
        run_commands(show);
        make_changes(show);
        if (asked) {
            asked = 0;
            report(show);
        }
        if (!ended)
            path_run(&show->path, path_now() + POLL_NS, &interrupted);
    }
}

static void announce(const struct path_options *options)
{
    printf("left:  ip netns exec %s-left COMMAND    %s  %s\n"
           "right: ip netns exec %s-right COMMAND   %s  %s\n"
           "ready; kill -USR1 %d writes statistics\n",
           options->name, path_ipv4[PATH_LEFT], path_ipv6[PATH_LEFT], options->name, path_ipv4[PATH_RIGHT],
           path_ipv6[PATH_RIGHT], (int)getpid());
    fflush(stdout);
}

static bool open_flows(struct show *show)
{
    bool open = true;
    for (unsigned i = 0; open && i < show->options->flows; i++)
        open = path_end_add_host(&show->end[PATH_LEFT], PATH_FLOW_FIRST + i) &&
               path_end_add_host(&show->end[PATH_LEFT], PATH_FLOW_FAR_FIRST + i);
    for (unsigned side = 0; open && show->options->flows && side < PATH_ENDS; side++) {
        show->path.direction[side].flows = calloc(1, sizeof *show->path.direction[side].flows);
        open = show->path.direction[side].flows;
        if (open)
            show->path.direction[side].flows->started_ns = show->started_ns;
    }
    return open;
}

static bool open_nat(struct show *show)
{
    if (show->options->nat)
        show->path.nat = calloc(1, sizeof *show->path.nat);
    return !show->options->nat || show->path.nat;
}

/* The exit status, or 0. */
static int open_show(struct show *show)
{
    char reason[256];
    const struct path_options *options = show->options;
    if (!path_ends_open(show->end, options->mtu, reason, sizeof reason)) {
        fprintf(stderr, "longhaul-path: %s (needs root and /dev/net/tun)\n", reason);
        return EXIT_SKIP;
    }
    if (!path_open(&show->path, show->end, options->direction, options->mtu) || !open_nat(show)) {
        fprintf(stderr, "longhaul-path: out of memory (a smaller --queue)\n");
        return EXIT_FAILURE;
    }
    show->started_ns = path_now();
    if (!open_flows(show)) {
        fprintf(stderr, "longhaul-path: flows: %s (a smaller --flows)\n", strerror(errno));
        return EXIT_FAILURE;
    }
    if (options->name && !path_names_open(show->end, options->name, reason, sizeof reason)) {
        fprintf(stderr, "longhaul-path: %s (ip netns delete, or another --name)\n", reason);
        return EXIT_FAILURE;
    }
    return 0;
}

/* Also of one that was not opened to the end. */
static void close_show(struct show *show)
{
    path_command_end(show->left);
    path_command_end(show->right);
    path_names_close();
    for (unsigned side = 0; side < PATH_ENDS; side++)
        free(show->path.direction[side].flows);
    free(show->path.nat);
    path_close(&show->path);
    path_ends_close(show->end);
}

static int run(const struct path_options *options)
{
    struct show show = {.options = options};
    int failed = open_show(&show);
    if (!failed) {
        path_processors_take(&show.ends);
        if (!path_hurry())
            fprintf(stderr, "longhaul-path: no real-time priority, packets may leave late: %s\n",
                    strerror(errno));
        if (options->name)
            announce(options);
        perform(&show);
        report(&show);
    }
    close_show(&show);
    return failed ? failed : show.status;
}

int main(int argc, char **argv)
{
    struct path_options options;
    int status = path_options_parse(&options, argc, argv);
    if (status >= 0)
        return status;
    catch_signals();
    return run(&options);
}
