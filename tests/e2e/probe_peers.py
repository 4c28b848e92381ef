"""Peers that longhaul probe must survive: servers that are none, and a client that tries what it may not.

    probe_peers.py serve KIND     listens, prints its port, treats one client badly
    probe_peers.py report KIND    a server that does all, and reports what it likes: drops, sizes, lies
    probe_peers.py ask PORT       to a real server at ::1: only the right token is answered, nothing grows

SPDX-License-Identifier: BSD-3-Clause
"""

import select
import socket
import struct
import sys

HELLO, WELCOME, BEGIN, READY, END, REPORT, REFUSE = range(1, 8)
PING, PONG, WHOLE, CAME, DATA = range(1, 6)
PATIENCE_S = 30


def message(kind, numbers=(), text=b"", magic=b"LHPT", version=1):
    head = magic + struct.pack(">BBHHH", version, kind, len(numbers), len(text), 0)
    return head + b"".join(struct.pack(">Q", number) for number in numbers) + text


def read(stream, count):
    data = b""
    while len(data) < count:
        got = stream.recv(count - len(data))
        assert got, "the other side hung up"
        data += got
    return data


def hear(stream):
    head = read(stream, 12)
    assert head[:4] == b"LHPT", head
    kind, count, text = struct.unpack(">xBHHxx", head[4:])
    numbers = struct.unpack(f">{count}Q", read(stream, 8 * count))
    return kind, numbers, read(stream, text)


def free_udp_port():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as closed:
        closed.bind(("::1", 0))
        return closed.getsockname()[1]


def serve(kind):
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        print(listener.getsockname()[1], flush=True)
        stream, _ = listener.accept()
        stream.settimeout(PATIENCE_S)
        hear(stream)
        answers = {
            "noise": b"\x00\xff" * 3000,
            "web": b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "version": message(WELCOME, (1, 2), version=9),
            "port": message(WELCOME, (70000, 2)),
            "refuse": message(REFUSE, (), b"not today"),
            "escape": message(REFUSE, (), b"\x1b[2J"),
            "closed": message(WELCOME, (free_udp_port(), 2)),
            "turn": message(WELCOME, (free_udp_port(), 2)) + message(READY, (1,)),
            "silence": b"",
            "gone": None,
        }
        if answers[kind] is None:
            stream.close()
            return
        try:
            stream.sendall(answers[kind])
            while stream.recv(4096):
                pass
        except ConnectionResetError:
            pass  # the client had heard enough


def loss_runs(fates):
    """What struct model_loss_runs has, in its order; of fates True is a loss."""
    pairs = list(zip(fates, fates[1:]))
    return (len(fates), sum(fates), sum(not a for a, _ in pairs), sum(b and not a for a, b in pairs),
            sum(a for a, _ in pairs), sum(a and not b for a, b in pairs))


def report_of(kind, number, sent, payload):
    """drops: the host dropped a tenth; sizes: of large packets a quarter is lost; lies: too many came."""
    gap, drops = {"drops": (10, 7), "sizes": (4 if payload >= 2000 else 0, 0), "lies": (0, 0)}[kind]
    runs = loss_runs([gap > 0 and i % gap == 1 for i in range(sent)])
    came = sent - runs[1] + (kind == "lies")
    order = [came, 0, 0, 0, 0, 0, 10**6, drops, 0]
    return message(REPORT, [number, *order, *runs, runs[1]] + [0] * 15)


def serve_whole(stream, udp, kind):
    number = payload = 0
    while True:
        ready, _, _ = select.select([stream, udp], [], [], PATIENCE_S)
        assert ready, "the client fell silent"
        if udp in ready:
            data, address = udp.recvfrom(65536)
            payload = len(data) if data[5] == DATA else payload
            if data[5] in (PING, WHOLE):
                head = data[:5] + bytes([data[5] + 1]) + data[6:32] + struct.pack(">II", 64, 0)
                udp.sendto(head.ljust(64, b"\0"), address)
            continue
        if not stream.recv(1, socket.MSG_PEEK):
            return
        said, numbers, _ = hear(stream)
        if said == BEGIN:
            number = numbers[0]
            stream.sendall(message(READY, (number,)))
        else:
            stream.sendall(report_of(kind, number, numbers[1], payload))


def report(kind):
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener, \
            socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
        print(listener.getsockname()[1], flush=True)
        stream, _ = listener.accept()
        stream.settimeout(PATIENCE_S)
        udp.bind(("::1", 0))
        hear(stream)
        stream.sendall(message(WELCOME, (udp.getsockname()[1], 5)))
        try:
            serve_whole(stream, udp, kind)
        except ConnectionResetError:
            pass  # the client does not believe it


def packet(kind, token, size, number=0):
    head = b"LHPU" + struct.pack(">BBHQIIQII", 1, kind, 0, token, 0, number, 7, size, 0)
    return head.ljust(size, b"\0")


def answer_to(udp, data):
    """The answer, or None; a ping that is answered for certain goes behind and shows that no more comes."""
    udp.send(data)
    udp.send(packet(PING, TOKEN, 64, number=999))
    first = udp.recv(65536)
    number = struct.unpack(">I", first[20:24])[0]
    if number == 999:
        return None
    udp.recv(65536)
    return first


def ask(port):
    global TOKEN
    stream = socket.create_connection(("::1", port), timeout=PATIENCE_S)
    stream.sendall(message(HELLO, (10**9,), b"none"))
    kind, (udp_port, TOKEN), _ = hear(stream)
    assert kind == WELCOME
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.settimeout(PATIENCE_S)
    udp.connect(("::1", udp_port))
    assert len(answer_to(udp, packet(PING, TOKEN, 64))) == 64
    assert len(answer_to(udp, packet(PING, TOKEN, 1200))) == 64
    assert answer_to(udp, packet(PING, TOKEN ^ 1, 64)) is None, "a stranger was answered"
    assert answer_to(udp, packet(PING, TOKEN, 64)[:40]) is None, "a length that is a lie"
    assert answer_to(udp, packet(PING, TOKEN, 44)) is None, "the answer would be longer"
    assert answer_to(udp, packet(PONG, TOKEN, 64)) is None
    assert answer_to(udp, b"") is None and answer_to(udp, b"\xff" * 9000) is None

    # A packet of a round that has not begun, and of numbers that it does not have, changes nothing.
    udp.send(packet(5, TOKEN, 64))
    stream.sendall(message(BEGIN, (1, 10, 1)))
    assert hear(stream)[0] == READY
    for number in (0, 1, 1, 5, 10, 4000000000):
        udp.send(b"LHPU" + struct.pack(">BBHQIIQII", 1, 5, 0, TOKEN, 1, number, 7, 64, 0).ljust(60, b"\0"))
    stream.sendall(message(END, (1, 10, 0)))
    kind, numbers, _ = hear(stream)
    assert kind == REPORT and numbers[1] == 3 and numbers[2] == 1, numbers
    assert numbers[10:16] == (10, 7, 3, 2, 6, 1), numbers

    stream.sendall(message(BEGIN, (2, 2**40, 1)))
    kind, _, text = hear(stream)
    assert kind == REFUSE and b"out of range" in text, (kind, text)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    elif sys.argv[1] == "report":
        report(sys.argv[2])
    else:
        ask(int(sys.argv[2]))
