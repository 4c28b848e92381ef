/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <longhaul/error.h>
#include <longhaul/units.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MTU_DEFAULT 4200
#define MTU_MIN     1280 /* of IPv6 */
#define MTU_MAX     65535
#define TEXT_MAX    128
#define TIME_MAX_NS 3600000000000ll
#define PROCEED     (-1)
#define EXIT_USAGE  2

static const char help[] =
    "usage: longhaul-path [OPTION...] --name NAME\n"
    "       longhaul-path [OPTION...] -- LEFT-COMMAND [ARGUMENT...] [::: RIGHT-COMMAND [ARGUMENT...]]\n"
    "\n"
    "A bottleneck between two network namespaces. Left has the addresses 10.99.0.1 and fd99::1, right "
    "10.99.0.2 and\n"
    "fd99::2. With --name it lasts until a signal ends it; 'ip netns exec NAME-left COMMAND' runs there "
    "meanwhile.\n"
    "With commands, the left one starts when the right one listens on a TCP port (or after 5 s), and its "
    "end ends all;\n"
    "its exit status is ours. Statistics are written at the end and at each SIGUSR1. Exit 77: not allowed "
    "here.\n"
    "\n"
    "Two values A/B: A from left to right, B back. Bytes and rates are of IP packets.\n"
    "  --rate RATE[/RATE]      of the bottleneck (none)\n"
    "  --delay TIME[/TIME]     propagation, each way (0)\n"
    "  --queue SIZE[/SIZE]     what the queue holds, in bytes or as 0.5bdp: bandwidth times both delays "
    "(1bdp)\n"
    "  --bucket SIZE[/SIZE]    token bucket: so much passes at once after a pause; with --queue 0 a "
    "policer "
    "(none)\n"
    "  --mark SIZE[/SIZE]      marks ECN-capable packets that find more than that in the queue (none)\n"
    "  --clear-ecn             removes ECN from all packets\n"
    "  --loss RATIO[/RATIO]    of packets, at random (0)\n"
    "  --seed N                of the loss (1)\n"
    "  --mtu SIZE              of IP packets (4200)\n"
    "  --at TIME,RATE[/RATE]   changes the rate that long after the start; may be given again\n"
    "  --no-udp[=PORT]         drops UDP silently, but not from and to that port\n"
    "  --no-larger SIZE        drops IP packets above that silently\n"
    "  --nat                   left's IPv4 packets come from 10.99.0.254 and other ports; only UDP and TCP "
    "pass\n"
    "  --flows N               gives left the addresses 10.99.0.11 … and 10.99.0.131 …, N of each, and "
    "counts each's bytes\n"
    "  --far TIME              what the addresses from 10.99.0.128 on have more in delay, each way (0)\n"
    "  --name NAME             of the namespaces, NAME-left and NAME-right\n"
    "  --json FILE             statistics (standard output)\n";

enum {
    RATE = 1,
    DELAY,
    QUEUE,
    BUCKET,
    MARK,
    CLEAR_ECN,
    LOSS,
    SEED,
    MTU,
    AT,
    NO_UDP,
    NO_LARGER,
    NAT,
    FLOWS,
    FAR,
    NAME,
    JSON,
    HELP
};

static const struct option long_options[] = {
    {"rate", required_argument, NULL, RATE},
    {"delay", required_argument, NULL, DELAY},
    {"queue", required_argument, NULL, QUEUE},
    {"bucket", required_argument, NULL, BUCKET},
    {"mark", required_argument, NULL, MARK},
    {"clear-ecn", no_argument, NULL, CLEAR_ECN},
    {"loss", required_argument, NULL, LOSS},
    {"seed", required_argument, NULL, SEED},
    {"mtu", required_argument, NULL, MTU},
    {"at", required_argument, NULL, AT},
    {"no-udp", optional_argument, NULL, NO_UDP},
    {"no-larger", required_argument, NULL, NO_LARGER},
    {"nat", no_argument, NULL, NAT},
    {"flows", required_argument, NULL, FLOWS},
    {"far", required_argument, NULL, FAR},
    {"name", required_argument, NULL, NAME},
    {"json", required_argument, NULL, JSON},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static bool fail(const char *option, const char *text, const char *why)
{
    fprintf(stderr, "longhaul-path: %s '%s': %s\n", option, text, why);
    return false;
}

/* "A/B", or the same value twice. */
static bool split(const char *text, char out[PATH_ENDS][TEXT_MAX])
{
    const char *slash = strchr(text, '/');
    size_t first = slash ? (size_t)(slash - text) : strlen(text);
    const char *second = slash ? slash + 1 : text;
    if (first >= TEXT_MAX || strlen(second) >= TEXT_MAX)
        return false;
    snprintf(out[PATH_LEFT], TEXT_MAX, "%.*s", (int)first, text);
    snprintf(out[PATH_RIGHT], TEXT_MAX, "%s", second);
    return true;
}

static bool parse_rates(const char *option, const char *text, uint64_t out[PATH_ENDS])
{
    char part[PATH_ENDS][TEXT_MAX];
    bool right = split(text, part);
    for (unsigned side = 0; right && side < PATH_ENDS; side++)
        right = lh_parse_rate(part[side], &out[side]) == 0 && out[side];
    return right || fail(option, text, "not a rate (2Gbit, or 2Gbit/100Mbit)");
}

static bool parse_time(const char *text, int64_t *out)
{
    lh_time ns;
    bool right = lh_parse_time(text, &ns) == 0 && ns <= (lh_time)TIME_MAX_NS;
    *out = right ? (int64_t)ns : 0;
    return right;
}

static bool parse_delays(struct path_options *options, const char *text)
{
    char part[PATH_ENDS][TEXT_MAX];
    bool right = split(text, part);
    for (unsigned side = 0; right && side < PATH_ENDS; side++)
        right = parse_time(part[side], &options->direction[side].line.delay_ns);
    return right || fail("--delay", text, "not a time (12.5ms)");
}

static bool parse_losses(struct path_options *options, const char *text)
{
    char part[PATH_ENDS][TEXT_MAX];
    bool right = split(text, part);
    for (unsigned side = 0; right && side < PATH_ENDS; side++)
        right = lh_parse_ratio(part[side], &options->direction[side].line.loss) == 0;
    return right || fail("--loss", text, "not a share (1e-3)");
}

static bool parse_number(const char *option, const char *text, uint64_t max, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    return (*text && !*end && *out <= max && *text != '-') || fail(option, text, "not a number in range");
}

static bool parse_mtu(struct path_options *options, const char *text)
{
    uint64_t bytes;
    if (lh_parse_size(text, &bytes) || bytes < MTU_MIN || bytes > MTU_MAX)
        return fail("--mtu", text, "not 1280 to 65535 bytes");
    options->mtu = (unsigned)bytes;
    return true;
}

static bool parse_change(struct path_options *options, const char *text)
{
    char time[TEXT_MAX];
    const char *comma = strchr(text, ',');
    if (options->changes == PATH_CHANGES_MAX || !comma || comma - text >= TEXT_MAX)
        return fail("--at", text, "not a time and a rate (5s,1Gbit), or too many of them");
    struct path_change *change = &options->change[options->changes++];
    snprintf(time, sizeof time, "%.*s", (int)(comma - text), text);
    if (!parse_time(time, &change->at_ns) || (options->changes > 1 && change[-1].at_ns > change->at_ns))
        return fail("--at", text, "not a time after that of the one before");
    return parse_rates("--at", comma + 1, change->rate_bps);
}

static bool parse_filter(struct path_options *options, const char *port)
{
    uint64_t number = 0;
    if (port && !parse_number("--no-udp", port, 65535, &number))
        return false;
    for (unsigned side = 0; side < PATH_ENDS; side++) {
        options->direction[side].filter.udp = true;
        options->direction[side].filter.but_port = (uint16_t)number;
    }
    return true;
}

static bool parse_largest(struct path_options *options, const char *text)
{
    uint64_t bytes;
    if (lh_parse_size(text, &bytes) || !bytes || bytes > MTU_MAX)
        return fail("--no-larger", text, "not a size of packets");
    for (unsigned side = 0; side < PATH_ENDS; side++)
        options->direction[side].filter.above_bytes = (uint32_t)bytes;
    return true;
}

static bool parse_flows(struct path_options *options, const char *text)
{
    uint64_t flows;
    if (!parse_number("--flows", text, PATH_FLOWS_MAX, &flows))
        return false;
    options->flows = (unsigned)flows;
    return true;
}

static bool parse_far(struct path_options *options, const char *text)
{
    int64_t *far_ns = &options->direction[PATH_LEFT].far_ns;
    if (!parse_time(text, far_ns))
        return fail("--far", text, "not a time (50ms)");
    options->direction[PATH_RIGHT].far_ns = *far_ns;
    return true;
}

static bool parse_seed(struct path_options *options, const char *text)
{
    uint64_t seed;
    if (!parse_number("--seed", text, UINT64_MAX, &seed))
        return false;
    /* Both directions draw losses of their own. */
    options->direction[PATH_LEFT].line.seed = seed;
    options->direction[PATH_RIGHT].line.seed = ~seed;
    return true;
}

static bool size_of(const struct path_options *options, unsigned side, const char *text, uint64_t *bytes)
{
    char *end;
    double times = strtod(text, &end);
    double rtt_ns = (double)options->direction[PATH_LEFT].line.delay_ns +
                    (double)options->direction[PATH_RIGHT].line.delay_ns;
    if (end == text || strcmp(end, "bdp") != 0)
        return lh_parse_size(text, bytes) == 0;
    *bytes = (uint64_t)(times * (double)options->direction[side].line.rate_bps / 8 * rtt_ns * 1e-9);
    return times >= 0 && times <= 1000;
}

static bool set_sizes(struct path_options *options, const char *option, const char *text, size_t member)
{
    char part[PATH_ENDS][TEXT_MAX];
    bool right = split(text, part);
    for (unsigned side = 0; right && side < PATH_ENDS; side++) {
        uint64_t *bytes = (uint64_t *)(void *)((char *)&options->direction[side].line + member);
        right = size_of(options, side, part[side], bytes);
    }
    return right || fail(option, text, "not a size (256KiB, or 0.5bdp)");
}

static bool parse_commands(struct path_options *options, char **argv)
{
    if (!*argv)
        return options->name || fail("--name", "", "is missing, and there is no command (see --help)");
    options->argv[PATH_LEFT] = argv;
    for (char **word = argv; *word; word++) {
        if (strcmp(*word, ":::") != 0)
            continue;
        *word = NULL;
        options->argv[PATH_RIGHT] = word[1] ? word + 1 : NULL;
        break;
    }
    return *argv || fail(":::", "", "there is no command on the left");
}

static bool parse_option(struct path_options *options, int option, const char *text)
{
    uint64_t rate[PATH_ENDS];
    switch (option) {
    case RATE:
        if (!parse_rates("--rate", text, rate))
            return false;
        options->direction[PATH_LEFT].line.rate_bps = rate[PATH_LEFT];
        options->direction[PATH_RIGHT].line.rate_bps = rate[PATH_RIGHT];
        return true;
    case DELAY:
        return parse_delays(options, text);
    case CLEAR_ECN:
        options->direction[PATH_LEFT].clear_ecn = options->direction[PATH_RIGHT].clear_ecn = true;
        return true;
    case LOSS:
        return parse_losses(options, text);
    case SEED:
        return parse_seed(options, text);
    case MTU:
        return parse_mtu(options, text);
    case AT:
        return parse_change(options, text);
    case NAT:
        options->nat = true;
        return true;
    case FLOWS:
        return parse_flows(options, text);
    case FAR:
        return parse_far(options, text);
    case NO_UDP:
        return parse_filter(options, text);
    case NO_LARGER:
        return parse_largest(options, text);
    default:
        return false;
    }
}

/* What depends on several options. */
static bool complete(struct path_options *options, const char *queue, const char *bucket, const char *mark)
{
    for (unsigned i = 0; i < options->changes; i++) {
        for (unsigned side = 0; side < PATH_ENDS; side++) {
            struct path_direction_config *direction = &options->direction[side];
            uint64_t rate_bps = options->change[i].rate_bps[side];
            if (!direction->line.rate_bps)
                return fail("--at", "", "there is no --rate to change");
            if (rate_bps > direction->rate_max_bps)
                direction->rate_max_bps = rate_bps;
        }
    }
    return set_sizes(options, "--queue", queue, offsetof(struct path_line_config, queue_bytes)) &&
           (!bucket ||
            set_sizes(options, "--bucket", bucket, offsetof(struct path_line_config, bucket_bytes))) &&
           (!mark || set_sizes(options, "--mark", mark, offsetof(struct path_line_config, mark_bytes)));
}

int path_options_parse(struct path_options *options, int argc, char **argv)
{
    const char *queue = "1bdp", *bucket = NULL, *mark = NULL;
    *options = (struct path_options){.mtu = MTU_DEFAULT};
    for (unsigned side = 0; side < PATH_ENDS; side++)
        options->direction[side].line.mark_bytes = PATH_NO_LIMIT;
    parse_seed(options, "1");
    for (int option; (option = getopt_long(argc, argv, "+", long_options, NULL)) != -1;) {
        if (option == HELP) {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (option == QUEUE)
            queue = optarg;
        else if (option == BUCKET)
            bucket = optarg;
        else if (option == MARK)
            mark = optarg;
        else if (option == NAME)
            options->name = optarg;
        else if (option == JSON)
            options->json = optarg;
        else if (!parse_option(options, option, optarg))
            return EXIT_USAGE;
    }
    return complete(options, queue, bucket, mark) && parse_commands(options, argv + optind) ? PROCEED
                                                                                            : EXIT_USAGE;
}
