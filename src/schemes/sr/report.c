/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/report.h"

static uint64_t lost_of_word(const struct sr_ledger *ledger, uint32_t word, uint64_t missing, uint32_t mark)
{
    uint64_t repaired = missing & ledger->again_bits[word];
    uint64_t lost = missing & ~repaired;
    for (; repaired != 0; repaired &= repaired - 1) { /* at most 64 */
        uint32_t bit = (uint32_t)__builtin_ctzll(repaired);
        if (ledger->stamps[word * 64 + bit] <= mark)
            lost |= (uint64_t)1 << bit;
    }
    return lost;
}

bool sr_report_possible(const struct sr_ledger *ledger, const struct sr_marker *marker,
                        const struct sr_ack *ack)
{
    uint32_t sent = ledger->sent_through;
    return ack->cumulative <= sent && ack->arrived <= sent && ack->mark <= marker->mark;
}

void sr_report_arrivals(struct sr_ledger *ledger, const struct sr_ack *ack)
{
    sr_ledger_ack_below(ledger, ack->cumulative);
    for (uint32_t i = 0; i < ack->words; i++)
        sr_ledger_ack_word(ledger, ack->base / 64 + i, ack->bitmap[i]);
    if (ack->arrived > ledger->arrived)
        ledger->arrived = ack->arrived;
}

void sr_report_losses(struct sr_ledger *ledger, const struct sr_ack *ack)
{
    uint32_t first = ack->base / 64;
    for (uint32_t word = first; word < first + ack->words; word++) { /* at most SR_ACK_WORDS_MAX */
        uint64_t missing = sr_ledger_under_way(ledger, word) & sr_word_below(word, ack->horizon);
        if (missing != 0)
            sr_ledger_lose_word(ledger, word, lost_of_word(ledger, word, missing, ack->mark));
    }
}
