/* What the operators of operators.py are tried on (check.py); never compiled.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#define LARGEST(a, b) ((a) > (b) ? (a) : (b))

struct box {
    int count;
    int *list;
};

/* if (a < b) return 0; in a comment is no code. */
static int compare(int a, int b)
{
    assert(a < 100 && b < 200 &&
           "an assert that the format breaks into two lines, as there is more to it" && a + b < 250);
    const char *text = "a < b && c + 1";
    if (a < b && text)
        return 0;
    return a + b;
}

static bool is_empty(const struct box *box)
{
    int unused;
    if (!box->list)
        return true;
    (void)unused;
    return box->count == 0;
}

static void clear(struct box *box)
{
    for (int i = 0; i < box->count; i++)
        box->list[i] = 0;
    free(box->list);
    box->count = lh_min(box->count, 7);
    box->count++;
}
