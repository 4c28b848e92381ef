/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/scatter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint8_t places[UDP_PLACES_MAX][ROCE_MTU_MAX];
static uint8_t staging[UDP_MESSAGE_MAX];
static struct udp_scatter scatter;

static size_t lay_out(uint32_t mtu_bytes, uint32_t count)
{
    scatter.mtu_bytes = mtu_bytes;
    scatter.place_count = count;
    scatter.staging = staging;
    for (uint32_t i = 0; i < count; i++)
        scatter.places[i] = places[i];
    return udp_scatter_lay_out(&scatter);
}

/* Byte k of a message, everywhere different from its neighbours. */
static uint8_t byte_at(size_t k)
{
    return (uint8_t)(k * 7 + k / 251);
}

/* Puts a message where the kernel would. */
static size_t receive(size_t entries)
{
    size_t k = 0;
    for (size_t i = 0; i < entries && k < UDP_MESSAGE_MAX; i++) {
        uint8_t *base = scatter.iov[i].iov_base;
        for (size_t j = 0; j < scatter.iov[i].iov_len && k < UDP_MESSAGE_MAX; j++)
            base[j] = byte_at(k++);
    }
    return k;
}

/* However it was laid out, each byte is found again, and pieces never go over an edge. */
static void test_every_byte_is_found(void **state)
{
    (void)state;
    static const uint32_t mtus[] = {256, 1024, 4096};
    for (size_t m = 0; m < sizeof mtus / sizeof *mtus; m++) {
        uint32_t max = udp_scatter_places_max(mtus[m]);
        for (uint32_t count = 0; count <= max; count += count < 3 ? 1 : max - 3) {
            assert_int_equal(receive(lay_out(mtus[m], count)), UDP_MESSAGE_MAX);
            for (uint32_t offset = 0; offset < UDP_MESSAGE_MAX; offset++) {
                uint32_t got;
                const uint8_t *piece = udp_scatter_piece(&scatter, offset, UDP_MESSAGE_MAX - offset, &got);
                assert_in_range(got, 1, UDP_MESSAGE_MAX - offset);
                assert_int_equal(piece[0], byte_at(offset));
                assert_int_equal(piece[got - 1], byte_at(offset + got - 1));
            }
        }
    }
}

static void test_gather_over_edges(void **state)
{
    (void)state;
    receive(lay_out(256, 5));
    static uint8_t out[UDP_MESSAGE_MAX];
    for (uint32_t offset = 0; offset < 2000; offset += 13) {
        for (uint32_t bytes = 0; bytes < 1000; bytes += 29) {
            udp_scatter_gather(&scatter, offset, bytes, out);
            for (uint32_t k = 0; k < bytes; k++)
                assert_int_equal(out[k], byte_at(offset + k));
        }
    }
}

/* A full packet that is in its speculative place: header, payload and iCRC each in one piece. */
static void test_placed_packet_is_whole(void **state)
{
    (void)state;
    lay_out(1024, 4);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t start = i * (1024 + 36), got;
        udp_scatter_piece(&scatter, start, 32, &got);
        assert_int_equal(got, 32);
        assert_ptr_equal(udp_scatter_piece(&scatter, start + 32, 1024, &got), places[i]);
        assert_int_equal(got, 1024);
        udp_scatter_piece(&scatter, start + 32 + 1024, 4, &got);
        assert_int_equal(got, 4);
        assert_true(udp_scatter_is_placed(&scatter, start));
    }
    assert_false(udp_scatter_is_placed(&scatter, 4 * (1024 + 36)));
}

static void test_places_max(void **state)
{
    (void)state;
    assert_int_equal(udp_scatter_places_max(4096), 15);
    assert_int_equal(udp_scatter_places_max(1024), 61);
    assert_int_equal(udp_scatter_places_max(256), UDP_PLACES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_is_found),
        cmocka_unit_test(test_gather_over_edges),
        cmocka_unit_test(test_placed_packet_is_whole),
        cmocka_unit_test(test_places_max),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
