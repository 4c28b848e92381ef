/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe_messages.h"

#include <assert.h>
#include <string.h>

#include <longhaul/probe.h>

#include "base/bytes.h"
#include "base/error.h"
#include "launch/tcp.h"
#include "model/loss_model.h"

/* ---- message --------------------------------------------------------------------------------------- */

#define PROBE_MESSAGE_MAGIC   0x4C485054u /* "LHPT" */
#define PROBE_MESSAGE_VERSION 1u
_Static_assert(PROBE_REPORT_NUMBERS <= PROBE_NUMBERS_MAX, "a report fits a message");

#define ANY UINT64_MAX
/* Limit of a kernel's counters and of sums of extents: far from overflow. */
#define COUNT_MAX ((uint64_t)1 << 48)
#define PACKETS   LH_PROBE_PACKETS_MAX

struct range {
    uint64_t low, high;
};

static const struct range ranges[][PROBE_NUMBERS_MAX] = {
    [PROBE_HELLO] = {{LH_PROBE_TIME_MIN, LH_PROBE_TIME_MAX}},
    [PROBE_WELCOME] = {{1, UINT16_MAX}, {0, ANY}},
    [PROBE_BEGIN] = {{1, UINT32_MAX}, {1, PACKETS}, {1, LH_PROBE_FLOWS_MAX}},
    [PROBE_READY] = {{1, UINT32_MAX}},
    [PROBE_END] = {{1, UINT32_MAX}, {0, PACKETS}, {0, PROBE_DRAIN_MAX_NS}},
    [PROBE_REPORT] = {{1, UINT32_MAX},
                      {0, PACKETS},
                      {0, COUNT_MAX},
                      {0, PACKETS},
                      {0, COUNT_MAX},
                      {0, PACKETS},
                      {0, 2 * LH_PROBE_TIME_MAX},
                      {0, 2 * LH_PROBE_TIME_MAX},
                      {0, COUNT_MAX},
                      {0, COUNT_MAX}},
    [PROBE_REFUSE] = {{0, 0}},
};

static uint32_t numbers_of(enum probe_message_type type)
{
    static const uint8_t counts[] = {
        [PROBE_HELLO] = PROBE_HELLO_NUMBERS,
        [PROBE_WELCOME] = PROBE_WELCOME_NUMBERS,
        [PROBE_BEGIN] = PROBE_BEGIN_NUMBERS,
        [PROBE_READY] = PROBE_READY_NUMBERS,
        [PROBE_END] = PROBE_END_NUMBERS,
        [PROBE_REPORT] = PROBE_REPORT_NUMBERS,
        [PROBE_REFUSE] = 0,
    };
    return counts[type];
}

size_t probe_message_encode(const struct probe_message *message, uint8_t *out)
{
    uint32_t count = numbers_of(message->type);
    size_t text_bytes = strlen(message->text);
    assert(text_bytes <= PROBE_TEXT_MAX);
    lh_put_be32(out, PROBE_MESSAGE_MAGIC);
    out[4] = PROBE_MESSAGE_VERSION;
    out[5] = (uint8_t)message->type;
    lh_put_be16(out + 6, (uint16_t)count);
    lh_put_be16(out + 8, (uint16_t)text_bytes);
    lh_put_be16(out + 10, 0);
    for (uint32_t i = 0; i < count; i++)
        lh_put_be64(out + PROBE_MESSAGE_HEADER_BYTES + 8 * i, message->numbers[i]);
    memcpy(out + PROBE_MESSAGE_HEADER_BYTES + 8 * count, message->text, text_bytes);
    return PROBE_MESSAGE_HEADER_BYTES + 8 * count + text_bytes;
}

int probe_message_header(const uint8_t *header, size_t *bytes)
{
    if (lh_get_be32(header) != PROBE_MESSAGE_MAGIC)
        return lh_fail(LH_EHANDSHAKE, "the remote side is not a longhaul probe (first bytes 0x%08x)",
                       lh_get_be32(header));
    if (header[4] != PROBE_MESSAGE_VERSION)
        return lh_fail(LH_EVERSION,
                       "probe version %u of the remote side, this side %u (use the same release)",
                       header[4], PROBE_MESSAGE_VERSION);
    uint32_t type = header[5], count = lh_get_be16(header + 6), text_bytes = lh_get_be16(header + 8);
    if (type < PROBE_HELLO || type > PROBE_REFUSE || lh_get_be16(header + 10) != 0)
        return lh_fail(LH_EPROTOCOL, "invalid message type %u", type);
    if (count != numbers_of((enum probe_message_type)type) || text_bytes > PROBE_TEXT_MAX)
        return lh_fail(LH_EPROTOCOL, "invalid message of type %u: %u numbers, %u bytes of text", type,
                       count, text_bytes);
    *bytes = PROBE_MESSAGE_HEADER_BYTES + 8 * (size_t)count + text_bytes;
    return 0;
}

static int check_report(const struct probe_message *report)
{
    const struct model_loss_runs runs = probe_message_runs(report);
    uint64_t received = report->numbers[PROBE_REPORT_RECEIVED], lost = 0;
    if (runs.packets > PACKETS || !model_loss_runs_possible(&runs) ||
        runs.packets - runs.lost != received || report->numbers[PROBE_REPORT_REORDERED] > received)
        return lh_fail(LH_EPROTOCOL, "inconsistent report of the remote side");
    for (uint32_t i = 0; i < LH_PROBE_FLOWS_MAX; i++) {
        if (report->numbers[PROBE_REPORT_FLOW_LOST + i] > runs.lost)
            return lh_fail(LH_EPROTOCOL, "inconsistent report of the remote side: flow %u", i);
        lost += report->numbers[PROBE_REPORT_FLOW_LOST + i];
    }
    if (lost != runs.lost)
        return lh_fail(LH_EPROTOCOL, "inconsistent report of the remote side");
    return 0;
}

/* Of text, what is no text is refused: it is shown to people, or parsed. */
static bool is_text(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return true;
}

int probe_message_decode(const uint8_t *data, size_t bytes, struct probe_message *message)
{
    size_t whole;
    if (bytes < PROBE_MESSAGE_HEADER_BYTES)
        return lh_fail(LH_EPROTOCOL, "invalid message length %zu", bytes);
    int error = probe_message_header(data, &whole);
    if (error != 0)
        return error;
    if (bytes != whole)
        return lh_fail(LH_EPROTOCOL, "invalid message length %zu (expected %zu)", bytes, whole);
    struct probe_message read = {.type = (enum probe_message_type)data[5]};
    uint32_t count = numbers_of(read.type);
    size_t numbers_end = PROBE_MESSAGE_HEADER_BYTES + 8 * (size_t)count;
    for (uint32_t i = 0; i < count; i++) {
        const struct range *range = &ranges[read.type][i];
        read.numbers[i] = lh_get_be64(data + PROBE_MESSAGE_HEADER_BYTES + 8 * i);
        bool checked_later = read.type == PROBE_REPORT && i >= PROBE_REPORT_RUNS;
        if (!checked_later && (read.numbers[i] < range->low || read.numbers[i] > range->high))
            return lh_fail(LH_EPROTOCOL, "field %u of message type %u: out of range", i, data[5]);
    }
    memcpy(read.text, data + numbers_end, whole - numbers_end);
    if (!is_text(read.text, whole - numbers_end))
        return lh_fail(LH_EPROTOCOL, "message type %u: text with a control character", data[5]);
    error = read.type == PROBE_REPORT ? check_report(&read) : 0;
    if (error == 0)
        *message = read;
    return error;
}

struct model_loss_runs probe_message_runs(const struct probe_message *report)
{
    const uint64_t *numbers = &report->numbers[PROBE_REPORT_RUNS];
    return (struct model_loss_runs){.packets = numbers[0],
                                    .lost = numbers[1],
                                    .after_arrived = numbers[2],
                                    .lost_after_arrived = numbers[3],
                                    .after_lost = numbers[4],
                                    .arrived_after_lost = numbers[5]};
}

void probe_message_set_runs(struct probe_message *report, const struct model_loss_runs *runs)
{
    const uint64_t numbers[] = {runs->packets,       runs->lost,
                                runs->after_arrived, runs->lost_after_arrived,
                                runs->after_lost,    runs->arrived_after_lost};
    _Static_assert(sizeof numbers / sizeof *numbers == PROBE_REPORT_FLOW_LOST - PROBE_REPORT_RUNS,
                   "as many as the message has places");
    memcpy(&report->numbers[PROBE_REPORT_RUNS], numbers, sizeof numbers);
}

/* ---- message io ------------------------------------------------------------------------------------ */

int probe_message_write(int fd, const struct probe_message *message, lh_time deadline)
{
    uint8_t wire[PROBE_MESSAGE_BYTES_MAX];
    return tcp_write(fd, wire, probe_message_encode(message, wire), deadline);
}

int probe_message_read(int fd, struct probe_message *message, lh_time deadline)
{
    uint8_t wire[PROBE_MESSAGE_BYTES_MAX];
    size_t bytes;
    int error = tcp_read(fd, wire, PROBE_MESSAGE_HEADER_BYTES, deadline);
    if (error == 0)
        error = probe_message_header(wire, &bytes);
    if (error == 0)
        error =
            tcp_read(fd, wire + PROBE_MESSAGE_HEADER_BYTES, bytes - PROBE_MESSAGE_HEADER_BYTES, deadline);
    return error != 0 ? error : probe_message_decode(wire, bytes, message);
}

int probe_message_read_type(int fd, enum probe_message_type type, struct probe_message *message,
                            lh_time deadline)
{
    struct probe_message got;
    int error = probe_message_read(fd, &got, deadline);
    if (error != 0)
        return error;
    if (got.type == PROBE_REFUSE)
        return lh_fail(LH_EPEER, "server: %s", got.text);
    if (got.type != type)
        return lh_fail(LH_EPROTOCOL, "unexpected message type %d (expected %d)", got.type, type);
    *message = got;
    return 0;
}

/* ---- packet ---------------------------------------------------------------------------------------- */

#define PROBE_PACKET_MAGIC   0x4C485055u /* "LHPU" */
#define PROBE_PACKET_VERSION 1u
_Static_assert(LH_PROBE_PAYLOAD_MIN >= PROBE_HEADER_BYTES, "every packet holds its header");

void probe_packet_encode(const struct probe_packet *packet, uint8_t *out)
{
    assert(packet->bytes >= PROBE_HEADER_BYTES && packet->bytes <= PROBE_UDP_PAYLOAD_MAX);
    lh_put_be32(out, PROBE_PACKET_MAGIC);
    out[4] = PROBE_PACKET_VERSION;
    out[5] = (uint8_t)packet->kind;
    lh_put_be16(out + 6, packet->flow);
    lh_put_be64(out + 8, packet->token);
    lh_put_be32(out + 16, packet->round);
    lh_put_be32(out + 20, packet->number);
    lh_put_be64(out + 24, packet->sent_ns);
    lh_put_be32(out + 32, packet->bytes);
    lh_put_be32(out + 36, packet->held_ns);
}

bool probe_packet_decode(const uint8_t *data, size_t bytes, struct probe_packet *packet)
{
    if (bytes < PROBE_HEADER_BYTES || bytes > PROBE_UDP_PAYLOAD_MAX)
        return false;
    if (lh_get_be32(data) != PROBE_PACKET_MAGIC || data[4] != PROBE_PACKET_VERSION)
        return false;
    if (data[5] < PROBE_PING || data[5] > PROBE_DATA || lh_get_be32(data + 32) != bytes)
        return false;
    *packet = (struct probe_packet){
        .kind = (enum probe_packet_kind)data[5],
        .flow = lh_get_be16(data + 6),
        .token = lh_get_be64(data + 8),
        .round = lh_get_be32(data + 16),
        .number = lh_get_be32(data + 20),
        .sent_ns = lh_get_be64(data + 24),
        .bytes = (uint32_t)bytes,
        .held_ns = lh_get_be32(data + 36),
    };
    return true;
}
