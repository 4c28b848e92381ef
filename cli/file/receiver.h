/*
 * receiver.h - takes one file over a connection, up to its final name on disk.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_RECEIVER_H
#define LH_CLI_FILE_RECEIVER_H

#include <longhaul/connection.h>

#include <sys/types.h>

struct cli_file_receiver {
    int folder;    /* open, where files go */
    bool force;    /* may replace files */
    bool resume;   /* goes on where an earlier try ended; the sender may ask for that as well */
    bool dotfiles; /* takes files whose names begin with a dot */
    mode_t umask;  /* what files may not permit */
};

enum cli_reception {
    CLI_RECEPTION_WHOLE,    /* the file is there */
    CLI_RECEPTION_FAILED,   /* an offered file was not received; reported on stderr and to the sender
                           */
    CLI_RECEPTION_STRANGER, /* the peer made no valid offer; reported */
    CLI_RECEPTION_STOPPED,  /* by a signal */
};

/* Does not close the connection. Prints a line on stdout for a file that got here. */
enum cli_reception cli_file_receive(const struct cli_file_receiver *receiver,
                                    struct lh_connection *connection);

#endif
