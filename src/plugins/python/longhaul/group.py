"""Groups of ranks and their collectives: `Group`, `Operation`, `Result`.

    import longhaul, numpy
    with longhaul.Group.from_env() as group:          # longhaul run, torchrun, mpirun, srun
        gradient = numpy.ones(1 << 20, numpy.float32)
        group.allreduce(gradient, op="avg").wait()    # in place

All ranks call the same collectives in the same order. Each call starts an operation and returns at once.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from longhaul._native import (
    REDUCTIONS,
    Buffer,
    LonghaulError,
    check,
    count_of,
    failure,
    ffi,
    last_error,
    lib,
    set_fields,
    text,
    type_number,
)
from longhaul._pending import Handle, Pending, _kept, ranges_of
from longhaul._security import Key, key_of_environment, name_of_encryption, new_key, security

if TYPE_CHECKING:
    from longhaul.connection import CompletionQueue, Engine

Exchange = Callable[[bytes], Sequence[bytes]]
_environment = threading.Lock()
_CLOSE_S = 60.0  # of each wait of close()


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a collective that succeeded.

    seconds: from the call to the end. bytes_sent, bytes_received: payload, without retransmissions.
    missing_bytes: with the reliability `bounded`, bytes that did not arrive by the deadline. schedule: the
    one that was run, "ring". block_bytes: of the longest block.
    """

    seconds: float
    bytes_sent: int
    bytes_received: int
    missing_bytes: int
    schedule: str
    block_bytes: int


class Operation(Pending[Result]):
    """A collective in progress. It keeps its buffers, and the group keeps it, until it is done."""

    _WAIT, _TEST, _CANCEL = "lh_collective_wait", "lh_collective_test", "lh_collective_cancel"
    _FREE, _RESULT = "lh_collective_free", "struct lh_collective_result *"
    _NAME, _REMEDY = "collective", "set deadline="
    _NEEDS_OWNER = True
    _owner: Group
    _missing: Sequence[int] = ()

    def missing(self, rank: int) -> int:
        """Bytes from a rank that did not arrive by the deadline (reliability `bounded`); 0 while it is
        pending.
        """
        if not 0 <= rank < self._owner.size:
            raise ValueError(f"rank {rank}: out of range (0 to {self._owner.size - 1})")
        return self._missing[rank] if self._missing else 0

    def _result(self, found: Any) -> Result | LonghaulError:
        if found.error:
            rank = found.failed_rank if found.failed_rank != lib.LH_NO_RANK else None
            return failure(found.error, text(found.message), rank)
        if found.missing_bytes:
            self._missing = self._missing_of_ranks()
            self._ranges = ranges_of(lib.lh_collective_ranges, self._handle)
        return Result(
            (found.ended_ns - found.started_ns) / 1e9,
            found.bytes_sent,
            found.bytes_received,
            found.missing_bytes,
            text(found.schedule),
            found.block_bytes,
        )

    def _missing_of_ranks(self) -> list[int]:
        counts = ffi.new("uint64_t[]", self._owner.size)
        for rank in range(self._owner.size):
            check(lib.lh_collective_missing(self._handle, rank, counts + rank))
        return list(counts)


class Group(Handle):
    """Ranks 0 to size - 1, each connected to all others.

    Buffers are contiguous memory of the buffer protocol or of DLPack; `type` names their elements where they
    do not do so themselves: "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "i8", "i16". `op` is "sum",
    "prod", "min", "max", "avg", or of the bits of integers "band", "bor" or "bxor".

    Every collective takes: schedule (a name of lh_collective_schedule(3); default: chosen), block_bytes,
    deadline (s; TimedOut ends the operation then), reliable (every byte arrives, even with the reliability
    `bounded`), queue (a CompletionQueue of the group's engine). It returns an Operation. A wrong argument
    raises at once: ValueError, TypeError, BufferError, LonghaulError.
    """

    _NAME = "group"
    _KEPT = True

    def __init__(
        self,
        rank: int,
        size: int,
        exchange: Exchange | None = None,
        *,
        engine: Engine | None = None,
        thread: bool = True,
        attr: dict[str, Any] | None = None,
        attr_across: dict[str, Any] | None = None,
        key: Key = None,
        insecure: bool = False,
        **settings: Any,
    ) -> None:
        """Creates a group; all ranks call it, and it returns when all are connected.

        exchange: gathers bytes of each rank in the order of ranks; called three times with at most 3 KiB;
        needed for more than one rank. thread: a thread of the library makes progress, even while no call
        waits. attr, attr_across: settings of connections, and of those to other sites (struct lh_attr:
        reliability="ec:mds", rate_bps=...). settings: fields of struct lh_group_attr: site="paris",
        device="udp:10.0.0.1", timeout=30.0 (s).

        key: with it all packets are encrypted: a key file, or bytes that all ranks have, of at least 16
        random ones; None: the file of LONGHAUL_KEY_FILE, if any. Without a key ranks on other hosts are
        refused, unless all say insecure=True: clear text.

        >>> with Group(0, 1, device="udp:127.0.0.1") as group:
        ...     data = bytearray(b"abc")
        ...     result = group.allreduce(data).wait()
        >>> bytes(data)
        b'abc'
        """
        keep: list[Any] = []
        secured = security(key, keep, insecure=insecure)
        created = self._attributes(settings, engine, thread, attr, attr_across, keep, secured)
        created.rank, created.size = rank, size
        self._adopt(_exchanging(lib.lh_group_create, created, exchange), engine)

    @classmethod
    def from_env(
        cls,
        *,
        engine: Engine | None = None,
        thread: bool = True,
        attr: dict[str, Any] | None = None,
        attr_across: dict[str, Any] | None = None,
        key: Key = None,
        encryption: str | None = None,
        insecure: bool = False,
        **settings: Any,
    ) -> Group:
        """Creates a group of all processes that a launcher has started: longhaul run, torchrun, mpirun, srun,
        flux run.

        Ranks meet at rank 0 over TCP; lh_group_create_env(3) lists the variables, with LONGHAUL_SECRET and
        LONGHAUL_SITE. Parameters as of Group(); key=None: LONGHAUL_SECRET, else LONGHAUL_KEY_FILE.
        encryption: "auth" where the network encrypts: of the rendezvous alone; "off".
        """
        keep: list[Any] = []
        secured = security(key, keep, encryption=encryption, insecure=insecure, launched=True)
        created = cls._attributes(settings, engine, thread, attr, attr_across, keep, secured)
        handle = ffi.new("struct lh_group **")
        check(lib.lh_group_create_env(created, handle))
        return cls._of(handle[0], engine)

    @classmethod
    def rendezvous(
        cls, address: str, rank: int, size: int, secret: str | None = None, **settings: Any
    ) -> Group:
        """Creates a group whose ranks meet at "HOST:PORT" of rank 0 over TCP. secret: the same text at all
        ranks.

        Sets the variables of a launcher (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, LONGHAUL_SECRET) during
        the call.
        """
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdigit():
            raise ValueError(f"address {address!r}: invalid (example: 10.0.0.1:47912)")
        values = {
            "RANK": str(rank),
            "WORLD_SIZE": str(size),
            "MASTER_ADDR": host.strip("[]"),
            "MASTER_PORT": port,
        }
        if secret is not None:
            values["LONGHAUL_SECRET"] = secret
        with _environment:
            before = {name: os.environ.get(name) for name in values}
            os.environ.update(values)
            try:
                return cls.from_env(**settings)
            finally:
                for name, value in before.items():
                    os.environ.pop(name, None)
                    if value is not None:
                        os.environ[name] = value

    @staticmethod
    def _attributes(
        settings: dict[str, Any],
        engine: Engine | None,
        thread: bool,
        attr: dict[str, Any] | None,
        attr_across: dict[str, Any] | None,
        keep: list[Any],
        secured: Any,
    ) -> Any:
        created = ffi.new("struct lh_group_attr *")
        lib.lh_group_attr_init(created)
        set_fields(created, settings, keep)
        created.thread = thread
        if engine is not None:
            created.engine = engine._handle
        for name, given in (("attr", attr or {}), ("attr_across", attr_across)):
            if given is not None:
                inside = ffi.new("struct lh_attr *")
                lib.lh_attr_init(inside)
                set_fields(inside, given, keep)
                keep.append(inside)
                setattr(created, name, inside)
        created.attr.security = secured
        return created

    @classmethod
    def _of(cls, handle: Any, engine: Engine | None) -> Group:
        made = cls.__new__(cls)
        made._adopt(handle, engine)
        return made

    def _adopt(self, handle: Any, engine: Engine | None) -> None:
        Handle.__init__(self, handle)
        self._engine = engine
        self.rank: int = lib.lh_group_rank(handle)
        self.size: int = lib.lh_group_size(handle)

    def close(self) -> None:
        """Cancels pending operations, waits until the peers have all data or have failed, and frees the
        group.
        """
        with self._idle:
            handle, self._handle = self._handle, None  # no further calls
        if handle is None:
            return
        try:
            for operation in list(self._pending):
                operation.cancel()
            for operation in list(self._pending):
                try:
                    operation.wait(_CLOSE_S)
                except LonghaulError:
                    pass  # it was canceled
            with self._idle:
                if not self._idle.wait_for(lambda: self._users == 0, _CLOSE_S):
                    busy = f"group: {self._users} calls are in progress (wait for them)"
                    raise failure(lib.LH_ESTATE, busy)
            check(lib.lh_group_destroy(handle))
        except BaseException:
            self._handle = handle
            raise
        _kept.discard(self)

    def _end(self) -> None:
        """Leaves collectives in progress, as the program did: the peers learn that it is gone."""
        if all(operation.done for operation in list(self._pending)):
            self.close()

    @property
    def encryption(self) -> str:
        """What is encrypted, at all ranks: "full", "auth" (the rendezvous of from_env()) or "off"."""
        return name_of_encryption(self._call(lib.lh_group_encryption))

    @property
    def sites(self) -> list[str]:
        """The name of each rank's site, "" without one."""
        def name(group: Any, rank: int) -> str:
            return text(lib.lh_group_site(group, rank))

        return [self._call(name, rank) for rank in range(self.size)]

    def error(self, rank: int) -> LonghaulError | None:
        """The error of a failed rank; None: it has not failed."""
        code = self._call(lib.lh_group_error, rank)
        if code == -lib.LH_EINVAL:
            raise last_error(code)
        return None if code == 0 else failure(code, f"rank {rank}: {text(lib.lh_strerror(code))}", rank)

    def split(self, color: int | None, key: int = 0) -> Group | None:
        """Makes a group of the ranks with the same color, ordered by key, then rank; None: this rank joins
        none.
        """
        handle = ffi.new("struct lh_group **")
        chosen = lib.LH_GROUP_NO_COLOR if color is None else color
        check(self._call(lib.lh_group_split, chosen, key, handle))
        return None if handle[0] == ffi.NULL else self._of(handle[0], self._engine)

    def shrink(self) -> Group:
        """Makes a group of the ranks that have not failed; all of these call it."""
        handle = ffi.new("struct lh_group **")
        check(self._call(lib.lh_group_shrink, handle))
        return self._of(handle[0], self._engine)

    def grow(
        self,
        rank: int,
        size: int,
        exchange: Exchange | None = None,
        *,
        thread: bool = True,
        attr: dict[str, Any] | None = None,
        attr_across: dict[str, Any] | None = None,
        key: Key = None,
        insecure: bool = False,
        **settings: Any,
    ) -> Group:
        """Makes a group of members of this one and of newcomers; all ranks of the new group call it, each
        with its new rank. Newcomers call Group() with the same parameters.

        Connections between members are kept; only pairs with a newcomer connect. Operations of this group go
        on; members that do not take part count as failed afterwards.

        Parameters as of Group(): exchange is that of all ranks of the new group; attr and attr_across are for
        connections to newcomers; key is the same one as before or another, None as there. A member keeps
        engine, device, block_bytes, peer_timeout and, unless it gives another, site.

        After an error this group is as before, and may grow again; the other ranks have an error, too, or
        have one from each call on the new group. RankFailed: a rank has failed for another. TimedOut: a rank
        is missing. LonghaulError of LH_EINVAL: attr or key differ from this group in encryption or in whether
        reliability is bounded; of LH_EHANDSHAKE: ranks come from different groups, or the exchange gave them
        different bytes; of LH_ESTATE: no workers, the group is a part of another, or it grows already. What
        exchange raises is raised.

        >>> with Group(0, 1, device="udp:127.0.0.1") as group, group.grow(0, 1) as grown:
        ...     grown.size
        1
        """
        keep: list[Any] = []
        secured = security(key, keep, insecure=insecure)
        created = self._attributes(settings, None, thread, attr, attr_across, keep, secured)
        created.rank, created.size = rank, size
        return self._of(
            _exchanging(functools.partial(self._call, lib.lh_group_grow), created, exchange), self._engine
        )

    def measure(self) -> None:
        """Measures the paths between all ranks; later schedules follow them. All ranks call it."""
        check(self._call(lib.lh_group_measure))

    def path(self, source: int, destination: int) -> tuple[float, int, float]:
        """(round trip in s, bit/s, loss 0 to 1) of a measured path."""
        found = ffi.new("struct lh_group_path *")
        check(self._call(lib.lh_group_path, source, destination, found))
        return found.rtt_ns / 1e9, found.rate_bps, found.loss

    # ---- collectives ---------------------------------------------------------------------------------------

    def allreduce(
        self, data: Any, out: Any = None, *, op: str = "sum", type: str | None = None, **options: Any
    ) -> Operation:
        """Reduces all ranks' data[n] into every rank's out[n]; without `out` in place."""
        into, given = self._in_and_out(data, out)
        number = type_number(type, given, into)
        count = self._same(count_of(given, number), count_of(into, number), "out")
        return self._start(
            lib.lh_allreduce,
            (given.address, into.address, count, number, _reduction(op)),
            (given, into),
            options,
        )

    def reduce(
        self,
        data: Any,
        out: Any = None,
        *,
        root: int = 0,
        op: str = "sum",
        type: str | None = None,
        **options: Any,
    ) -> Operation:
        """Reduces all ranks' data[n] into the root's out[n]; without `out` in place. Other ranks need no
        `out`.
        """
        into = None
        if self.rank == root:
            into, given = self._in_and_out(data, out)
        else:
            given = Buffer(data, False)
        number = type_number(type, given)
        count = count_of(given, number)
        if into is not None:
            self._same(count, count_of(into, number), "out")
        return self._start(
            lib.lh_reduce,
            (given.address, _address(into), count, number, _reduction(op), root),
            (given, into),
            options,
        )

    def reduce_scatter(
        self, data: Any, out: Any, *, op: str = "sum", type: str | None = None, **options: Any
    ) -> Operation:
        """Reduces all ranks' data[size * n]; rank r's out[n] gets elements r * n to r * n + n - 1."""
        given, into = Buffer(data, False), Buffer(out, True)
        number = type_number(type, given, into)
        count = count_of(into, number)
        self._same(count * self.size, count_of(given, number), "data")
        return self._start(
            lib.lh_reduce_scatter,
            (given.address, into.address, count, number, _reduction(op)),
            (given, into),
            options,
        )

    def broadcast(self, data: Any, *, root: int = 0, **options: Any) -> Operation:
        """Copies the root's data to all ranks' data, bytes of the same number."""
        buffer = Buffer(data, self.rank != root)
        return self._start(
            lib.lh_broadcast, (buffer.address, buffer.bytes, lib.LH_U8, root), (buffer,), options
        )

    def allgather(self, data: Any, out: Any, **options: Any) -> Operation:
        """Gathers all ranks' data, n bytes, into every rank's out, size * n bytes. data may be its place in
        out.
        """
        given, into = Buffer(data, False), Buffer(out, True)
        self._same(given.bytes * self.size, into.bytes, "out")
        return self._start(
            lib.lh_allgather, (given.address, into.address, given.bytes, lib.LH_U8), (given, into), options
        )

    def gather(self, data: Any, out: Any = None, *, root: int = 0, **options: Any) -> Operation:
        """Gathers all ranks' data, n bytes, into the root's out, size * n bytes. Other ranks need no `out`.
        """
        given, into = Buffer(data, False), None if self.rank != root else Buffer(_needed(out, "out"), True)
        if into is not None:
            self._same(given.bytes * self.size, into.bytes, "out")
        return self._start(
            lib.lh_gather,
            (given.address, _address(into), given.bytes, lib.LH_U8, root),
            (given, into),
            options,
        )

    def scatter(self, data: Any, out: Any, *, root: int = 0, **options: Any) -> Operation:
        """Scatters the root's data, size * n bytes: rank r's out gets n bytes from r * n on. Other ranks:
        data=None.
        """
        given, into = Buffer(_needed(data, "data"), False) if self.rank == root else None, Buffer(out, True)
        if given is not None:
            self._same(into.bytes * self.size, given.bytes, "data")
        return self._start(
            lib.lh_scatter,
            (_address(given), into.address, into.bytes, lib.LH_U8, root),
            (given, into),
            options,
        )

    def alltoall(self, data: Any, out: Any, **options: Any) -> Operation:
        """Exchanges parts of n bytes: rank r's out gets, at s * n, the bytes from r * n on of rank s's data.
        """
        given, into = Buffer(data, False), Buffer(out, True)
        self._same(given.bytes, into.bytes, "out")
        if given.bytes % self.size:
            raise ValueError(
                f"data: {given.bytes} bytes are not divisible by {self.size} ranks (use alltoallv)"
            )
        return self._start(
            lib.lh_alltoall,
            (given.address, into.address, given.bytes // self.size, lib.LH_U8),
            (given, into),
            options,
        )

    def gatherv(
        self,
        data: Any,
        out: Any = None,
        counts: Sequence[int] | None = None,
        *,
        root: int = 0,
        **options: Any,
    ) -> Operation:
        """Gathers parts of different sizes. counts: at the root, bytes of each rank's part; out: their sum.
        """
        given, into, sizes = Buffer(data, False), None, ffi.NULL
        if self.rank == root:
            into, sizes = self._parts(_needed(out, "out"), _needed(counts, "counts"), True, "out")
        return self._start(
            lib.lh_gatherv,
            (given.address, given.bytes, _address(into), sizes, lib.LH_U8, root),
            (given, into, sizes),
            options,
        )

    def scatterv(
        self, data: Any, out: Any, counts: Sequence[int] | None = None, *, root: int = 0, **options: Any
    ) -> Operation:
        """Scatters parts of different sizes. counts: at the root, bytes of each rank's part; data: their sum.
        """
        into, given, sizes = Buffer(out, True), None, ffi.NULL
        if self.rank == root:
            given, sizes = self._parts(_needed(data, "data"), _needed(counts, "counts"), False, "data")
        return self._start(
            lib.lh_scatterv,
            (_address(given), sizes, into.address, into.bytes, lib.LH_U8, root),
            (given, into, sizes),
            options,
        )

    def alltoallv(
        self, data: Any, data_counts: Sequence[int], out: Any, out_counts: Sequence[int], **options: Any
    ) -> Operation:
        """Exchanges parts of different sizes, in bytes: data_counts[r] go to rank r, out_counts[r] come from
        it.
        """
        given, sizes = self._parts(data, data_counts, False, "data")
        into, out_sizes = self._parts(out, out_counts, True, "out")
        return self._start(
            lib.lh_alltoallv,
            (given.address, sizes, into.address, out_sizes, lib.LH_U8),
            (given, into, sizes, out_sizes),
            options,
        )

    def compare(self, buffers: Sequence[Any], **options: Any) -> tuple[Operation, memoryview[bool]]:
        """Compares buffers that should be equal on all ranks, such as weights.

        Returns the operation, and its result, a memoryview of booleans of shape (size, len(buffers)), valid
        when it is done: [rank, b] is True if the rank's buffer b differs from the majority's.
        """
        given = [Buffer(each, False) for each in buffers]
        described = ffi.new("struct lh_buffer[]", [(each.address, each.bytes) for each in given])
        differs = bytearray(max(1, self.size * len(given)))
        into = ffi.from_buffer("bool[]", differs, require_writable=True)
        operation = self._start(
            lib.lh_compare, (described, len(given), into), (given, described, into), options
        )
        return operation, memoryview(differs).cast("?")[: self.size * len(given)].cast("B").cast(
            "?", (self.size, len(given))
        )

    def barrier(self, **options: Any) -> Operation:
        """Waits for all ranks: the operation is done when every rank has called it."""
        return self._start(lib.lh_barrier, (), (), options)

    # ---- inside --------------------------------------------------------------------------------------------

    def _in_and_out(self, data: Any, out: Any) -> tuple[Buffer, Buffer]:
        if out is None:
            both = Buffer(data, True)
            return both, both
        return Buffer(out, True), Buffer(data, False)

    def _same(self, expected: int, found: int, name: str) -> int:
        if expected != found:
            raise ValueError(f"{name}: {found} elements, expected {expected}")
        return expected

    def _parts(self, buffer: Any, counts: Sequence[int], writable: bool, name: str) -> tuple[Buffer, Any]:
        taken = Buffer(buffer, writable)
        if len(counts) != self.size or sum(counts) != taken.bytes:
            raise ValueError(
                f"{name}: {taken.bytes} bytes and {len(counts)} parts of {sum(counts)} bytes, expected "
                f"{self.size} parts that fill it"
            )
        return taken, ffi.new("size_t[]", list(counts))

    def _start(
        self, call: Any, arguments: tuple[Any, ...], buffers: tuple[Any, ...], options: dict[str, Any]
    ) -> Operation:
        keep: list[Any] = []
        queue: CompletionQueue | None = options.pop("queue", None)
        passed, user = ffi.NULL, 0
        if options or queue is not None:
            passed = ffi.new("struct lh_collective_options *")
            lib.lh_collective_options_init(passed)
            set_fields(passed, options, keep)
            if queue is not None:
                user = queue.number()
                passed.queue, passed.user = queue._handle, user
        handle = ffi.new("struct lh_collective **")

        def begin(group: Any) -> Operation:  # close() sees the operation
            check(call(group, *arguments, passed, handle))
            operation = Operation(self, handle[0], buffers, queue, user)
            with self._idle:
                self._pending[operation] = None
            return operation

        self._sweep()
        operation: Operation = self._call(begin)
        return operation


def _exchanging(call: Callable[[Any, Any], int], created: Any, exchange: Exchange | None) -> Any:
    """The group that call(attributes, result) makes with the exchange, whose exception it raises."""
    failed: list[BaseException] = []
    size = created.size

    def gather(context: Any, mine: Any, count: int, everyone: Any) -> int:
        try:
            parts = exchange(bytes(ffi.buffer(mine, count)))  # type: ignore[misc]
            if len(parts) != size or any(len(part) != count for part in parts):
                raise ValueError(
                    f"exchange returned {[len(part) for part in parts]} bytes, expected {size} parts of "
                    f"{count} bytes"
                )
            ffi.memmove(everyone, b"".join(parts), size * count)
            return 0
        except BaseException as error:  # the C caller cannot pass it on: it is raised below
            failed.append(error)
            return int(lib.lh_error_set(lib.LH_ECANCELED, str(error).encode()))

    callback = ffi.callback("lh_exchange_fn", gather)
    if exchange is not None:
        created.exchange = callback
    handle = ffi.new("struct lh_group **")
    code = call(created, handle)
    if failed:
        raise failed[0]
    check(code)
    return handle[0]


def _reduction(op: str) -> int:
    if op not in REDUCTIONS:
        raise ValueError(f"op {op!r}: unknown reduction ({', '.join(REDUCTIONS)})")
    return REDUCTIONS[op]


def _address(buffer: Buffer | None) -> Any:
    return ffi.NULL if buffer is None else buffer.address


def _needed(value: Any, name: str) -> Any:
    if value is None:
        raise ValueError(f"{name}: missing (the root needs it)")
    return value


def address_towards(host: str) -> str:
    """This host's address on the path to another."""
    family, _, _, _, where = socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(where)
        return str(probe.getsockname()[0])


def device_of(address: str) -> str:
    """The device at an address of this host."""
    return f"udp:[{address}]" if ":" in address else f"udp:{address}"


def from_mpi4py(comm: Any, **settings: Any) -> Group:
    """Creates a group of the ranks of an mpi4py communicator, which all call it: they meet by its allgather.

    settings: as of Group(). Defaults: site is LONGHAUL_SITE; device is LONGHAUL_DEVICE, else 127.0.0.1 if all
    ranks are on one host, else this host's address on the path to another one. key is LONGHAUL_SECRET,
    LONGHAUL_KEY_FILE, else random bytes of rank 0, by a broadcast of the communicator: what MPI sends itself
    is in clear text.

        from mpi4py import MPI
        group = longhaul.from_mpi4py(MPI.COMM_WORLD)
    """
    if comm.Is_inter():
        raise ValueError("comm: an intercommunicator (merge it first)")
    rank, size = int(comm.Get_rank()), int(comm.Get_size())

    def exchange(mine: bytes) -> list[bytes]:
        return list(comm.allgather(mine))

    hosts = exchange(socket.gethostname().encode())
    settings.setdefault("site", os.environ.get("LONGHAUL_SITE"))
    if settings.get("engine") is None and settings.get("device") is None:
        settings["device"] = os.environ.get("LONGHAUL_DEVICE")
        others = [host.decode() for host in hosts if host != hosts[rank]]
        if not settings["device"]:
            settings["device"] = device_of(address_towards(others[0])) if others else "udp:127.0.0.1"
    shared = comm.bcast(new_key() if rank == 0 else None, 0)  # of all ranks, whatever their settings are
    if settings.get("key") is None and not settings.get("insecure"):
        settings["key"] = key_of_environment() or shared
    return Group(rank, size, exchange, **settings)
