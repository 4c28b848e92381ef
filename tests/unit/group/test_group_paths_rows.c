/*
 * test_group_paths_rows.c - what ranks tell each other of their paths, and what all make of it: by
 * attributes, by measurements, and for a part of a group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "group/group_paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

#define RANKS   4u
#define RANK    1u
#define CELL    32u
#define ROW     (RANKS * CELL)
#define UNKNOWN UINT32_MAX
#define GBIT    UINT64_C(1000000000)

static struct link links[RANKS];
static int attr_error, scheme_error, stats_error;
static struct lh_scheme_report scheme;
static struct lh_stats stats;

lh_time link_rtt_ns(struct link *link)
{
    return 1000 * (lh_time)(link - links + 1);
}

int lh_connection_attr(struct lh_connection *connection, struct lh_attr *attr)
{
    (void)connection;
    lh_attr_init(attr);
    attr->mtu_bytes = 1024;
    attr->chunk_bytes = 4096;
    return attr_error;
}

int lh_connection_scheme(struct lh_connection *connection, struct lh_scheme_report *report)
{
    (void)connection;
    *report = scheme;
    return scheme_error;
}

int lh_connection_stats(struct lh_connection *connection, struct lh_stats *out)
{
    (void)connection;
    *out = stats;
    return stats_error;
}

/* ---- a group ----------------------------------------------------------------------------------------- */

struct fixture {
    struct members members;
    uint32_t of_mesh[RANKS];
    char sites[RANKS][LH_GROUP_SITE_MAX];
    pthread_mutex_t lock;
    struct group_paths paths;
    uint8_t rows[RANKS * ROW];
};

static struct fixture f;

static void use(struct fixture *fixture, uint32_t size)
{
    fixture->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (uint32_t r = 0; r < RANKS; r++)
        fixture->of_mesh[r] = r;
    fixture->members =
        (struct members){.rank = RANK, .size = size, .of_mesh = fixture->of_mesh, .links = links};
    fixture->paths = (struct group_paths){.members = &fixture->members,
                                          .sites = fixture->sites,
                                          .block_bytes = 65536,
                                          .lock = &fixture->lock};
}

static int set_up(void **state)
{
    (void)state;
    memset(links, 0, sizeof links);
    memset(&f, 0, sizeof f);
    attr_error = scheme_error = stats_error = 0;
    scheme = (struct lh_scheme_report){.automatic = true, .chunks_seen = 1000, .chunks_lost = 10};
    stats = (struct lh_stats){.tx_packets = 1000, .tx_retransmitted_packets = 5};
    use(&f, RANKS);
    for (uint32_t r = 0; r < RANKS; r++)
        f.sites[r][0] = r < 2 ? 'a' : 'b';
    assert_int_equal(paths_create(&f.paths), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    paths_free(&f.paths);
    return 0;
}

static uint32_t in_units(double loss)
{
    return (uint32_t)(loss / PATHS_LOSS_UNIT + 0.5);
}

static void expect_loss(uint32_t units, double loss)
{
    uint32_t wanted = in_units(loss);
    assert_in_range(units, wanted - 1, wanted + 1);
}

/* ---- sites ------------------------------------------------------------------------------------------- */

static void test_sites_by_name(void **state)
{
    (void)state;
    assert_true(f.paths.named);
    const struct site_map *map = &f.paths.order->map;
    assert_int_equal(map->sites, 2);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(map->place_of[r], r);
        assert_int_equal(map->site_of[r], r / 2);
    }
    assert_ptr_equal(f.paths.created.order, f.paths.order);
}

static void test_sites_without_names(void **state)
{
    struct fixture other = {0};
    (void)state;
    use(&other, RANKS);
    assert_int_equal(paths_create(&other.paths), 0);
    assert_false(other.paths.named);
    assert_int_equal(other.paths.order->map.sites, 1);
    paths_free(&other.paths);
}

/* ---- rows -------------------------------------------------------------------------------------------- */

static void test_row_of_attributes(void **state)
{
    struct lh_attr inside, across;
    struct lh_group_attr attr = {.struct_bytes = sizeof attr};
    uint8_t row[ROW];
    (void)state;
    lh_attr_init(&inside);
    inside.link.rate_bps = 5 * GBIT;
    inside.link.loss = 1e-3;
    across = inside;
    across.rate_bps = 2 * GBIT;
    across.link.loss = 1e-2;
    attr.attr = &inside;
    attr.attr_across = &across;
    links[0].near = true;
    assert_int_equal(paths_row_bytes(&f.paths), ROW);
    memset(row, 0xff, sizeof row);
    paths_announce_given(&f.paths, &attr, row);
    const uint8_t *near = row, *own = row + CELL, *far = row + 3 * (size_t)CELL;
    assert_true(lh_get_be64(near) == 1000 && lh_get_be64(far) == 4000);
    assert_true(lh_get_be64(near + 8) == 5 * GBIT && lh_get_be64(far + 8) == 2 * GBIT);
    expect_loss(lh_get_be32(near + 16), 1e-3);
    expect_loss(lh_get_be32(far + 16), 1e-2);
    assert_int_equal(lh_get_be32(far + 20), 1024);
    expect_loss(lh_get_be32(near + 24), 1e-3);
    expect_loss(lh_get_be32(far + 24), 1e-2);
    assert_int_equal(lh_get_be32(near + 28), 1);
    assert_int_equal(lh_get_be32(far + 28), 0);
    assert_true(lh_get_be32(own + 28) > 0); /* processors */
    assert_int_equal(lh_get_be64(own), 0);
    attr.attr_across = NULL;
    paths_announce_given(&f.paths, &attr, row);
    assert_true(lh_get_be64(far + 8) == 5 * GBIT);
    attr.attr = NULL;
    attr_error = -LH_ESTATE;
    paths_announce_given(&f.paths, &attr, row);
    assert_int_equal(lh_get_be64(far + 8), 0);
    assert_int_equal(lh_get_be32(far + 16), 0);
    assert_int_equal(lh_get_be32(far + 20), 0);
}

static void test_row_of_measurements(void **state)
{
    const uint64_t rates[RANKS] = {7 * GBIT, 1, 0, 9 * GBIT};
    uint8_t row[ROW];
    (void)state;
    f.paths.measured = 99;
    paths_announce_measured(&f.paths, rates, row);
    const uint8_t *cell = row + 3 * (size_t)CELL;
    assert_true(lh_get_be64(row + CELL) == 99);
    assert_true(lh_get_be64(row + CELL + 8) == 0);
    assert_true(lh_get_be64(row + 8) == 7 * GBIT);
    assert_true(lh_get_be64(row + 2 * (size_t)CELL + 8) == 0);
    assert_true(lh_get_be64(cell) == 4000 && lh_get_be64(cell + 8) == 9 * GBIT);
    expect_loss(lh_get_be32(cell + 16), 0.01 / 4); /* a chunk has four packets */
    expect_loss(lh_get_be32(cell + 24), 0.005);
    scheme.chunks_seen = 1; /* one that was lost */
    scheme.chunks_lost = 1;
    paths_announce_measured(&f.paths, rates, row);
    expect_loss(lh_get_be32(cell + 16), 0.25);
    scheme.chunks_seen = scheme.chunks_lost = 0;
    stats.tx_packets = stats.tx_retransmitted_packets = 0;
    paths_announce_measured(&f.paths, rates, row);
    assert_int_equal(lh_get_be32(cell + 16), UNKNOWN);
    assert_int_equal(lh_get_be32(cell + 24), UNKNOWN);
}

/* What a connection does not tell is not known. */
static void test_losses_that_are_not_known(void **state)
{
    const uint64_t rates[RANKS] = {0};
    uint8_t row[ROW];
    (void)state;
    for (uint32_t which = 0; which < 4; which++) {
        attr_error = which == 0 ? -LH_ESTATE : 0;
        scheme_error = which == 1 ? -LH_ESTATE : 0;
        scheme.automatic = which != 2;
        stats_error = which == 3 ? -LH_ESTATE : 0;
        paths_announce_measured(&f.paths, rates, row);
        assert_int_equal(lh_get_be32(row + 16) == UNKNOWN, which < 3);
        assert_int_equal(lh_get_be32(row + 24) == UNKNOWN, which == 3);
    }
}

/* ---- agreeing ---------------------------------------------------------------------------------------- */

static uint8_t *cell_at(uint32_t told_by, uint32_t of)
{
    return f.rows + told_by * ROW + of * CELL;
}

static uint64_t rate_of(uint32_t from, uint32_t to)
{
    return (10 + from * RANKS + to) * GBIT;
}

/* rates: whether they are known. */
static void fill_rows(bool rates)
{
    memset(f.rows, 0, sizeof f.rows);
    for (uint32_t by = 0; by < RANKS; by++)
        for (uint32_t of = 0; of < RANKS; of++) {
            uint8_t *cell = cell_at(by, of);
            if (by == of)
                continue;
            lh_put_be64(cell, by / 2 == of / 2 ? 50000 + by : 20000000 + by);
            lh_put_be64(cell + 8, rates ? rate_of(of, by) : 0);
            lh_put_be32(cell + 16, 100 + by);
            lh_put_be32(cell + 20, 4096);
        }
}

static void test_created(void **state)
{
    (void)state;
    fill_rows(true);
    lh_put_be32(cell_at(0, 1) + 16, UNKNOWN); /* rank 1 knows what it sent to rank 0 */
    lh_put_be32(cell_at(1, 0) + 24, 500);
    lh_put_be32(cell_at(2, 1) + 16, UNKNOWN); /* neither knows */
    lh_put_be32(cell_at(1, 2) + 24, UNKNOWN);
    assert_int_equal(paths_agree(&f.paths, f.rows, false), 0);
    assert_int_equal(f.paths.inside.rtt_ns, 50003);
    assert_int_equal(f.paths.across.rtt_ns, 20000003);
    assert_true(f.paths.inside.rate_bps == rate_of(0, 1));
    assert_true(f.paths.across.rate_bps == rate_of(0, 2));
    assert_int_equal(f.paths.inside.loss, 500);
    assert_int_equal(f.paths.across.loss, 103);
    assert_int_equal(f.paths.inside.packet_bytes, 4096);
    assert_int_equal(f.paths.processors, 0);
    assert_memory_equal(&f.paths.created.inside, &f.paths.inside, sizeof f.paths.inside);
    assert_memory_equal(&f.paths.created.across, &f.paths.across, sizeof f.paths.across);
    assert_null(f.paths.pairs);
    assert_int_equal(f.paths.measured, 0);
}

/* Without names those that are near each other are a site. */
static void test_sites_are_found(void **state)
{
    (void)state;
    fill_rows(true);
    f.paths.named = false;
    memset(f.sites, 0, sizeof f.sites);
    assert_int_equal(paths_agree(&f.paths, f.rows, false), 0);
    assert_int_equal(f.paths.order->map.sites, 2);
    assert_int_equal(f.paths.inside.rtt_ns, 50003);
    assert_int_equal(f.paths.across.rtt_ns, 20000003);
}

static void agree_on_measured(void)
{
    fill_rows(true);
    assert_int_equal(paths_agree(&f.paths, f.rows, false), 0);
    assert_int_equal(paths_agree(&f.paths, f.rows, true), 0);
}

static void test_measured(void **state)
{
    (void)state;
    agree_on_measured();
    assert_true(f.paths.measured != 0);
    assert_non_null(f.paths.pairs);
    for (uint32_t from = 0; from < RANKS; from++)
        for (uint32_t to = 0; to < RANKS; to++) {
            const struct path_figures *pair = &f.paths.pairs[from * RANKS + to];
            if (from == to)
                continue;
            assert_true(pair->rate_bps == rate_of(from, to));
            assert_int_equal(pair->loss, 100 + to);
            assert_int_equal(pair->rtt_ns, from / 2 == to / 2 ? 50000 + to : 20000000 + to);
        }
    assert_true(f.paths.across.rate_bps == rate_of(0, 2));
    uint32_t before = f.paths.measured;
    lh_put_be32(cell_at(0, 1) + 16, 7);
    assert_int_equal(paths_agree(&f.paths, f.rows, true), 0);
    assert_true(f.paths.measured != before);
}

/* A rate that was not measured is as was given. */
static void test_rates_that_were_not_measured(void **state)
{
    (void)state;
    fill_rows(true);
    assert_int_equal(paths_agree(&f.paths, f.rows, false), 0);
    fill_rows(false);
    assert_int_equal(paths_agree(&f.paths, f.rows, true), 0);
    assert_true(f.paths.pairs[1].rate_bps == rate_of(0, 1));
    assert_true(f.paths.pairs[2].rate_bps == rate_of(0, 2));
    assert_true(f.paths.pairs[3 * RANKS + 1].rate_bps == rate_of(0, 2));
}

/* ---- parts ------------------------------------------------------------------------------------------- */

static void inherit(bool follows)
{
    static const uint32_t ranks[] = {3, 1, 0};
    struct fixture part = {0};
    agree_on_measured();
    f.paths.processors = 8;
    use(&part, 3);
    memcpy(part.sites, f.sites, sizeof part.sites);
    assert_int_equal(paths_inherit(&part.paths, &f.paths, ranks, follows), 0);
    assert_int_equal(part.paths.processors, 8);
    assert_int_equal(part.paths.created.across.rtt_ns, f.paths.created.across.rtt_ns);
    assert_int_equal(part.paths.created.inside.rtt_ns, f.paths.created.inside.rtt_ns);
    assert_int_equal(part.paths.order->map.sites, 2);
    assert_int_equal(part.paths.measured, follows ? f.paths.measured : 0);
    assert_int_equal(part.paths.pairs != NULL, follows);
    for (uint32_t from = 0; from < 3 && follows; from++)
        for (uint32_t to = 0; to < 3; to++)
            if (from != to)
                assert_true(part.paths.pairs[from * 3 + to].rate_bps == rate_of(ranks[from], ranks[to]));
    if (follows) { /* the worst of what is left */
        assert_true(part.paths.inside.rate_bps == rate_of(0, 1));
        assert_true(part.paths.across.rate_bps == rate_of(0, 3));
    } else {
        assert_true(part.paths.across.rate_bps == rate_of(0, 2));
    }
    paths_free(&part.paths);
}

static void test_part_that_follows(void **state)
{
    (void)state;
    inherit(true);
}

static void test_part_that_does_not(void **state)
{
    (void)state;
    inherit(false);
}

#define PATHS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PATHS_TEST(test_sites_by_name),
        PATHS_TEST(test_sites_without_names),
        PATHS_TEST(test_row_of_attributes),
        PATHS_TEST(test_row_of_measurements),
        PATHS_TEST(test_losses_that_are_not_known),
        PATHS_TEST(test_created),
        PATHS_TEST(test_sites_are_found),
        PATHS_TEST(test_measured),
        PATHS_TEST(test_rates_that_were_not_measured),
        PATHS_TEST(test_part_that_follows),
        PATHS_TEST(test_part_that_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
