"""Writes every frame of a network device to a pcap file.

SPDX-License-Identifier: BSD-3-Clause
"""

import signal
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 64 << 20
LINKTYPE_ETHERNET = 1
FRAME_MAX = 65536


def run(device, out):
    protocol = socket.htons(ETH_P_ALL)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, protocol) as packets, open(out, "wb") as file:
        try:
            packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        except PermissionError:
            packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        packets.bind((device, 0))
        ended = []
        signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, FRAME_MAX, LINKTYPE_ETHERNET))
        file.flush()
        print("capturing", flush=True)
        packets.settimeout(0.2)
        while True:
            try:
                frame = packets.recv(FRAME_MAX)
            except TimeoutError:
                # Everything that had arrived is written before it ends.
                if ended:
                    return
                continue
            seconds, nanoseconds = divmod(time.time_ns(), 10**9)
            file.write(struct.pack("<IIII", seconds, nanoseconds, len(frame), len(frame)) + frame)


if __name__ == "__main__":
    run(*sys.argv[1:])
