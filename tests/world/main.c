/*
 * main.c - the command line of the fault world; see usage() and docs/fault-world.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world/batch.h"
#include "world/describe.h"
#include "world/memory.h"
#include "world/shrink.h"

#define SHRINK_TRIES 600u
#define SHRUNK_MAX   4u   /* failures of a batch that are made smaller */
#define CANARY_SEEDS 400u /* a canary alters something in one run of this many */

typedef unsigned long long wide; /* for %llu */

enum action {
    ACTION_BATCH,
    ACTION_SOAK,
    ACTION_ONE,
    ACTION_CANARY,
    ACTION_CANARIES,
    ACTION_SAME,
    ACTION_HASHES,
    ACTION_LIST,
};

struct options {
    enum action action;
    uint64_t seed;
    uint64_t first;
    uint64_t seeds;
    unsigned jobs;
    bool trace;
    bool describe;
    bool shrink;
    bool no_shrink;
    const char *without;
    const char *only;
    const char *list;
    enum world_canary canary;
};

static const char *const canary_names[] = {
#define CANARY_NAME(name, checker, words) #name,
    WORLD_CANARIES(CANARY_NAME)
#undef CANARY_NAME
};

/* The checker that must object. */
static const char *const canary_checkers[] = {
#define CANARY_CHECKER(name, checker, words) checker,
    WORLD_CANARIES(CANARY_CHECKER)
#undef CANARY_CHECKER
};

static void usage(void)
{
    puts("test_world [--first S] [--seeds N] [--jobs J] [--no-shrink]\n"
         "                    runs seeds S … S + N - 1; failures are made smaller. S: 2^62, where senders "
         "with\n"
         "                    controllers, and lies to these, begin; from 2^63 on with engines, from\n"
         "                    7 * 2^61 on with one-sided operations, too; from 15 * 2^60 on groups\n"
         "test_world --soak [--first S] [--jobs J] [--no-shrink]\n"
         "                    the same, until stopped\n"
         "test_world --seed S [--without LIST | --only LIST] [--describe] [--trace] [--shrink]\n"
         "                    one seed; LIST has numbers and ranges of events, kinds of events, and "
         "features:\n"
         "                    3,5-9,crash,loss\n"
         "test_world --list FILE\n"
         "                    seeds and lists of a file, a line each\n"
         "test_world --same N [--first S]\n"
         "                    each seed twice: both runs must be the same\n"
         "test_world --hashes N [--first S]\n"
         "                    prints what each seed comes to, to compare builds\n"
         "test_world --canary NAME|all [--first S]\n"
         "                    alters what a checker gets: it must object\n");
    puts("features, in force all the time:");
#define FEATURE_LINE(name, words) printf("  %-10s %s\n", #name, words);
    PLAN_FEATURES(FEATURE_LINE)
#undef FEATURE_LINE
    puts("events:");
#define EVENT_LINE(name, words) printf("  %-10s %s\n", #name, words);
    PLAN_EVENTS(EVENT_LINE)
#undef EVENT_LINE
    puts("canaries:");
#define CANARY_LINE(name, checker, words)                                                                  \
    if (CANARY_##name != CANARY_none)                                                                      \
        printf("  %-10s %s\n", #name, words);
    WORLD_CANARIES(CANARY_LINE)
#undef CANARY_LINE
}

/* ---- one seed ---------------------------------------------------------------------------------------- */

static void print_report(uint64_t seed, const struct world_report *report)
{
    printf("seed %llu: %s%s%s; hash %016llx, %llu turns, %llu us\n", (wide)seed,
           report->checker[0] ? report->checker : "well", report->checker[0] ? ": " : "", report->failure,
           (wide)report->hash, (wide)report->turns, (wide)(report->took_ns / LH_NS_PER_US));
}

/* Makes it smaller, and prints how to run what is left. */
static void print_shrunk(struct plan *plan, struct world_report *report)
{
    uint32_t tries = shrink_plan(plan, CANARY_none, SHRINK_TRIES, report);
    printf("--- made smaller in %u runs: %s: %s\n", tries, report->checker, report->failure);
    describe_plan(stdout, plan);
    printf("replay: build/tests/world/");
    describe_command(stdout, plan);
}

static int run_one(const struct options *options)
{
    static struct plan plan;
    struct world_report report;
    plan_draw(options->seed, &plan);
    if ((options->without && !describe_apply(&plan, options->without, false)) ||
        (options->only && !describe_apply(&plan, options->only, true))) {
        fprintf(stderr, "test_world: a word of the list means nothing for this seed; see --describe\n");
        return 2;
    }
    if (options->describe)
        describe_plan(stdout, &plan);
    if (options->shrink) {
        batch_run_alone(&plan, CANARY_none, &report);
        print_report(options->seed, &report);
        if (report.checker[0])
            print_shrunk(&plan, &report);
        return report.checker[0] != '\0';
    }
    world_run(&plan, CANARY_none, options->trace ? stdout : NULL, &report);
    print_report(options->seed, &report);
    return report.checker[0] != '\0';
}

/* ---- many seeds -------------------------------------------------------------------------------------- */

static void print_failures(const struct options *options, const struct batch_result *result)
{
    static struct plan plan;
    for (uint64_t i = 0; i < result->failures && i < BATCH_FAILURES_MAX; i++) {
        const struct batch_failure *failed = &result->failed[i];
        printf("seed %llu: %s: %s\n", (wide)failed->seed, failed->checker, failed->failure);
    }
    for (uint64_t i = 0; !options->no_shrink && i < result->failures && i < SHRUNK_MAX; i++) {
        struct world_report report;
        plan_draw(result->failed[i].seed, &plan);
        batch_run_alone(&plan, CANARY_none, &report);
        if (report.checker[0])
            print_shrunk(&plan, &report);
        else
            printf("seed %llu is well when it runs alone\n", (wide)result->failed[i].seed);
    }
}

static int run_batch(const struct options *options)
{
    struct batch_result result;
    uint64_t seeds = options->action == ACTION_SOAK ? UINT64_MAX : options->seeds;
    printf("seeds %llu and on, in %u processes\n", (wide)options->first, options->jobs);
    batch_run(options->first, seeds, options->jobs, &result);
    print_failures(options, &result);
    printf("%llu seeds from %llu, %llu failed; %.0f a second in %u processes\n", (wide)result.seeds,
           (wide)options->first, (wide)result.failures, (double)result.seeds / result.seconds,
           options->jobs);
    printf("%llu messages delivered, %llu canceled, %llu refused; %llu SDR receives; %llu one-sided "
           "operations; lies in %llu seeds; "
           "longest healing: %.2f of its bound (seed %llu)\n",
           (wide)result.delivered, (wide)result.canceled, (wide)result.truncated, (wide)result.exchanged,
           (wide)result.operated, (wide)result.lied, result.heal_share, (wide)result.heal_seed);
    return result.failures > 0 || result.seeds == 0;
}

/* Each line: a seed, perhaps a list of what is left of it (or "-"), and words about what it found. */
static int run_list(const struct options *options)
{
    static struct plan plan;
    char line[512];
    unsigned run = 0;
    unsigned failed = 0;
    FILE *file = fopen(options->list, "r");
    if (file == NULL) {
        perror(options->list);
        return 2;
    }
    while (fgets(line, sizeof line, file)) {
        wide seed;
        char only[256] = "-";
        struct world_report report;
        if (line[0] == '#' || sscanf(line, "%llu %255s", &seed, only) < 1)
            continue;
        plan_draw(seed, &plan);
        /* What the seed never drew would make the line another run. */
        uint32_t drawn = plan.features;
        if (strcmp(only, "-") != 0 &&
            (!describe_apply(&plan, only, true) || (plan.features & ~drawn) != 0)) {
            fprintf(stderr, "%s: seed %llu has no \"%s\"\n", options->list, seed, only);
            failed++;
            continue;
        }
        batch_run_alone(&plan, CANARY_none, &report);
        run++;
        if (report.checker[0]) {
            print_report(seed, &report);
            failed++;
        }
    }
    fclose(file);
    printf("%u seeds of %s, %u failed\n", run, options->list, failed);
    return failed > 0 || run == 0;
}

/* ---- same seed, same run ----------------------------------------------------------------------------- */

static int run_twice(const struct options *options)
{
    static struct plan plan;
    for (uint64_t seed = options->first; seed < options->first + options->seeds; seed++) {
        struct world_report one;
        struct world_report two;
        plan_draw(seed, &plan);
        world_run(&plan, CANARY_none, NULL, &one);
        plan_draw(seed, &plan);
        memory_arena_fill(0xA5); /* nothing may depend on what an earlier run left */
        world_run(&plan, CANARY_none, NULL, &two);
        if (one.hash != two.hash || one.turns != two.turns || one.took_ns != two.took_ns) {
            printf("seed %llu runs differently the second time\n", (wide)seed);
            return 1;
        }
    }
    printf("%llu seeds from %llu run the same twice\n", (wide)options->seeds, (wide)options->first);
    return 0;
}

static int print_hashes(const struct options *options)
{
    static struct plan plan;
    for (uint64_t seed = options->first; seed < options->first + options->seeds; seed++) {
        struct world_report report;
        plan_draw(seed, &plan);
        world_run(&plan, CANARY_none, NULL, &report);
        printf("%llu %016llx\n", (wide)seed, (wide)report.hash);
    }
    return 0;
}

/* ---- canaries ---------------------------------------------------------------------------------------- */

/* True when a checker objected to some run in which the canary sang. */
static bool hears_canary(uint64_t first, enum world_canary canary)
{
    static struct plan plan;
    for (uint64_t seed = first; seed < first + CANARY_SEEDS; seed++) {
        struct world_report report;
        plan_draw(seed, &plan);
        batch_run_alone(&plan, canary, &report);
        if (strcmp(report.checker, canary_checkers[canary]) != 0)
            continue;
        printf("canary %s: caught at seed %llu by %s: %s\n", canary_names[canary], (wide)seed,
               report.checker, report.failure);
        return true;
    }
    return false;
}

/* Where it can sing. */
static uint64_t first_seed(const struct options *options, enum world_canary canary)
{
    uint64_t minimum = 0;
    if (canary >= CANARY_echo && canary <= CANARY_shackled)
        minimum = PLAN_ENGINE_SEEDS;
    if (canary >= CANARY_stray && canary <= CANARY_mute)
        minimum = PLAN_ONESIDED_SEEDS;
    if (canary == CANARY_overdue)
        minimum = PLAN_DEADLINE_SEEDS;
    if (canary >= CANARY_summed && canary <= CANARY_shunned)
        minimum = PLAN_GROUP_SEEDS;
    return options->first < minimum ? minimum : options->first;
}

static int run_canary(const struct options *options, enum world_canary canary)
{
    if (hears_canary(first_seed(options, canary), canary))
        return 0;
    printf("canary %s: not caught in %u runs\n", canary_names[canary], CANARY_SEEDS);
    return 1;
}

static int run_canaries(const struct options *options)
{
    int failed = 0;
    for (uint32_t canary = CANARY_none + 1; canary < CANARY_COUNT; canary++)
        failed |= run_canary(options, (enum world_canary)canary);
    return failed;
}

static enum world_canary find_canary(const char *name)
{
    for (uint32_t canary = CANARY_none + 1; canary < CANARY_COUNT; canary++)
        if (strcmp(name, canary_names[canary]) == 0)
            return (enum world_canary)canary;
    fprintf(stderr, "test_world: no canary is called \"%s\"; see --help\n", name);
    exit(2);
}

/* ---- options ----------------------------------------------------------------------------------------- */

/* A whole number, decimal or 0x…, from least on; ends the program when it is none. */
static uint64_t take_number(const char *option, const char *value, uint64_t minimum)
{
    char *end = NULL;
    errno = 0;
    wide number = strtoull(value, &end, 0);
    if (value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0 && number >= minimum)
        return number;
    fprintf(stderr, "test_world: --%s \"%s\" is no whole number from %llu on; see --help\n", option, value,
            (wide)minimum);
    exit(2);
}

static void take_option(struct options *options, int letter, const char *value)
{
    switch (letter) {
    case 's':
        options->seed = options->first = take_number("seed", value, 0);
        if (options->action == ACTION_BATCH)
            options->action = ACTION_ONE;
        break;
    case 'n':
        options->seeds = take_number("seeds", value, 1);
        break;
    case 'f':
        options->first = take_number("first", value, 0);
        break;
    case 'j':
        options->jobs = (unsigned)take_number("jobs", value, 1);
        break;
    case 'w':
        options->without = value;
        break;
    case 'o':
        options->only = value;
        break;
    case 'l':
        options->action = ACTION_LIST;
        options->list = value;
        break;
    case 'm':
    case 'p':
        options->action = letter == 'm' ? ACTION_SAME : ACTION_HASHES;
        options->seeds = take_number(letter == 'm' ? "same" : "hashes", value, 1);
        break;
    case 'c':
        options->action = strcmp(value, "all") == 0 ? ACTION_CANARIES : ACTION_CANARY;
        if (options->action == ACTION_CANARY)
            options->canary = find_canary(value);
        break;
    default:
        break;
    }
    options->trace |= letter == 't';
    options->describe |= letter == 'd';
    options->shrink |= letter == 'k';
    options->no_shrink |= letter == 'K';
    if (letter == 'S')
        options->action = ACTION_SOAK;
}

static int run(const struct options *options)
{
    switch (options->action) {
    case ACTION_BATCH:
    case ACTION_SOAK:
        return run_batch(options);
    case ACTION_ONE:
        return run_one(options);
    case ACTION_CANARY:
        return run_canary(options, options->canary);
    case ACTION_CANARIES:
        return run_canaries(options);
    case ACTION_SAME:
        return run_twice(options);
    case ACTION_HASHES:
        return print_hashes(options);
    case ACTION_LIST:
        return run_list(options);
    }
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"seed", 1, NULL, 's'},      {"seeds", 1, NULL, 'n'},    {"first", 1, NULL, 'f'},
        {"jobs", 1, NULL, 'j'},      {"without", 1, NULL, 'w'},  {"only", 1, NULL, 'o'},
        {"list", 1, NULL, 'l'},      {"same", 1, NULL, 'm'},     {"hashes", 1, NULL, 'p'},
        {"canary", 1, NULL, 'c'},    {"trace", 0, NULL, 't'},    {"shrink", 0, NULL, 'k'},
        {"no-shrink", 0, NULL, 'K'}, {"describe", 0, NULL, 'd'}, {"soak", 0, NULL, 'S'},
        {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0}};
    struct options options = {.first = PLAN_NEWCOMER_SEEDS, .seeds = 1000};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    options.jobs = cpus > 0 ? (unsigned)cpus : 1;
    for (int letter; (letter = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (letter == 'h')
            usage();
        if (letter == '?')
            fputs("test_world: see --help\n", stderr);
        if (letter == 'h' || letter == '?')
            return letter == 'h' ? 0 : 2;
        take_option(&options, letter, optarg);
    }
    if (optind < argc || options.jobs == 0) {
        fprintf(stderr, "test_world: what does \"%s\" mean? See --help\n",
                optind < argc ? argv[optind] : "--jobs 0");
        return 2;
    }
    return run(&options);
}
