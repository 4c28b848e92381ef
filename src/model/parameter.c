/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/parameter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/error.h"

struct model_parameter model_parameter_at(const char *text)
{
    struct model_parameter parameter = {.text = text, .length = (int)strcspn(text, ",")};
    const char *equals = memchr(text, '=', (size_t)parameter.length);
    parameter.key_length = equals ? (int)(equals - text) : parameter.length;
    parameter.value = equals ? equals + 1 : NULL;
    return parameter;
}

bool model_parameter_is(const struct model_parameter *parameter, const char *key)
{
    return parameter->value && strlen(key) == (size_t)parameter->key_length &&
           memcmp(key, parameter->text, strlen(key)) == 0;
}

bool model_parameter_value_is(const struct model_parameter *parameter, const char *word)
{
    size_t length = (size_t)(parameter->length - parameter->key_length - 1);
    return length == strlen(word) && memcmp(parameter->value, word, length) == 0;
}

int model_parameter_number(const struct model_parameter *parameter, double *value)
{
    const char *end = parameter->value;
    if (lh_decimal_read_double(&end, value) != 0 || end != parameter->text + parameter->length)
        return lh_fail(LH_EINVAL, "\"%.*s\" is not a number; write it like %.*s=2", parameter->length,
                       parameter->text, parameter->key_length, parameter->text);
    return 0;
}

int model_parameter_whole(const struct model_parameter *parameter, uint32_t *value)
{
    double read;
    int failed = model_parameter_number(parameter, &read);
    if (failed)
        return failed;
    if (read != floor(read) || read > 65535)
        return lh_fail(LH_EINVAL, "\"%.*s\" is not a whole number up to 65535; write it like %.*s=8",
                       parameter->length, parameter->text, parameter->key_length, parameter->text);
    *value = (uint32_t)read;
    return 0;
}

int model_parameter_rto(const struct model_parameter *parameter, double more, double *rto_rtts)
{
    double value;
    int failed = model_parameter_number(parameter, &value);
    if (failed)
        return failed;
    if (!(value + more >= 1))
        return lh_fail(LH_ERANGE, "\"%.*s\" makes a timeout of %g round trips; it has at least 1",
                       parameter->length, parameter->text, value + more);
    *rto_rtts = value + more;
    return 0;
}

void model_text_add(struct model_text *text, const char *format, ...)
{
    bool open = text->used < text->size;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(open ? text->out + text->used : NULL, open ? text->size - text->used : 0, format,
                           arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
}

void model_text_add_number(struct model_text *text, const char *name, double value)
{
    char number[LH_DECIMAL_DOUBLE_MAX];
    lh_decimal_format_double(value, number, sizeof number);
    model_text_add(text, ",%s=%s", name, number);
}
