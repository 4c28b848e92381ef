/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/margin.h"

#include <assert.h>

#define FAILURE  1e-6
#define LOSS_MIN (1.0 / 1024)
#define LOSS_MAX 0.5

static double loss_seen(uint32_t injected, uint32_t arrived)
{
    if (arrived >= injected)
        return LOSS_MIN;
    double loss = (double)(injected - arrived) / injected;
    if (loss < LOSS_MIN)
        return LOSS_MIN;
    return loss > LOSS_MAX ? LOSS_MAX : loss;
}

uint32_t ec_margin(uint32_t lacking, uint32_t injected, uint32_t arrived)
{
    assert(lacking >= 1 && lacking <= 255);
    double loss = loss_seen(injected, arrived);
    double exactly = 1; /* the chance that the last that is needed is the (lacking + margin)-th */
    for (uint32_t i = 0; i < lacking; i++)
        exactly *= 1 - loss;
    double enough = exactly;
    uint32_t margin = 0;
    while (1 - enough > FAILURE && margin < EC_MARGIN_MAX) {
        exactly *= loss * (lacking + margin) / (margin + 1);
        enough += exactly;
        margin++;
    }
    return margin;
}
