/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/past.h"

void past_note(struct past *past, uint32_t number, const struct signature *signature)
{
    past->of[number % PAST_OPERATIONS] =
        (struct past_operation){.known = true, .number = number, .signature = *signature};
}

const struct signature *past_find(const struct past *past, uint32_t number)
{
    const struct past_operation *operation = &past->of[number % PAST_OPERATIONS];
    return operation->known && operation->number == number ? &operation->signature : NULL;
}
