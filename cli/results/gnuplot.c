/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/results/gnuplot.h"

#include "cli/terminal/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Upper bounds of text sizes, in points; and space beside an entry of a legend. */
#define CHARACTER_WIDTH 9
#define LINE_HEIGHT     23
#define SAMPLE_WIDTH    70
#define EDGE            14

/* What a script begins with. */
#define BEGINNING "set encoding utf8\nset terminal "

extern char **environ;

void cli_gnuplot_text(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++)
        if (*text == '\'')
            fputs("''", script);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, script);
    fputc('\'', script);
}

char *cli_gnuplot_number(double value, char out[CLI_GNUPLOT_NUMBER_MAX])
{
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    int exponent = value > 0 ? (int)floor(log10(value) + 1e-9) : 0;
    double factor = value / pow(10, exponent);
    unsigned digits = exponent < 0 ? (unsigned)-exponent : (unsigned)exponent;
    if (exponent >= 0 && exponent < 4) {
        snprintf(out, CLI_GNUPLOT_NUMBER_MAX, "%.4g", value);
        return out;
    }
    *out = 0;
    if (fabs(factor - 1) > 1e-6)
        snprintf(out, CLI_GNUPLOT_NUMBER_MAX, "%.3g·", factor);
    size_t used = strlen(out);
    snprintf(out + used, CLI_GNUPLOT_NUMBER_MAX - used, "10%s%s%s%s", exponent < 0 ? "⁻" : "",
             digits > 99 ? raised[digits / 100 % 10] : "", digits > 9 ? raised[digits / 10 % 10] : "",
             raised[digits % 10]);
    return out;
}

void cli_gnuplot_decades(FILE *script, const char *axis, int from, int to)
{
    char text[CLI_GNUPLOT_NUMBER_MAX];
    fprintf(script, "set %stics (", axis);
    for (int i = from; i <= to; i++)
        fprintf(script, "%s'%s' 1e%d", i > from ? ", " : "", cli_gnuplot_number(pow(10, i), text), i);
    fputs(")\n", script);
}

struct cli_gnuplot_legend cli_gnuplot_legend(unsigned frame_width, unsigned entries, unsigned longest)
{
    unsigned columns = frame_width / (longest * CHARACTER_WIDTH + SAMPLE_WIDTH);
    if (entries < 2)
        return (struct cli_gnuplot_legend){0, 0};
    columns = columns < 1 ? 1 : columns > entries ? entries : columns;
    return (struct cli_gnuplot_legend){columns, (entries + columns - 1) / columns * LINE_HEIGHT + EDGE};
}

void cli_gnuplot_frame(FILE *script, const struct cli_gnuplot_frame *frame)
{
    double width = frame->width, height = frame->height;
    fprintf(script,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
            frame->left / width, frame->right / width, 1 - frame->top / height, 1 - frame->bottom / height);
}

void cli_gnuplot_key(FILE *script, const struct cli_gnuplot_frame *frame, struct cli_gnuplot_legend legend,
                     unsigned top)
{
    if (legend.columns)
        fprintf(script, "set key at screen 0.5,%.5f center top horizontal maxcols %u\n",
                1 - (top + EDGE / 2.0) / frame->height, legend.columns);
    else
        fputs("unset key\n", script);
}

void cli_gnuplot_start(FILE *script, const char *output, unsigned width, unsigned height, const char *title)
{
    /* Distinct also for colour-blind readers; dark enough on white. */
    static const char *const colours[] = {"#1060b0", "#c84010", "#2f8040", "#8050a0", "#b08000", "#008080",
                                          "#d06090", "#606060", "#60a0e0", "#f09060", "#80c070", "#b090d0"};
    size_t length = strlen(output);
    bool png = length > 4 && !strcmp(output + length - 4, ".png");
    /* A PNG has twice the dots, for screens that have them too. */
    fprintf(script,
            BEGINNING "%s noenhanced size %u,%u font \"sans-serif,13\" background "
                      "\"#ffffff\"\n",
            png ? "pngcairo fontscale 1.7 linewidth 2" : "svg", png ? 2 * width : width,
            png ? 2 * height : height);
    fputs("set output ", script);
    cli_gnuplot_text(script, output);
    fputc('\n', script);
    for (unsigned i = 0; i < sizeof colours / sizeof colours[0]; i++)
        fprintf(script, "set linetype %u linecolor rgb \"%s\" linewidth 2 pointtype 7 pointsize 0.7\n",
                i + 1, colours[i]);
    fputs("set border 3 linecolor rgb \"#555555\"\n"
          "set tics nomirror\n"
          "set grid xtics ytics linecolor rgb \"#e2e2e2\" linewidth 1\n"
          "set key noenhanced reverse Left samplen 2 spacing 1.15\n"
          "set title ",
          script);
    cli_gnuplot_text(script, title);
    fputs(" font \",15\"\n", script);
}

/* Starts gnuplot in the folder, with its complaints to a pipe and nothing on its other streams. 0 or an
 * errno. */
static int start(const struct cli_folder *folder, const char *script, int complaints, pid_t *child)
{
    char *const arguments[] = {(char[]){"gnuplot"}, (char *)(uintptr_t)script, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_addchdir_np(&actions, folder->path);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
    if (!error)
        error = posix_spawnp(child, "gnuplot", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Reads the output of gnuplot, and keeps the first line with the place and cause of an error, such as
 * "fct.gp" line 20: …; the lines before that one are the command and an arrow. */
static void read_complaint(FILE *complaints, char *out, size_t size)
{
    char line[512];
    while (fgets(line, sizeof line, complaints)) {
        if (*out || !strstr(line, " line "))
            continue;
        line[strcspn(line, "\r\n")] = 0;
        snprintf(out, size, ": %.400s", line);
        cli_text_clean(out, strlen(out));
    }
}

/* Runs it to its end. 0 with the status of the process, or an errno. */
static int run(const struct cli_folder *folder, const char *script, int *status, char *complaint,
               size_t size)
{
    int ends[2];
    pid_t child;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    int error = start(folder, script, ends[1], &child);
    close(ends[1]);
    FILE *complaints = fdopen(ends[0], "r");
    if (complaints && !error)
        read_complaint(complaints, complaint, size);
    if (complaints)
        fclose(complaints);
    else
        close(ends[0]);
    while (!error && waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    return error;
}

bool cli_gnuplot_is_script(const char *path)
{
    char text[sizeof BEGINNING - 1];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return errno == ENOENT;
    ssize_t bytes = read(file, text, sizeof text);
    close(file);
    return bytes == 0 || (bytes == (ssize_t)sizeof text && !memcmp(text, BEGINNING, sizeof text));
}

/* What is there by the name; all zero: nothing. */
static struct stat look_at(const struct cli_folder *folder, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return stat(path, &found) ? (struct stat){0} : found;
}

/* What gnuplot left of it is no picture; what it did not touch stays. */
static void remove_remains(const struct cli_folder *folder, const char *picture, const struct stat *before)
{
    struct stat after = look_at(folder, picture);
    if (after.st_ino != before->st_ino || after.st_size != before->st_size ||
        after.st_mtim.tv_sec != before->st_mtim.tv_sec || after.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
        cli_folder_remove(folder, picture);
}

int cli_gnuplot_run(const struct cli_folder *folder, const char *script, const char *picture)
{
    static bool missing;
    int status = 0;
    const struct stat before = look_at(folder, picture);
    char complaint[512] = "";
    if (missing || cli_stopped())
        return CLI_EXIT_FAILED;
    int error = run(folder, script, &status, complaint, sizeof complaint);
    if (error || status)
        remove_remains(folder, picture, &before);
    missing = error == ENOENT || (!error && WIFEXITED(status) && WEXITSTATUS(status) == 127);
    if (missing)
        return cli_failed("%s/%s: no picture: gnuplot not found (apt-get install gnuplot-nox, then "
                          "gnuplot %s in %s)",
                          folder->path, picture, script, folder->path);
    if ((error || status) && !cli_stopped())
        cli_failed("%s/%s: no picture: gnuplot failed%s%s", folder->path, picture, error ? ": " : "",
                   error ? strerror(error) : complaint);
    return error || status ? CLI_EXIT_FAILED : CLI_PROCEED;
}
