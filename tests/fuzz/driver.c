/*
 * driver.c - runs a fuzz target without libFuzzer: replays its corpus, then thousands of seeded mutations.
 *
 * Usage: fuzz_x [-s SEED] [-n RUNS] [CORPUS FOLDER OR FILE]...
 * The same seed and corpus give the same inputs. An input that brings the target down is written to
 * crash-<target>.bin in the current folder; run the target with that file to see it again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_BYTES_MAX ((size_t)16384)
#define CORPUS_MAX      ((size_t)1024)
#define RUNS_DEFAULT    20000ul

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    uint8_t *data;
    size_t size;
};

static struct input corpus[CORPUS_MAX];
static size_t corpus_count;

static struct input current; /* what the target is being given, for on_crash */
static char crash_path[256];

/* splitmix64: the driver must not depend on the library it tests. */
static uint64_t random_state;

static uint64_t random_next(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t random_below(size_t bound)
{
    return (size_t)(random_next() % bound);
}

static void on_crash(int number)
{
    static const char words[] = "fuzz: the input that did it is in ";
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t written = fd < 0 ? -1 : write(fd, current.data, current.size);
    if (written >= 0) {
        written = write(STDERR_FILENO, words, sizeof(words) - 1);
        written = write(STDERR_FILENO, crash_path, strlen(crash_path));
        written = write(STDERR_FILENO, "\n", 1);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* The target gets an allocation of exactly its size, so that a sanitizer sees a read past the end. */
static void run_one(const uint8_t *data, size_t size)
{
    current.data = malloc(size > 0 ? size : 1);
    assert(current.data != NULL);
    current.size = size;
    if (size > 0)
        memcpy(current.data, data, size);
    LLVMFuzzerTestOneInput(current.data, size);
    free(current.data);
    current.data = NULL;
    current.size = 0;
}

static void load_file(const char *path)
{
    if (corpus_count == CORPUS_MAX)
        return;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    uint8_t *data = malloc(INPUT_BYTES_MAX);
    assert(data != NULL);
    size_t size = fread(data, 1, INPUT_BYTES_MAX, file);
    fclose(file);
    corpus[corpus_count++] = (struct input){.data = data, .size = size};
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* A folder's files in the order of their names, or one file. What is not there is an empty corpus. */
static void load(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return;
    if (!S_ISDIR(status.st_mode)) {
        load_file(path);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, compare_entries);
    for (int i = 0; i < count; i++) {
        char name[4096];
        if (entries[i]->d_name[0] != '.') {
            snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
            load_file(name);
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* One random change; returns the new size. */
static size_t mutate(uint8_t *data, size_t size)
{
    static const uint8_t edges[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
    size_t at = size > 0 ? random_below(size) : 0;
    switch (random_below(6)) {
    case 0: /* cut */
        return at;
    case 1: /* grow */
        for (size_t n = random_below(64) + 1; n > 0 && size < INPUT_BYTES_MAX; n--)
            data[size++] = (uint8_t)random_next();
        return size;
    case 2: /* flip a bit */
        if (size > 0)
            data[at] ^= (uint8_t)(1u << random_below(8));
        return size;
    case 3: /* a byte at the edge of its range */
        if (size > 0)
            data[at] = edges[random_below(sizeof(edges))];
        return size;
    case 4: /* a small step, as lengths and counters like */
        if (size > 0)
            data[at] = (uint8_t)(data[at] + random_below(9) - 4);
        return size;
    default:
        if (size > 0)
            data[at] = (uint8_t)random_next();
        return size;
    }
}

static void run_mutations(unsigned long runs)
{
    static uint8_t data[INPUT_BYTES_MAX];
    for (unsigned long run = 0; run < runs; run++) {
        size_t size = 0;
        if (corpus_count > 0 && random_below(8) != 0) {
            const struct input *from = &corpus[random_below(corpus_count)];
            size = from->size;
            memcpy(data, from->data, size);
        } else {
            size = random_below(256);
            for (size_t i = 0; i < size; i++)
                data[i] = (uint8_t)random_next();
        }
        for (size_t changes = random_below(8) + 1; changes > 0; changes--)
            size = mutate(data, size);
        run_one(data, size);
    }
}

int main(int argc, char **argv)
{
    unsigned long seed = 1;
    unsigned long runs = RUNS_DEFAULT;
    int option;
    while ((option = getopt(argc, argv, "s:n:")) != -1) {
        if (option == 's')
            seed = strtoul(optarg, NULL, 0);
        else if (option == 'n')
            runs = strtoul(optarg, NULL, 0);
        else
            return 2;
    }
    const char *slash = strrchr(argv[0], '/');
    snprintf(crash_path, sizeof(crash_path), "crash-%.200s.bin", slash != NULL ? slash + 1 : argv[0]);
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    signal(SIGBUS, on_crash);
    signal(SIGFPE, on_crash);

    for (int i = optind; i < argc; i++)
        load(argv[i]);
    printf("seed %lu, %lu runs, %zu corpus files\n", seed, runs, corpus_count);
    fflush(stdout);
    random_state = seed;
    run_one(NULL, 0);
    for (size_t i = 0; i < corpus_count; i++)
        run_one(corpus[i].data, corpus[i].size);
    run_mutations(runs);
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i].data);
    return 0;
}
