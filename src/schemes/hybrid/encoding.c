/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/encoding.h"

#include <assert.h>

void hybrid_encoding_init(struct hybrid_encoding *encoding, const struct ec_layout *layout)
{
    *encoding = (struct hybrid_encoding){.next_ahead = layout->groups};
}

void hybrid_encoding_on_encoded(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                                uint32_t encoded)
{
    assert(encoded <= encoding->given);
    for (; encoding->done < encoded; encoding->done++) { /* at most HYBRID_ENCODINGS_AHEAD */
        uint32_t at = encoding->done % HYBRID_ENCODINGS_AHEAD;
        struct hybrid_group *group = &groups->all[encoding->pending[at].group];
        assert(group->ready < encoding->pending[at].rows);
        group->ready = encoding->pending[at].rows;
        if (encoding->pending[at].group < groups->work_from)
            groups->work_from = encoding->pending[at].group;
    }
}

void hybrid_encoding_on_near(struct hybrid_encoding *encoding, const struct ec_layout *layout,
                             uint32_t sent_through)
{
    if (encoding->near || layout->places == 0)
        return;
    encoding->near = true;
    uint32_t block = sent_through / layout->block_chunks;
    if (sent_through < layout->chunks)
        encoding->next_ahead = block * layout->block_groups;
}

static bool request(struct hybrid_encoding *encoding, struct hybrid_group *group, uint32_t index,
                    uint32_t rows, struct hybrid_encode *encode)
{
    *encode = (struct hybrid_encode){index, group->asked, rows - group->asked};
    group->asked = (uint8_t)rows;
    uint32_t at = encoding->given++ % HYBRID_ENCODINGS_AHEAD;
    encoding->pending[at].group = index;
    encoding->pending[at].rows = (uint8_t)rows;
    return true;
}

/* Each walk goes on where the last one ended. */
static bool next_ahead(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                       uint32_t sent_through, uint32_t rows_ahead, struct hybrid_encode *encode)
{
    const struct ec_layout *layout = groups->layout;
    while (encoding->next_ahead < layout->groups) {
        uint32_t index = encoding->next_ahead;
        struct ec_block block = ec_layout_block(layout, index - index % layout->block_groups);
        if (block.first_chunk + block.chunks > sent_through)
            return false;
        encoding->next_ahead++;
        if (groups->all[index].asked < rows_ahead)
            return request(encoding, &groups->all[index], index, rows_ahead, encode);
    }
    return false;
}

bool hybrid_encoding_next(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                          uint32_t sent_through, uint32_t rows_ahead, struct hybrid_encode *encode)
{
    if (groups->layout->places == 0 || encoding->given - encoding->done == HYBRID_ENCODINGS_AHEAD)
        return false;
    for (uint32_t index = groups->work_from; index < groups->layout->groups; index++)
        if (groups->all[index].want > groups->all[index].asked)
            return request(encoding, &groups->all[index], index, groups->all[index].want, encode);
    uint32_t most = hybrid_groups_rows_max(groups);
    return next_ahead(encoding, groups, sent_through, rows_ahead < most ? rows_ahead : most, encode);
}
