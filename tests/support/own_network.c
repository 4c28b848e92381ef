/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/own_network.h"

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void own_network(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        return;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
        perror("own_network: the loopback interface does not come up");
        exit(1);
    }
    close(fd);
}
