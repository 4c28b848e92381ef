/*
 * test_wire_numbers.c - frozen lists: each number that peers of other releases read, as a literal. A line is
 * never changed and never removed; what is new gets a line of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/wire_numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/collective.h>
#include <longhaul/congestion.h>
#include <longhaul/error.h>
#include <longhaul/onesided.h>
#include <longhaul/scheme.h>

#include "cli/distribute/distribute_streams.h"
#include "cli/file/tree_records.h"
#include "cli/perf/perf_messages.h"
#include "collective/operation_digest.h"
#include "congestion/congestion_table.h"
#include "group/group_messages.h"
#include "launch/group_frames.h"
#include "launch/handshake.h"
#include "message/connection_state.h"
#include "probe/probe_messages.h"
#include "schemes/ec_layout.h"
#include "wire/control_messages.h"
#include "wire/eager_packets.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"
#include "wire/scheme_messages.h"
#include "wire/xp_header.h"

struct frozen {
    const char *name;
    uint32_t number;
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- tables ------------------------------------------------------------------------------------------ */

static const struct frozen controllers[] = {
    {"fixed", 1}, {"bbr", 2}, {"swift", 3}, {"timely", 4}, {"dcqcn", 5}, {"eqds", 6},
};

static const struct frozen schemes[] = {
    {"sr-nack", 1}, {"sr-rto", 2}, {"ec:mds", 3}, {"ec:xor", 4}, {"bounded", 5}, {"hybrid", 6},
};

static uint32_t frozen_number(const struct frozen *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].number;
    fail_msg("%s: not in the frozen list (add a line with its number in wire/wire_numbers.h)", name);
    return 0;
}

static void check_distinct(const struct frozen *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t other = 0; other < i; other++) {
            assert_string_not_equal(list[i].name, list[other].name);
            assert_int_not_equal(list[i].number, list[other].number);
        }
}

static void test_controllers(void **state)
{
    (void)state;
    size_t found = 0;
    check_distinct(controllers, COUNT(controllers));
    for (const struct lh_congestion *const *c = lh_congestions(); *c; c++, found++) {
        uint8_t number = congestion_wire_number(*c);
        assert_int_equal(number, frozen_number(controllers, COUNT(controllers), (*c)->name));
        assert_ptr_equal(congestion_of_wire_number(number), *c);
    }
    assert_int_equal(found, COUNT(controllers));
    static const struct lh_congestion stranger = {.name = "mine"};
    assert_int_equal(congestion_wire_number(&stranger), 0);
    assert_null(congestion_of_wire_number(0));
    assert_null(congestion_of_wire_number(UINT8_MAX));
}

static void test_schemes(void **state)
{
    (void)state;
    size_t found = 0;
    check_distinct(schemes, COUNT(schemes));
    for (const struct lh_scheme *const *s = lh_schemes(); *s; s++, found++)
        assert_int_equal((*s)->id, frozen_number(schemes, COUNT(schemes), (*s)->name));
    assert_int_equal(found, COUNT(schemes));
}

/* ---- enums ------------------------------------------------------------------------------------------- */

#define SAME(constant, number)                                                                             \
    {                                                                                                      \
#constant, (constant), (number)                                                                    \
    }

struct constant {
    const char *name;
    uint32_t is, was;
};

static void check(const struct constant *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].is != list[i].was)
            fail_msg("%s: %u on the wire until now, %u in this build", list[i].name, list[i].was,
                     list[i].is);
}

static void test_control(void **state)
{
    (void)state;
    static const struct constant list[] = {
        SAME(CONTROL_PING, 1),
        SAME(CONTROL_PONG, 2),
        SAME(CONTROL_CTS, 3),
        SAME(CONTROL_CTS_HEARD, 4),
        SAME(CONTROL_UPPER, 5),
        SAME(CONTROL_CLOSE, 6),
        SAME(CONTROL_FEEDBACK, 7),
        SAME(CONTROL_UPPERS, 8),
        SAME(CONTROL_KEEPALIVE, 9),
        SAME(CONTROL_ALIVE, 10),
        SAME(CONTROL_PART, 11),
        SAME(CONTROL_PROBE, 12),
        SAME(CONTROL_PROBED, 13),
        SAME(QP_INFO_UDP, 1),
        SAME(QP_INFO_VERBS, 2),
        SAME(QP_INFO_SIM, 3),
        SAME(ROCE_UC_SEND_ONLY, 0x24),
        SAME(ROCE_UC_WRITE_ONLY, 0x2A),
        SAME(ROCE_UC_WRITE_ONLY_IMM, 0x2B),
        SAME(ROCE_CNP, 0x81),
        SAME(XP_SEND, 0xC0),
        SAME(XP_WRITE, 0xC1),
        SAME(XP_WRITE_IMM, 0xC2),
        SAME(XP_READ_REQUEST, 0xC3),
        SAME(XP_READ_RESPONSE, 0xC4),
        SAME(XP_NOTIFICATION, 0xC5),
    };
    check(list, COUNT(list));
}

static void test_messages(void **state)
{
    (void)state;
    static const struct constant list[] = {
        SAME(TRANSFER_TO_RECEIVER, 1),
        SAME(TRANSFER_TO_SENDER, 2),
        SAME(TRANSFER_DONE, 3),
        SAME(TRANSFER_REFUSE, 4),
        SAME(TRANSFER_CANCEL, 5),
        SAME(TRANSFER_FORGET, 6),
        SAME(EAGER_KIND, 7),
        SAME(ONESIDED_KIND, 8),
        SAME(EAGER_HAS_ACK, 1),
        SAME(EAGER_HAS_ENTRIES, 2),
        SAME(EAGER_PROBE, 4),
        SAME(EAGER_PART, 8),
        SAME(EAGER_MISSING, 0),
        SAME(EAGER_HELD, 1),
        SAME(EAGER_DELIVERED, 2),
        SAME(EAGER_OTHER, 3),
        SAME(ONESIDED_HAS_PEER, 1),
        SAME(ONESIDED_ASKS, 2),
        SAME(ONESIDED_ANSWERS, 4),
        SAME(ONESIDED_WRITE, 1),
        SAME(ONESIDED_READ, 2),
        SAME(ONESIDED_ANSWER, 3),
        SAME(LH_ACCESS_WRITE, 1),
        SAME(LH_ACCESS_READ, 2),
        SAME(BLOB_TAGS, 1),
        SAME(BLOB_EAGER, 2),
        SAME(BLOB_MATCH, 4),
        SAME(BLOB_MATCHES, 8),
        SAME(BLOB_ONESIDED, 16),
        SAME(BLOB_KEEPALIVE, 32),
        SAME(BLOB_PARTS, 64),
        SAME(WIRE_ANNOUNCES_HYBRID, 128),
        SAME(BLOB_LONG, 256),
        SAME(BLOB_PIECES, 512),
    };
    check(list, COUNT(list));
}

static void test_machines(void **state)
{
    (void)state;
    static const struct constant list[] = {
        SAME(SR_MARK, 1),
        SAME(SR_ACK, 2),
        SAME(SR_FLAG_PROBE, 1),
        SAME(SR_FLAG_NACK, 1),
        SAME(EC_MARK, 1),
        SAME(EC_ACK, 2),
        SAME(EC_REQUEST, 3),
        SAME(EC_FLAG_PROBE, 1),
        SAME(EC_FLAG_END, 2),
        SAME(EC_XOR, 1),
        SAME(EC_MDS, 2),
        SAME(EC_FALLBACK_IR, 0),
        SAME(EC_FALLBACK_SR, 1),
        SAME(BOUNDED_END, 1),
        SAME(BOUNDED_ACK, 2),
        SAME(HYBRID_ROWS_KIND, 3),
        SAME(HYBRID_DECODABLE, 255),
    };
    check(list, COUNT(list));
}

static void test_groups(void **state)
{
    (void)state;
    static const struct constant list[] = {
        SAME(TAG_HELLO, 1),
        SAME(TAG_SIGNATURE, 2),
        SAME(TAG_PIECE, 3),
        SAME(TAG_ABORT, 4),
        SAME(TAG_FAILED, 5),
        SAME(TAG_AGREE, 6),
        SAME(TAG_COUNTS, 7),
        SAME(TAG_OVER, 8),
        SAME(TAG_TIMEOUT, 9),
        SAME(TAG_REFUSED, 10),
        SAME(TAG_KINDS, 11),
        SAME(COLLECTIVE_BROADCAST, 0),
        SAME(COLLECTIVE_REDUCE, 1),
        SAME(COLLECTIVE_ALLREDUCE, 2),
        SAME(COLLECTIVE_REDUCE_SCATTER, 3),
        SAME(COLLECTIVE_ALLGATHER, 4),
        SAME(COLLECTIVE_GATHER, 5),
        SAME(COLLECTIVE_SCATTER, 6),
        SAME(COLLECTIVE_ALLTOALL, 7),
        SAME(COLLECTIVE_BARRIER, 8),
        SAME(COLLECTIVES, 9),
        SAME(CALL_PLAIN, 0),
        SAME(CALL_UNEVEN, 1),
        SAME(CALL_COMPARE, 2),
        SAME(CALL_FORMS, 3),
        SAME(LH_F32, 0),
        SAME(LH_F64, 1),
        SAME(LH_F16, 2),
        SAME(LH_BF16, 3),
        SAME(LH_I32, 4),
        SAME(LH_I64, 5),
        SAME(LH_U8, 6),
        SAME(LH_I8, 7),
        SAME(LH_I16, 8),
        SAME(LH_TYPES, 9),
        SAME(LH_SUM, 0),
        SAME(LH_PROD, 1),
        SAME(LH_MIN, 2),
        SAME(LH_MAX, 3),
        SAME(LH_AVG, 4),
        SAME(LH_BAND, 5),
        SAME(LH_BOR, 6),
        SAME(LH_BXOR, 7),
        SAME(LH_REDUCTIONS, 8),
    };
    check(list, COUNT(list));
}

static void test_launch(void **state)
{
    (void)state;
    static const struct constant list[] = {
        SAME(HANDSHAKE_PROPOSAL, 1), SAME(HANDSHAKE_BLOB, 2),   SAME(HANDSHAKE_READY, 3),
        SAME(HANDSHAKE_REFUSE, 4),   SAME(HANDSHAKE_FIN, 5),    SAME(HANDSHAKE_BUSY, 6),
        SAME(HANDSHAKE_MORE, 7),     SAME(HANDSHAKE_COOKIE, 8), SAME(GROUP_HELLO, 1),
        SAME(GROUP_CHALLENGE, 2),    SAME(GROUP_PROOF, 3),      SAME(GROUP_WELCOME, 4),
        SAME(GROUP_PART, 5),         SAME(GROUP_ALL, 6),        SAME(GROUP_REFUSE, 7),
        SAME(GROUP_FULL, 8),
    };
    check(list, COUNT(list));
}

static void test_probe(void **state)
{
    (void)state;
    static const struct constant list[] = {
        SAME(PROBE_HELLO, 1),
        SAME(PROBE_WELCOME, 2),
        SAME(PROBE_BEGIN, 3),
        SAME(PROBE_READY, 4),
        SAME(PROBE_END, 5),
        SAME(PROBE_REPORT, 6),
        SAME(PROBE_REFUSE, 7),
        SAME(PROBE_PING, 1),
        SAME(PROBE_PONG, 2),
        SAME(PROBE_WHOLE, 3),
        SAME(PROBE_CAME, 4),
        SAME(PROBE_DATA, 5),
        SAME(PROBE_HELLO_TIME_NS, 0),
        SAME(PROBE_WELCOME_UDP_PORT, 0),
        SAME(PROBE_WELCOME_TOKEN, 1),
        SAME(PROBE_BEGIN_ROUND, 0),
        SAME(PROBE_BEGIN_PACKETS, 1),
        SAME(PROBE_BEGIN_FLOWS, 2),
        SAME(PROBE_READY_ROUND, 0),
        SAME(PROBE_END_ROUND, 0),
        SAME(PROBE_END_SENT, 1),
        SAME(PROBE_END_DRAIN_NS, 2),
        SAME(PROBE_REPORT_ROUND, 0),
        SAME(PROBE_REPORT_RECEIVED, 1),
        SAME(PROBE_REPORT_DUPLICATES, 2),
        SAME(PROBE_REPORT_REORDERED, 3),
        SAME(PROBE_REPORT_EXTENT_SUM, 4),
        SAME(PROBE_REPORT_EXTENT_MAX, 5),
        SAME(PROBE_REPORT_LATE_MAX_NS, 6),
        SAME(PROBE_REPORT_SPAN_NS, 7),
        SAME(PROBE_REPORT_SOCKET_DROPS, 8),
        SAME(PROBE_REPORT_HOST_DROPS, 9),
        SAME(PROBE_REPORT_RUNS, 10),
        SAME(PROBE_REPORT_FLOW_LOST, 16),
    };
    check(list, COUNT(list));
}

static void test_command(void **state)
{
    (void)state;
    static const struct constant list[] = {
        SAME(CLI_PERF_RUN, 1),        SAME(CLI_PERF_READY, 2),        SAME(CLI_PERF_RESULT, 3),
        SAME(CLI_PERF_NO, 1),         SAME(CLI_PERF_SIZE_BYTES, 0),   SAME(CLI_PERF_MESSAGES, 1),
        SAME(CLI_PERF_IN_FLIGHT, 2),  SAME(CLI_PERF_CHANNELS, 3),     SAME(CLI_PERF_WORKERS, 4),
        SAME(CLI_PERF_MTU_BYTES, 5),  SAME(CLI_PERF_CHUNK_BYTES, 6),  SAME(CLI_PERF_SLOTS, 7),
        SAME(CLI_PERF_SLOT_BYTES, 8), SAME(CLI_PERF_WINDOW_BYTES, 9), SAME(CLI_PERF_RUN_NUMBERS, 10),
        SAME(CLI_FILE_OFFER, 1),      SAME(CLI_FILE_ANSWER, 2),       SAME(CLI_FILE_START, 3),
        SAME(CLI_FILE_DIGEST, 4),     SAME(CLI_FILE_VERDICT, 5),      SAME(CLI_FILE_RESUME, 1),
        SAME(CLI_FILE_NO, 2),         SAME(CLI_TREE_ROOT, 1),         SAME(CLI_TREE_LISTED, 2),
        SAME(CLI_TREE_FOLDER, 3),     SAME(CLI_TREE_FOLDER_END, 4),   SAME(CLI_TREE_LINK, 5),
        SAME(CLI_TREE_HARD_LINK, 6),  SAME(CLI_TREE_FILE, 7),         SAME(CLI_TREE_DATA, 8),
        SAME(CLI_TREE_HOLE, 9),       SAME(CLI_TREE_FILE_END, 10),    SAME(CLI_TREE_CANCEL, 11),
        SAME(CLI_TREE_IDLE, 12),      SAME(CLI_TREE_END, 13),         SAME(CLI_TREE_DECISIONS, 32),
        SAME(CLI_TREE_RESUME, 33),    SAME(CLI_TREE_REFUSED, 34),     SAME(CLI_TREE_FAULT, 35),
        SAME(CLI_TREE_VERDICT, 36),   SAME(CLI_TREE_SKIP, 0),         SAME(CLI_TREE_SEND, 1),
        SAME(CLI_TREE_DRY_RUN, 1),    SAME(CLI_TREE_GET, 14),         SAME(CLI_TREE_WANT, 15),
        SAME(CLI_TREE_VERSION, 2),    SAME(CLI_TREE_STOPPED, 1),      SAME(CLI_TREE_PIPE, 2),
        SAME(CLI_TREE_SPARSE, 1),
    };
    check(list, COUNT(list));
}

/* A message, a CLOSE and a notice carry them. */
static void test_errors(void **state)
{
    (void)state;
    static const struct constant list[] = {
        SAME(LH_EINVAL, 1),     SAME(LH_ENOMEM, 2),          SAME(LH_EAGAIN, 3),
        SAME(LH_ERANGE, 4),     SAME(LH_EADDR, 5),           SAME(LH_EMTU, 6),
        SAME(LH_EDEVICE, 7),    SAME(LH_EHANDSHAKE, 8),      SAME(LH_EVERSION, 9),
        SAME(LH_EPEER, 10),     SAME(LH_ECLOSED, 11),        SAME(LH_ETIMEDOUT, 12),
        SAME(LH_ECANCELED, 13), SAME(LH_ETRUNCATED, 14),     SAME(LH_EKEY, 15),
        SAME(LH_ESTATE, 16),    SAME(LH_ESYSTEM, 17),        SAME(LH_EUNSUPPORTED, 18),
        SAME(LH_EPROTOCOL, 19), SAME(LH_EUNRECOVERABLE, 20), SAME(LH_EPATH, 21),
    };
    check(list, COUNT(list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controllers), cmocka_unit_test(test_schemes),  cmocka_unit_test(test_control),
        cmocka_unit_test(test_messages),    cmocka_unit_test(test_machines), cmocka_unit_test(test_groups),
        cmocka_unit_test(test_launch),      cmocka_unit_test(test_probe),    cmocka_unit_test(test_command),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
