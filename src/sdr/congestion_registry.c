/*
 * The congestion controllers of this process: those of the library, then those of programs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <longhaul/congestion.h>
#include <longhaul/error.h>

#include "base/error.h"
#include "congestion/congestion_table.h"

#define CONTROLLER_NAME_MAX   32 /* bytes, with the zero */
#define CONTROLLER_LETTERS    "abcdefghijklmnopqrstuvwxyz0123456789-_."
#define CONTROLLERS_ADDED_MAX 16u
#define CONTROLLERS_MAX       64u   /* with those of the library */
#define CONTROLLER_STATE_MAX  65536 /* bytes, of an engine's memory for each connection */

/* Of this process; those of programs after the library's. Readers take no lock: it only grows. */
static const struct lh_congestion *controllers[CONTROLLERS_MAX];
static size_t controllers_built_in;
static pthread_once_t controllers_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t controllers_adding = PTHREAD_MUTEX_INITIALIZER;

static void fill_controllers(void)
{
    const struct lh_congestion *const *all = congestion_built_in();
    for (; all[controllers_built_in]; controllers_built_in++) {
        assert(controllers_built_in + CONTROLLERS_ADDED_MAX + 1 < CONTROLLERS_MAX);
        controllers[controllers_built_in] = all[controllers_built_in];
    }
}

const struct lh_congestion *const *lh_congestions(void)
{
    pthread_once(&controllers_once, fill_controllers);
    return controllers;
}

static int check_controller(const struct lh_congestion *controller)
{
    const char *name = controller->name;
    size_t bytes = name ? strnlen(name, CONTROLLER_NAME_MAX) : 0;
    if (bytes == 0 || bytes == CONTROLLER_NAME_MAX || strspn(name, CONTROLLER_LETTERS) != bytes)
        return lh_fail(LH_EINVAL,
                       "congestion controller: name invalid (use 1 to %d of " CONTROLLER_LETTERS ")",
                       CONTROLLER_NAME_MAX - 1);
    if (!controller->help || !controller->parse || !controller->start || !controller->on_feedback ||
        !controller->on_timer || !controller->decide || !controller->view)
        return lh_fail(LH_EINVAL, "congestion controller \"%s\": incomplete (only on_sent may be NULL)",
                       name);
    if (controller->state_bytes == 0 || controller->state_bytes > CONTROLLER_STATE_MAX)
        return lh_fail(LH_EINVAL, "congestion controller \"%s\": state of %zu bytes (use 1 to %d)", name,
                       controller->state_bytes, CONTROLLER_STATE_MAX);
    if (controller->receiver_bytes != 0 || controller->receiver_start || controller->receiver_on_arrived ||
        controller->receiver_credit)
        return lh_fail(LH_EINVAL,
                       "congestion controller \"%s\": has a receiver's half, which peers do not know (set "
                       "its members to 0)",
                       name);
    return 0;
}

/* Under the lock. */
static int add_controller(const struct lh_congestion *controller)
{
    size_t count = 0;
    for (; controllers[count]; count++) {
        if (controllers[count] == controller)
            return 0;
        if (strcmp(controllers[count]->name, controller->name) == 0)
            return lh_fail(LH_EINVAL, "congestion controller \"%s\": name taken (choose another)",
                           controller->name);
    }
    if (count == controllers_built_in + CONTROLLERS_ADDED_MAX)
        return lh_fail(LH_ERANGE, "congestion controller \"%s\": %u were added, and no more fit",
                       controller->name, CONTROLLERS_ADDED_MAX);
    __atomic_store_n(&controllers[count], controller, __ATOMIC_RELEASE);
    return 0;
}

int lh_congestion_add(const struct lh_congestion *controller)
{
    int error = check_controller(controller);
    if (error)
        return error;
    pthread_once(&controllers_once, fill_controllers);
    pthread_mutex_lock(&controllers_adding);
    error = add_controller(controller);
    pthread_mutex_unlock(&controllers_adding);
    return error;
}
