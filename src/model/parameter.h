/*
 * parameter.h - parameters of the model's schemes as text: "key=value", several of them separated by
 * commas.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_PARAMETER_H
#define LH_MODEL_PARAMETER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of them. It points into the text, and does not end with zero. */
struct model_parameter {
    const char *text;
    int length;
    const char *value; /* NULL: there is no '=' */
    int key_length;
};

/* The one that begins there. */
struct model_parameter model_parameter_at(const char *text);
bool model_parameter_is(const struct model_parameter *parameter, const char *key);
bool model_parameter_value_is(const struct model_parameter *parameter, const char *word);

/* Its value. -LH_EINVAL; -LH_ERANGE: a timeout that is too short. */
int model_parameter_number(const struct model_parameter *parameter, double *value);
int model_parameter_whole(const struct model_parameter *parameter, uint32_t *value);
/* A timeout in RTT, of which `more` is not in the text. */
int model_parameter_rto(const struct model_parameter *parameter, double more, double *rto_rtts);

/* A text that is being written, cut at size. `used` counts all of it, without the final zero. */
struct model_text {
    char *out;
    size_t size, used;
};

void model_text_add(struct model_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* ",name=value", as short as it reads back. */
void model_text_add_number(struct model_text *text, const char *name, double value);

#endif
