/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/handshake.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "link/link.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* Bounds of a proposal; the connection checks its own attributes again. */
#define CHUNK_MAX       (1u << 30)
#define SLOTS_MAX       1024u
#define CHANNELS_MAX    32u
#define GENERATIONS_MAX 8u
#define SLOT_BYTES_MAX  ((uint64_t)1 << 30)

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

void handshake_header_encode(const struct handshake_header *header, uint8_t *out)
{
    assert(header->body_bytes <= HANDSHAKE_BODY_MAX);
    assert(header->version >= HANDSHAKE_VERSION_MIN && header->version <= HANDSHAKE_VERSION);
    lh_put_be32(out, HANDSHAKE_MAGIC);
    out[4] = header->version;
    out[5] = (uint8_t)header->type;
    assert(header->stream == 0 || header->version >= HANDSHAKE_VERSION_STREAMS);
    lh_put_be16(out + 6, header->stream);
    lh_put_be32(out + 8, header->body_bytes);
}

bool handshake_is_tls(const uint8_t *bytes)
{
    return bytes[0] == 0x16 && bytes[1] == 3; /* a handshake record, RFC 8446, section 5.1 */
}

int handshake_header_decode(const uint8_t *bytes, struct handshake_header *header)
{
    if (handshake_is_tls(bytes))
        return lh_fail(LH_EHANDSHAKE, "the remote side has a key, this side has none (use the same key "
                                      "file or code on both sides)");
    if (lh_get_be32(bytes) != HANDSHAKE_MAGIC)
        return lh_fail(LH_EHANDSHAKE, "the remote side is not Longhaul (first bytes 0x%08x)",
                       lh_get_be32(bytes));
    uint8_t version = bytes[4], type = bytes[5];
    if (version < HANDSHAKE_VERSION_MIN || version > HANDSHAKE_VERSION)
        return lh_fail(LH_EVERSION,
                       "the remote side speaks " HANDSHAKE_VERSION_TEXT
                       " %u, this side %u (use the same release)",
                       version, HANDSHAKE_VERSION);
    static const uint8_t last[] = {0,
                                   HANDSHAKE_FIN,
                                   HANDSHAKE_BUSY,
                                   HANDSHAKE_MORE,
                                   HANDSHAKE_COOKIE,
                                   HANDSHAKE_COOKIE,
                                   HANDSHAKE_COOKIE,
                                   HANDSHAKE_COOKIE}; /* by version */
    uint32_t body_bytes = lh_get_be32(bytes + 8);
    uint16_t stream = lh_get_be16(bytes + 6);
    if (type < HANDSHAKE_PROPOSAL || type > last[version] || body_bytes > HANDSHAKE_BODY_MAX ||
        (stream != 0 && version < HANDSHAKE_VERSION_STREAMS))
        return lh_fail(LH_EHANDSHAKE, "invalid handshake frame: type %u, %u bytes", type, body_bytes);
    *header = (struct handshake_header){version, (enum handshake_type)type, stream, body_bytes};
    return 0;
}

uint32_t handshake_proposal_encode(const struct handshake_proposal *proposal, uint8_t *out)
{
    out[0] = (uint8_t)proposal->encryption;
    out[1] = proposal->any_mtu ? ROCE_PAYLOAD_STEP : 0;
    lh_put_be16(out + 2, (uint16_t)proposal->mtu_bytes);
    lh_put_be32(out + 4, proposal->chunk_bytes);
    lh_put_be32(out + 8, proposal->slots);
    lh_put_be32(out + 12, proposal->channels);
    lh_put_be32(out + 16, proposal->generations);
    lh_put_be64(out + 20, proposal->slot_bytes);
    char *text = (char *)out + HANDSHAKE_PROPOSAL_MIN;
    lh_link_format(&proposal->link, text, HANDSHAKE_LINK_TEXT_MAX + 1);
    return HANDSHAKE_PROPOSAL_MIN + (uint32_t)strlen(text);
}

static int check_proposal(const struct handshake_proposal *proposal)
{
    bool is_roce = is_power_of_two(proposal->mtu_bytes) && proposal->mtu_bytes <= ROCE_MTU_MAX;
    if (proposal->mtu_bytes < ROCE_MTU_MIN || !roce_payload_is_valid(proposal->mtu_bytes) ||
        (!proposal->any_mtu && !is_roce))
        return lh_fail(LH_EHANDSHAKE, "invalid MTU %u proposed by the remote side", proposal->mtu_bytes);
    if (proposal->chunk_bytes > CHUNK_MAX ||
        (!proposal->any_mtu && proposal->chunk_bytes != 0 && !is_power_of_two(proposal->chunk_bytes)))
        return lh_fail(LH_EHANDSHAKE, "invalid chunk size %u proposed by the remote side",
                       proposal->chunk_bytes);
    if (!is_power_of_two(proposal->slots) || proposal->slots > SLOTS_MAX)
        return lh_fail(LH_EHANDSHAKE, "invalid number of slots %u proposed by the remote side",
                       proposal->slots);
    if (proposal->channels < 1 || proposal->channels > CHANNELS_MAX || proposal->generations < 1 ||
        proposal->generations > GENERATIONS_MAX)
        return lh_fail(LH_EHANDSHAKE,
                       "%u channels of %u generations proposed by the remote side: out of range",
                       proposal->channels, proposal->generations);
    if (proposal->slot_bytes < ROCE_MTU_MIN || proposal->slot_bytes > SLOT_BYTES_MAX)
        return lh_fail(LH_EHANDSHAKE, "invalid slot size %llu proposed by the remote side",
                       (unsigned long long)proposal->slot_bytes);
    return 0;
}

uint64_t handshake_link_bytes(const struct lh_link_spec *link)
{
    return lh_link_is_none(link) ? 0 : link_held_bytes(link);
}

int handshake_link_check(const struct lh_link_spec *link)
{
    if (handshake_link_bytes(link) <= HANDSHAKE_LINK_HELD_MAX)
        return 0;
    return lh_fail(
        LH_ERANGE,
        "the emulated link holds more than %llu MiB at rate x delay (lower its rate or its delay)",
        (unsigned long long)(HANDSHAKE_LINK_HELD_MAX >> 20));
}

int handshake_proposal_decode(const uint8_t *body, uint32_t bytes, struct handshake_proposal *proposal)
{
    if (bytes < HANDSHAKE_PROPOSAL_MIN || bytes > HANDSHAKE_PROPOSAL_MIN + HANDSHAKE_LINK_TEXT_MAX)
        return lh_fail(LH_EHANDSHAKE, "invalid proposal length %u of the remote side", bytes);
    uint8_t encryption = body[0], step = body[1];
    if (encryption > HANDSHAKE_ENCRYPTION_FULL)
        return lh_fail(LH_EHANDSHAKE, "unknown encryption %u proposed by the remote side", encryption);
    if (step != 0 && step != ROCE_PAYLOAD_STEP)
        return lh_fail(LH_EHANDSHAKE, "MTU step %u proposed by the remote side: neither 0 nor %u", step,
                       ROCE_PAYLOAD_STEP);
    struct handshake_proposal read = {
        .encryption = (enum handshake_encryption)encryption,
        .mtu_bytes = lh_get_be16(body + 2),
        .any_mtu = step != 0,
        .chunk_bytes = lh_get_be32(body + 4),
        .slots = lh_get_be32(body + 8),
        .channels = lh_get_be32(body + 12),
        .generations = lh_get_be32(body + 16),
        .slot_bytes = lh_get_be64(body + 20),
    };
    int error = check_proposal(&read);
    if (error)
        return error;
    char text[HANDSHAKE_LINK_TEXT_MAX + 1];
    uint32_t length = bytes - HANDSHAKE_PROPOSAL_MIN;
    memcpy(text, body + HANDSHAKE_PROPOSAL_MIN, length);
    text[length] = '\0';
    if (strlen(text) != length || lh_link_parse(text, &read.link))
        return lh_fail(LH_EHANDSHAKE, "invalid link proposed by the remote side");
    if (handshake_link_check(&read.link))
        return -LH_EHANDSHAKE;
    *proposal = read;
    return 0;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

enum handshake_encryption handshake_encryption_of(enum lh_encryption wanted)
{
    switch (wanted) {
    case LH_ENCRYPTION_FULL:
        return HANDSHAKE_ENCRYPTION_FULL;
    case LH_ENCRYPTION_AUTH:
        return HANDSHAKE_ENCRYPTION_AUTH;
    case LH_ENCRYPTION_OFF:
        break;
    }
    return HANDSHAKE_ENCRYPTION_NONE;
}

const char *handshake_encryption_name(enum handshake_encryption encryption)
{
    static const char *const names[] = {"off", "auth", "full"};
    return names[encryption];
}

int handshake_check_encryption(const struct handshake_proposal *connecting,
                               const struct handshake_proposal *accepting, bool knows)
{
    bool differs = connecting->encryption != accepting->encryption;
    if (!differs)
        return 0;
    bool full = connecting->encryption == HANDSHAKE_ENCRYPTION_FULL ||
                accepting->encryption == HANDSHAKE_ENCRYPTION_FULL;
    if (!knows)
        return !full
                   ? 0
                   : lh_fail(LH_EHANDSHAKE,
                             "encryption differs: one side is of an older release, which does not encrypt "
                             "data (update it, or use --encryption auth on the other)");
    return lh_fail(LH_EHANDSHAKE,
                   "encryption differs: the listener has \"%s\", the client \"%s\" (use the same "
                   "--encryption on both sides)",
                   handshake_encryption_name(accepting->encryption),
                   handshake_encryption_name(connecting->encryption));
}

void handshake_use_powers(struct handshake_proposal *proposal)
{
    proposal->any_mtu = false;
    proposal->mtu_bytes = roce_mtu_for(proposal->mtu_bytes);
    if (proposal->chunk_bytes != 0)
        proposal->chunk_bytes = (uint32_t)qp_info_chunk_for(proposal->chunk_bytes, 1);
}

struct handshake_proposal handshake_agree(const struct handshake_proposal *connecting,
                                          const struct handshake_proposal *accepting)
{
    struct handshake_proposal agreed = {
        .mtu_bytes = smaller(connecting->mtu_bytes, accepting->mtu_bytes),
        .any_mtu = connecting->any_mtu && accepting->any_mtu,
        .encryption = accepting->encryption,
        .chunk_bytes = connecting->chunk_bytes ? connecting->chunk_bytes : accepting->chunk_bytes,
        .slots = smaller(connecting->slots, accepting->slots),
        .channels = smaller(connecting->channels, accepting->channels),
        .generations = smaller(connecting->generations, accepting->generations),
        .slot_bytes =
            connecting->slot_bytes < accepting->slot_bytes ? connecting->slot_bytes : accepting->slot_bytes,
        .link = connecting->link,
    };
    if (!agreed.any_mtu)
        agreed.mtu_bytes = roce_mtu_for(agreed.mtu_bytes);
    agreed.chunk_bytes = (uint32_t)qp_info_chunk_for(agreed.chunk_bytes, agreed.mtu_bytes);
    /* A slot holds whole chunks. */
    agreed.slot_bytes -= agreed.slot_bytes % agreed.chunk_bytes;
    if (agreed.slot_bytes == 0)
        agreed.slot_bytes = agreed.chunk_bytes;
    return agreed;
}
