/*
 * loss_list.h - shares of lost packets as text: "0,1e-4,1%", or "1e-6..1e-2" in decades.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_LOSS_LIST_H
#define LH_CLI_OPTIONS_LOSS_LIST_H

#include <stddef.h>

#define CLI_LOSSES_MAX 16

struct cli_loss_list {
    unsigned count;
    double ratio[CLI_LOSSES_MAX];
};

/* CLI_PROCEED; or CLI_EXIT_USAGE after reporting the cause for that option. */
int cli_loss_list_parse(const char *option, const char *text, struct cli_loss_list *list);
/* As people write one: "0", "1e-5", "2.5e-3"; into out, which is cut at size. */
void cli_loss_format(double loss, char *out, size_t size);

#endif
