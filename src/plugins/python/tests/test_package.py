"""The package without torch: buffers, errors, groups, connections, planning, the simulator, the doctests."""

import array
import asyncio
import ctypes
import doctest
import gc
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from multiprocessing.connection import Client, Listener

import ranks

import longhaul
import longhaul.command
import longhaul.connection
import longhaul.group
import longhaul.planning
import longhaul.sim
from longhaul import _native
from longhaul._security import name_of_encryption, security

DEVICE = "udp:127.0.0.1"
SECRET = "sixteen characters or more"


def floats(*values):
    return array.array("f", values)


def meet(rank, size, port, **settings):
    return longhaul.Group.rendezvous(f"127.0.0.1:{port}", rank, size, SECRET, **settings)


# Two ends in a process.
PAIR = """
import os, signal, threading, longhaul
listener = longhaul.listen("127.0.0.1:0")
found = []
thread = threading.Thread(target=lambda: found.append(listener.accept(30)))
thread.start()
client = longhaul.connect(f"127.0.0.1:{listener.port}")
thread.join()
"""
# It ends without closing anything.
UNCLOSED = (
    """
import atexit
atexit.register(lambda: print(*(each._handle is None for each in (client, found[0], group))))
"""  # before the package, which so closes before that
    + PAIR
    + """
group = longhaul.Group(0, 1, device="udp:127.0.0.1")
request = found[0].recv(bytearray(5))
client.send(b"hello").wait(30)
request.wait(30)
"""
)
INTERRUPTED = (
    PAIR
    + """
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    client.recv(bytearray(5)).wait()
except KeyboardInterrupt:
    client.close()
    print("interrupted")
"""
)

# A close() that waits for a call in progress, interrupted: the end of the program closes again.
CLOSE_INTERRUPTED = (
    PAIR
    + """
client._users = 1
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    client.close()
except KeyboardInterrupt:
    print(client._handle is not None, client._closing)
client._users = 0
"""
)


class Ends(unittest.TestCase):
    def run_text(self, text):
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_program_that_closes_nothing(self):
        for _ in range(3):
            self.assertEqual(self.run_text(UNCLOSED), "True True True\n")

    def test_an_interrupt_ends_a_wait(self):
        self.assertEqual(self.run_text(INTERRUPTED), "interrupted\n")
        self.assertEqual(self.run_text(CLOSE_INTERRUPTED), "True False\n")


class Buffers(unittest.TestCase):
    def test_types_come_from_the_format(self):
        for code, name in (("f", "f32"), ("d", "f64"), ("i", "i32"), ("q", "i64"), ("B", "u8"), ("h", "i16")):
            buffer = _native.Buffer(array.array(code, [1, 2, 3]), False)
            self.assertEqual((buffer.type, buffer.bytes), (name, 3 * array.array(code).itemsize))

    def test_types_have_their_size(self):
        for form, size, name in (
            ("<l", 4, "i32"),
            ("<l", 8, "i64"),
            ("=l", 4, "i32"),
            ("l", 8, "i64"),
            ("e", 2, "f16"),
            ("h", 2, "i16"),
            ("b", 1, "i8"),
            ("H", 2, None),
            ("I", 4, None),
            ("", 1, None),
        ):
            self.assertEqual(_native.element_type(form, size), name, form)
        foreign = ">q" if sys.byteorder == "little" else "<q"
        self.assertIsNone(_native.element_type(foreign, 8))

    def test_read_only_memory_is_refused_where_it_is_written(self):
        _native.Buffer(b"abc", False)
        with self.assertRaisesRegex(BufferError, "read-only.*bytearray"):
            _native.Buffer(b"abc", True)

    def test_gaps_are_refused(self):
        with self.assertRaisesRegex(BufferError, "not contiguous"):
            _native.Buffer(memoryview(bytearray(8))[::2], False)
        with self.assertRaisesRegex(TypeError, "int: not a buffer"):
            _native.Buffer(7, False)

    def test_memory_is_not_copied(self):
        memory = bytearray(4)
        buffer = _native.Buffer(memory, True)
        _native.ffi.buffer(buffer.address, 4)[0:2] = b"hi"
        self.assertEqual(memory, b"hi\0\0")

    def test_dlpack(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is missing")

        class Exported:
            def __init__(self, owner):
                self.__dlpack__, self.__dlpack_device__ = owner.__dlpack__, owner.__dlpack_device__

        values = numpy.arange(6, dtype=numpy.float64)
        buffer = _native.Buffer(Exported(values[2:]), True)
        self.assertEqual((buffer.type, buffer.bytes), ("f64", 32))
        self.assertEqual(struct.unpack("d", _native.ffi.buffer(buffer.address, 8)[:]), (2.0,))
        with self.assertRaisesRegex(BufferError, "not contiguous"):
            _native.Buffer(Exported(numpy.zeros((4, 4))[:, 1:3]), False)

    def test_errors_reach_other_processes(self):
        error = pickle.loads(pickle.dumps(longhaul.RankFailed(10, "rank 3 has failed", 3)))
        self.assertEqual((type(error), error.name, error.rank), (longhaul.RankFailed, "LH_EPEER", 3))
        self.assertEqual(str(error), "rank 3 has failed")

    def test_settings_name_the_known_ones(self):
        with self.assertRaisesRegex(TypeError, "colour: unknown setting .known:.*rate_bps"):
            longhaul.Engine(device=DEVICE, colour=1)
        with self.assertRaisesRegex(longhaul.LonghaulError, "carrier-pigeon"):
            longhaul.Engine(device="carrier-pigeon:1")


def collectives(rank, size, port):
    with meet(rank, size, port) as group:
        assert (group.rank, group.size) == (rank, size)
        data, out = floats(rank + 1, 10 * (rank + 1)), floats(0, 0)
        group.allreduce(data, out).wait()
        total = size * (size + 1) / 2
        assert list(out) == [total, 10 * total], out
        group.allreduce(data, op="max").wait()  # in place
        assert list(data) == [size, 10 * size], data
        mine, everyone = bytes([rank]) * 3, bytearray(3 * size)
        result = group.allgather(mine, everyone).wait(30)
        assert everyone == b"".join(bytes([r]) * 3 for r in range(size)), everyone
        assert result.missing_bytes == 0 and result.bytes_received == 3 * (size - 1), result
        text = bytearray(b"from the root" if rank == 1 else 13)
        group.broadcast(text, root=1).wait()
        assert text == b"from the root"
        part = floats(0)
        group.reduce_scatter(floats(*range(size)), part).wait()
        assert part[0] == rank * size
        group.reduce(floats(1), part if rank == 0 else None, op="sum").wait()
        assert rank or part[0] == size
        gathered = bytearray(3 * size) if rank == 0 else None
        group.gather(mine, gathered).wait()
        assert rank or gathered == everyone
        group.scatter(gathered, scattered := bytearray(3)).wait()
        assert scattered == mine
        crossed = bytearray(size)
        group.alltoall(bytes([10 * rank + r for r in range(size)]), crossed).wait()
        assert list(crossed) == [10 * r + rank for r in range(size)]
        sizes = [r + rank for r in range(size)]
        uneven = bytearray(sum(sizes))
        group.alltoallv(bytes([rank]) * sum(sizes), sizes, uneven, sizes).wait()
        assert uneven == b"".join(bytes([r]) * (r + rank) for r in range(size)), uneven
        parts = bytearray(sum(range(size)))
        group.gatherv(bytes([rank]) * rank, parts, range(size)).wait()
        assert rank or parts == b"".join(bytes([r]) * r for r in range(size))
        back = bytearray(rank)
        group.scatterv(parts, back, range(size)).wait()
        assert back == bytes([rank]) * rank
        operation, differs = group.compare([b"same", b"odd" if rank == size - 1 else b"one"])
        operation.wait()
        assert size == 2 or [differs[r, 1] for r in range(size)] == [False] * (size - 1) + [True]
        group.barrier().wait()
        half = group.split(rank % 2)
        one = floats(1)
        half.allreduce(one).wait()
        assert one[0] == half.size == len(range(rank % 2, size, 2))
        half.close()


def many_pending(rank, size, port):
    with meet(rank, size, port) as group:
        buffers = [array.array("q", [rank, i]) for i in range(50)]
        operations = [group.allreduce(buffer) for buffer in buffers]
        del buffers
        for i, operation in enumerate(operations):
            kept = operation._buffers  # none: it has ended
            operation.wait()
            for buffer in kept:
                found = struct.unpack("qq", _native.ffi.buffer(buffer._keep))
                assert found == (size * (size - 1) // 2, size * i)
        for _ in range(20):
            group.allreduce(bytearray(100))  # nobody waits, nothing refers to it


def mistakes(rank, size, port):
    with meet(rank, size, port) as group:
        wrong = [
            (ValueError, lambda: group.allreduce(floats(1), op="median")),
            (ValueError, lambda: group.allreduce(floats(1), floats(1, 2))),
            (ValueError, lambda: group.allreduce(memoryview(bytearray(8)).cast("H"))),
            (ValueError, lambda: group.allgather(bytes(3), bytearray(7))),
            (BufferError, lambda: group.allreduce(bytes(8))),
            (TypeError, lambda: group.barrier(speed="high")),
            (longhaul.LonghaulError, lambda: group.broadcast(bytearray(1), root=size)),
        ]
        for kind, call in wrong:
            try:
                call()
            except kind as error:
                assert str(error), kind
            else:
                raise AssertionError(f"no {kind.__name__}")
        group.barrier().wait()  # none of them started an operation
        other = group.split(0)
        if rank == 0:  # the others never call this one
            late = other.barrier(deadline=0.05)
            try:
                late.wait(30)
                raise AssertionError("a barrier of one rank succeeded")
            except longhaul.TimedOut:
                pass
        group.barrier().wait()
        other.close()


def dies(rank, size, port):
    group = meet(rank, size, port, peer_timeout=3.0)
    if rank == size - 1:
        group.barrier().wait()
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        group.barrier().wait()  # it may end at the others after the dead rank has gone, or fail
        group.allreduce(bytearray(1 << 20)).wait(20)
        raise AssertionError("a dead rank took part")
    except longhaul.RankFailed as error:
        assert error.rank == size - 1 and str(error), error
    smaller = group.shrink()
    one = floats(1)
    smaller.allreduce(one).wait(20)
    assert one[0] == size - 1
    smaller.close()
    group.close()


class Board:
    """An exchange by files: rank r's bytes of a round are in its file."""

    def __init__(self, folder, rank, size):
        self.folder, self.rank, self.size, self.round = folder, rank, size, 0
        os.makedirs(folder, exist_ok=True)

    def __call__(self, mine):
        self.round += 1
        self._write(f"{self.round}.{self.rank}", mine)
        return [self._read(f"{self.round}.{rank}") for rank in range(self.size)]

    def _write(self, name, data):
        with open(os.path.join(self.folder, name + ".part"), "wb") as file:
            file.write(data)
        os.rename(file.name, os.path.join(self.folder, name))

    def _read(self, name):
        end = time.monotonic() + 30
        while not os.path.exists(os.path.join(self.folder, name)):
            assert time.monotonic() < end, f"{name}: missing"
            time.sleep(0.005)
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()


GROWS = {"device": DEVICE, "peer_timeout": 3.0, "timeout": 20.0, "key": bytes(range(32))}


def sum_is_right(group, deadline=20):
    one = floats(1)
    group.allreduce(one).wait(deadline)
    assert one[0] == group.size, one


def grows(rank, size, port, folder):
    """Ranks 0 to 2 are a group; 2 dies; 0 and 1 grow with 3, which is a newcomer, in another order."""
    first, second, third = (os.path.join(folder, name) for name in "abc")
    if rank == 3:
        made = longhaul.Group(0, 3, Board(second, 0, 3), **GROWS)
        sum_is_right(made)
        made.barrier().wait(20)
        made.close()
        return
    old = longhaul.Group(rank, 3, Board(first, rank, 3), **GROWS)
    old.barrier().wait(20)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    try:  # what raises, and what is wrong, changes nothing
        old.grow(rank, 2, lambda mine: 1 // 0, **GROWS)
        raise AssertionError("an exchange that raises made a group")
    except ZeroDivisionError:
        pass
    bounded = {"reliability": "bounded:deadline=20ms"}
    for wrong, named in (({"key": None}, "it is encrypted"), ({"attr": bounded}, "reliability")):
        try:
            old.grow(rank, 2, Board(third, rank, 2), **{**GROWS, **wrong})
            raise AssertionError("a group grew with other attributes")
        except longhaul.LonghaulError as error:
            assert error.name == "LH_EINVAL" and named in str(error), error
    grown = old.grow(rank + 1, 3, Board(second, rank + 1, 3), **GROWS)
    assert (grown.rank, grown.size, grown.encryption) == (rank + 1, 3, "full")
    sum_is_right(grown)
    assert isinstance(old.error(2), longhaul.RankFailed), old.error(2)
    assert old.error(1 - rank) is None
    old.close()  # the connections belong to both
    grown.barrier().wait(20)
    grown.close()


def waits_without_the_gil(rank, size, port):
    with meet(rank, size, port) as group:
        data, beside = bytearray([rank]), group.split(0)
        if rank == 1:  # starts its part only when the thread that does not wait, at rank 0, has called
            beside.barrier().wait(30)
        operation = group.allreduce(data)
        waiters = [threading.Thread(target=operation.wait) for _ in range(3)]
        for waiter in waiters:
            waiter.start()
        if rank == 0:
            beside.barrier().wait(30)
        for waiter in waiters:
            waiter.join(30)
            assert not waiter.is_alive() and data[0] == 1
        beside.close()


def closes_while_threads_wait(rank, size, port):
    sys.setswitchinterval(1e-6)
    with meet(rank, size, port) as group:
        for _ in range(5):
            part, ends = group.split(0), []
            group.barrier().wait(30)

            def waits(operation, ends=ends):
                try:
                    ends.append(operation.wait(30))
                except BaseException as error:
                    ends.append(error)

            if rank == 0:  # the others never call them
                operations = [part.barrier() for _ in range(5)]
                threads = [threading.Thread(target=waits, args=(each,)) for each in operations * 4]
                for thread in threads:
                    thread.start()
                part.close()
                for thread in threads:
                    thread.join(30)
                assert {getattr(end, "name", end) for end in ends} == {"LH_ECANCELED"}, ends
                assert len(ends) == 20 and all(each._handle is None for each in operations)
                try:
                    part.barrier()
                    raise AssertionError("a closed group took a call")
                except ValueError as error:
                    assert str(error) == "group: closed", error
            group.barrier().wait(30)
            part.close()


def awaits(rank, size, port):
    async def loop(group, queue):
        queue.attach()
        values = [floats(rank, i) for i in range(10)]
        operations = [group.allreduce(value, queue=queue) for value in values]
        results = await asyncio.gather(*(_awaited(each) for each in operations))
        assert [list(value) for value in values] == [[1, 2 * i] for i in range(10)]
        assert all(result.seconds > 0 for result in results)

    with longhaul.Engine(device=DEVICE) as engine:
        with meet(rank, size, port, engine=engine) as group, longhaul.CompletionQueue(engine) as queue:
            asyncio.run(loop(group, queue))


async def _awaited(operation):
    return await operation


def bounded(rank, size, port):
    attr = {"reliability": "bounded:deadline=20ms", "link": f"loss=0.05,seed={rank + 1}"}
    with meet(rank, size, port, attr=attr) as group:
        data = bytearray(b"x" * (1 << 20)) if rank == 0 else bytearray(1 << 20)
        missing = 0
        for _ in range(5):
            operation = group.broadcast(data)
            result = operation.wait(30)
            ranges = operation.missing_ranges()
            assert (
                sum(size for _, size in ranges)
                == result.missing_bytes
                == (operation.missing(0) if rank else 0)
            )
            for offset, count in ranges:
                assert not any(data[offset : offset + count])
            missing += result.missing_bytes
        group.barrier(reliable=True).wait()  # the root has sent; until its packets arrived, it must not leave
        return missing


def alive(kind):
    """The number of objects of a type."""
    return sum(isinstance(each, kind) for each in gc.get_objects())


class Groups(unittest.TestCase):
    def test_collectives_of_two(self):
        ranks.run(collectives, 2)

    def test_collectives_of_four(self):
        ranks.run(collectives, 4)

    def test_many_pending_operations_keep_their_buffers(self):
        ranks.run(many_pending, 2)

    def test_mistakes_name_the_remedy(self):
        ranks.run(mistakes, 2)

    def test_a_dead_rank_is_named(self):
        ranks.run(dies, 3, dies=(2,))

    def test_a_group_grows(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks.run(grows, 4, folder, dies=(2,))

    def test_close_while_threads_wait(self):
        ranks.run(closes_while_threads_wait, 2)

    def test_a_waiting_thread_blocks_no_other(self):
        ranks.run(waits_without_the_gil, 2)

    def test_asyncio(self):
        ranks.run(awaits, 2)

    def test_bounded_operations_report_missing_ranges(self):
        missing = ranks.run(bounded, 2)
        self.assertEqual(missing[0], 0)
        self.assertGreater(missing[1], 0)  # 5 MiB at 5 % loss

    def test_operations_without_a_waiter_are_freed(self):
        with longhaul.Group(0, 1, device=DEVICE) as group:
            for _ in range(20000):
                group.barrier()
            self.assertLess(alive(longhaul.group.Operation), 1000)

    def test_a_queue_keeps_nothing_of_operations_without_a_waiter(self):
        async def loop(group, queue):
            queue.attach()
            for i in range(5000):
                group.barrier(queue=queue)
                if i % 50 == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0.1)
            kept = [value for value in vars(queue).values() if isinstance(value, (dict, set, list))]
            self.assertEqual([len(each) for each in kept], [0] * len(kept))
            self.assertLess(len(group._pending), 1000)

        with longhaul.Engine(device=DEVICE) as engine:
            with longhaul.Group(0, 1, engine=engine) as group, longhaul.CompletionQueue(engine) as queue:
                asyncio.run(loop(group, queue))

    def test_an_operation_is_awaited_after_its_entry_was_polled(self):
        async def loop(group, queue):
            queue.attach()
            operations = [group.barrier(queue=queue) for _ in range(100)]
            while not all(operation.done for operation in operations):
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)  # the loop polls the entries
            for operation in operations:
                await asyncio.wait_for(_awaited(operation), 10)
            self.assertEqual(queue._futures, {})

        with longhaul.Engine(device=DEVICE) as engine:
            with longhaul.Group(0, 1, engine=engine) as group, longhaul.CompletionQueue(engine) as queue:
                asyncio.run(loop(group, queue))

    def test_an_exchange_that_fails(self):
        def fails(mine):
            raise KeyError("the store is gone")

        with self.assertRaisesRegex(KeyError, "the store is gone"):
            longhaul.Group(0, 2, fails, device=DEVICE)


def pair():
    ends = [longhaul.Connection.open(device=DEVICE) for _ in range(2)]
    for end, peer in (ends, ends[::-1]):
        end.attach(peer.blob())
    return ends


# ---- keys --------------------------------------------------------------------------------------------------


def own_address(number):
    """Another address of this host: for a side that only knows addresses, of another host. None: the test may
    not add one.
    """
    address = f"10.9.0.{number + 1}"
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], capture_output=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return None
    return address


def wire_to_other(rank, port):
    """A connection of this test between two processes."""
    if rank == 0:
        with Listener(("127.0.0.1", port)) as listener:
            return listener.accept()
    for _ in range(500):
        try:
            return Client(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError("rank 0 does not listen")


def keys_of_groups(rank, size, port):
    """Groups by an exchange, with other keys and without one."""
    wire = wire_to_other(rank, port)

    def exchange(mine):
        wire.send_bytes(mine)
        theirs = wire.recv_bytes()
        return [theirs, mine] if rank else [mine, theirs]

    def make(**settings):
        return longhaul.Group(rank, size, exchange, **{"device": DEVICE, "timeout": 10.0, **settings})

    with make() as group:
        assert group.encryption == "off", group.encryption
    key = b"the same at all ranks"
    with make(key=key) as group:
        assert group.encryption == "full", group.encryption
        data = array.array("i", [rank + 1] * 5000)
        group.allreduce(data).wait()
        assert set(data) == {3}
        with group.split(0) as part:
            assert part.encryption == "full"
    try:
        make(key=key + bytes([rank]))
    except longhaul.LonghaulError as error:
        assert "another key" in str(error), error
    else:
        raise AssertionError("two keys")
    addresses = [own_address(number) for number in range(size)]
    if None in addresses:
        return "no address"
    device = f"udp:{addresses[rank]}"
    for insecure in (False, rank == 0, rank == 1):  # at both ranks, whichever refuses
        began = time.monotonic()
        try:
            make(device=device, insecure=insecure, timeout=40.0)
        except longhaul.LonghaulError as error:
            assert "other hosts are refused" in str(error), error
        else:
            raise AssertionError("a rank on another host, without a key")
        assert time.monotonic() - began < 30
    with make(device=device, key=key) as group:
        assert group.encryption == "full"
        group.barrier().wait()
    with make(device=device, insecure=True) as group:
        assert group.encryption == "off"
        group.barrier().wait()
    return "all"


def keys_of_a_rendezvous(rank, size, port):
    address = f"127.0.0.1:{port}"
    os.environ.pop("LONGHAUL_KEY_FILE", None)
    with longhaul.Group.rendezvous(address, rank, size) as group:
        assert group.encryption == "off", group.encryption
    for secret in ("a text of sixteen or more", None):
        key = None if secret else b"sixteen random bytes"
        with longhaul.Group.rendezvous(address, rank, size, secret, key=key) as group:
            assert group.encryption == "full", group.encryption
    secret = "a text of sixteen or more"
    with longhaul.Group.rendezvous(address, rank, size, secret, encryption="auth") as group:
        assert group.encryption == "auth", group.encryption
    with longhaul.Group.rendezvous(address, rank, size, secret, insecure=True) as group:
        assert group.encryption == "off", group.encryption


class Keys(unittest.TestCase):
    def test_groups(self):
        print(ranks.run(keys_of_groups, 2), file=sys.stderr)

    def test_a_rendezvous(self):
        ranks.run(keys_of_a_rendezvous, 2)

    def test_connections_over_tcp(self):
        key = b"sixteen or more bytes"
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "key")
            self.assertEqual(longhaul._native.lib.lh_key_create(file.encode()), 0)
            for chosen in ({"key": key}, {"key": file}, {"key": file, "encryption": "auth"}):
                with longhaul.listen("127.0.0.1:0", **chosen) as listener:
                    where = f"127.0.0.1:{listener.port}"
                    refused = threading.Thread(target=self.refuses, args=(listener,))
                    refused.start()
                    for other in ({}, {"key": key + b"."}, {"insecure": True}):
                        with self.assertRaises(longhaul.LonghaulError):
                            longhaul.connect(where, timeout=5, **other)
                    accepted = []
                    refused.join()
                    waiter = threading.Thread(target=lambda: accepted.append(listener.accept(30)))
                    waiter.start()
                    with longhaul.connect(where, **chosen) as client:
                        waiter.join()
                        got, into = client.send(b"hello"), bytearray(5)
                        accepted[0].recv(into).wait(30)
                        got.wait(30)
                        self.assertEqual(into, b"hello")
                        accepted[0].close()

    def refuses(self, listener):
        with self.assertRaises(longhaul.TimedOut):
            listener.accept(2)

    def test_connections_by_blobs(self):
        key = b"sixteen or more bytes"
        one, two, other, none = (
            longhaul.Connection.open(device=DEVICE, key=each) for each in (key, key, key + b".", None)
        )
        with one, two, other, none:
            for wrong in (other, none):
                with self.assertRaisesRegex(longhaul.LonghaulError, "key"):
                    one.attach(wrong.blob())
            one.attach(two.blob())
            two.attach(one.blob())
            sent, into = one.send(b"hello"), bytearray(5)
            two.recv(into).wait(30)
            sent.wait(30)
            self.assertEqual(into, b"hello")

    def test_what_is_asked_for(self):
        def asked(**given):
            made = security(given.pop("key", None), [], **given)
            return name_of_encryption(made.encryption), bool(made.loopback_only)

        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("LONGHAUL_KEY_FILE", None)
            self.assertEqual(asked(), ("off", True))
            self.assertEqual(asked(insecure=True), ("off", False))
            self.assertEqual(asked(key="file"), ("full", False))
            self.assertEqual(asked(key="file", encryption="auth"), ("auth", False))
            self.assertEqual(asked(key="file", encryption="off"), ("off", True))
            self.assertEqual(asked(launched=True), ("full", True))
            for wrong in (
                {"key": "file", "insecure": True},
                {"key": "file", "code": "code"},
                {"encryption": "full"},
                {"encryption": "some"},
                {"key": b"short"},
            ):
                with self.assertRaises(ValueError):
                    asked(**wrong)
            os.environ["LONGHAUL_KEY_FILE"] = "file"
            self.assertEqual(asked(), ("full", False))


class Connections(unittest.TestCase):
    """In the process of the caller, which ends them before it forks."""

    def setUp(self):
        self.listener = longhaul.listen("127.0.0.1:0", match_tags=True)
        accepted = []
        waiter = threading.Thread(target=lambda: accepted.append(self.listener.accept(30)))
        waiter.start()
        self.client = longhaul.connect(f"127.0.0.1:{self.listener.port}", match_tags=True)
        waiter.join()
        (self.server,) = accepted

    def tearDown(self):
        for each in (self.client, self.server, self.listener):
            each.close()

    def test_messages_and_tags(self):
        into = [bytearray(8), bytearray(1 << 20)]
        receives = [self.server.recv(into[0], tag=7), self.server.recv(into[1], tag=9)]
        sends = [self.client.send(bytes(1 << 20), tag=9), self.client.send([b"he", b"llo"], tag=7)]
        for request in (*sends, *receives):
            request.wait(30)
        self.assertEqual((receives[0].wait().bytes, receives[0].wait().tag, into[0]), (5, 7, b"hello\0\0\0"))
        self.assertGreater(self.client.stats()["tx_packets"], 0)
        self.assertIn("127.0.0.1", self.client.peer)

    def test_a_message_that_is_too_long(self):
        receive, send = self.server.recv(bytearray(4)), self.client.send(b"longer")
        for request in (receive, send):
            with self.assertRaisesRegex(longhaul.LonghaulError, "longer than the receive buffer"):
                request.wait(30)

    def test_a_receive_that_is_canceled(self):
        receive = self.server.recv(bytearray(4))
        self.assertIsNone(receive.test())
        with self.assertRaises(longhaul.TimedOut):
            receive.wait(0.001)
        receive.cancel()
        with self.assertRaises(longhaul.Canceled):
            receive.wait(30)

    def test_one_sided(self):
        memory, into = bytearray(16), bytearray(4)
        region = self.server.expose(memory)
        self.client.write(region.key, b"abcd", offset=4).wait(30)
        self.client.read(region.key, into, offset=5).wait(30)
        self.assertEqual((bytes(memory[4:8]), bytes(into)), (b"abcd", b"bcd\0"))
        region.revoke()
        with self.assertRaisesRegex(longhaul.LonghaulError, "memory key"):
            self.client.write(region.key, b"late").wait(30)

    def test_a_dropped_region_keeps_its_memory(self):
        def exposed():
            return self.server.expose(bytearray(1 << 16)).key

        key, memory = exposed(), bytearray(16)
        self.server.expose(memory)
        gc.collect()
        others = [bytearray(1 << 16) for _ in range(64)]
        self.client.write(key, b"\xff" * (1 << 16)).wait(30)
        self.assertFalse(any(any(other) for other in others))
        with self.assertRaises(BufferError):
            memory.extend(bytes(1 << 20))
        self.server.close()
        memory.extend(bytes(1 << 20))

    def test_a_dropped_connection_closes(self):
        client, server = pair()
        receive = client.recv(bytearray(4))
        server.recv(bytearray(4))
        server.expose(bytearray(4))
        del server
        gc.collect()
        with self.assertRaises(longhaul.LonghaulError):
            receive.wait(30)
        client.close()

    def test_close_while_threads_wait(self):
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        self.addCleanup(sys.setswitchinterval, interval)
        for _ in range(10):
            (client, server), ends = pair(), []

            def waits(request, ends=ends):
                try:
                    ends.append(request.wait(30))
                except BaseException as error:
                    ends.append(error)

            requests = [server.recv(bytearray(4)) for _ in range(10)]
            threads = [threading.Thread(target=waits, args=(request,)) for request in requests * 2]
            threads += [threading.Thread(target=server.close) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            client.close()
            self.assertEqual({getattr(end, "name", end) for end in ends}, {"LH_ECLOSED"})
            self.assertEqual(len(ends), 20)
            self.assertTrue(all(request._handle is None for request in requests))

    def test_requests_without_a_waiter_are_freed(self):
        before = alive(longhaul.Request)
        for i in range(20000):
            receive = self.server.recv(bytearray(8))
            self.client.send(b"x")
            if i % 500 == 0:
                receive.wait(30)
        self.assertLess(alive(longhaul.Request) - before, 4000)
        receive.wait(30)
        end = time.monotonic() + 30
        while len(self.client._pending) + len(self.server._pending) > 10 and time.monotonic() < end:
            for connection in (self.client, self.server):
                connection._sweep()
        self.assertLessEqual(len(self.client._pending) + len(self.server._pending), 10)

    def test_a_closed_connection(self):
        pending = self.server.recv(bytearray(4))
        self.server.close()
        with self.assertRaises(longhaul.LonghaulError):
            pending.wait(30)
        with self.assertRaisesRegex(ValueError, "connection: closed"):
            self.server.send(b"late")


class Planning(unittest.TestCase):
    def test_a_plan(self):
        made = longhaul.plan(size="128MiB", bandwidth="400Gbit", rtt="25ms", loss=1e-2)
        self.assertLess(made["times_ideal"], 1.1)
        predicted = longhaul.predict(
            made["scheme"],
            size="128MiB",
            bandwidth="400Gbit",
            rtt="25ms",
            loss=1e-2,
            chunk=made["chunk_bytes"],
        )
        self.assertGreater(predicted["mean_s"], predicted["ideal_s"])
        with self.assertRaisesRegex(longhaul.LonghaulError, "12x"):
            longhaul.plan(size="12x", bandwidth="400Gbit", rtt="25ms", loss=0)

    def test_samples_repeat(self):
        path = {"size": "1MiB", "bandwidth": "10Gbit", "rtt": "25ms", "loss": 1e-2}
        self.assertEqual(
            longhaul.sample("sr-nack", 50, **path), longhaul.sample("sr-nack", 50, threads=2, **path)
        )

    def test_the_transform_spreads_a_loss(self):
        tensor = floats(*([1.0] * 65536))
        transform = longhaul.Hadamard(block=1024, seed=3)
        transform.encode(tensor)
        transform.decode(tensor, missing=[(4096, 4096)])
        self.assertLess(max(abs(1 - x) for x in tensor), 0.9)

    def test_the_simulator(self):
        rows = longhaul.sim.run(
            "incast", workload={"senders": 4}, sweep={"switch.pfc": [False, True]}, seeds=2
        )
        self.assertEqual(
            [(row["switch.pfc"], row["seed"]) for row in rows], [("off", 1), ("off", 2), ("on", 1), ("on", 2)]
        )
        self.assertEqual(
            len(longhaul.sim.run("incast", workload={"senders": 4}, sweep=False, table="flows")), 4
        )
        self.assertIn("incast", longhaul.sim.scenarios())
        with self.assertRaisesRegex(RuntimeError, "senders"):
            longhaul.sim.run("incast", workload={"senders": "many"}, sweep=False)

    def test_the_command(self):
        done = subprocess.run(
            [longhaul.command.path(), "--version"], capture_output=True, text=True, check=True
        )
        self.assertIn(longhaul.__version__, done.stdout)

    def test_the_plugin_of_nccl(self):
        """NCCL finds a table in it; the library beside it is the package's."""
        plugin = ctypes.CDLL(longhaul.nccl_plugin_path())
        name = ctypes.c_char_p.in_dll(plugin, "ncclNetPlugin_v12")
        self.assertEqual(name.value, b"Longhaul")

    def test_doctests(self):
        for module in (longhaul.group, longhaul.planning, longhaul.sim):
            failed, tried = doctest.testmod(module)
            self.assertEqual((failed, tried > 0), (0, True), module.__name__)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
