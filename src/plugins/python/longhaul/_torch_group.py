"""The process group of torch.distributed: its state, and each of its operations over a longhaul.Group."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore

from longhaul._native import Canceled, LonghaulError, check, failure, ffi, lib, nanoseconds, sliced, text
from longhaul._pending import ranges_of
from longhaul._security import Key
from longhaul._torch_hierarchical import SiteReducer
from longhaul._torch_messages import Messages
from longhaul._torch_tensors import (
    DIRECT,
    KIND,
    Tensors,
    address_of,
    byte_size,
    bytes_of,
    check_types,
    contiguous,
    copied,
    copy_back,
    counts_of,
    join,
    only_one,
    overlap,
    parts_of,
    planned,
    premultiplied,
    split_bytes,
    split_into,
    strided,
)
from longhaul._torch_works import (
    Exchange,
    Finish,
    Work,
    callers,
    enter,
    finish_work,
    groups,
    leave,
    own_device,
    shared_key,
)
from longhaul.group import Group

_CANCEL_NS = 5_000_000_000  # until an operation that was canceled ends


@dataclasses.dataclass
class Options:
    """Options of a group: `pg_options` of init_process_group() and new_group().

    site: name of this rank's site. attr, attr_across: settings of connections, and of those to other sites,
    as of longhaul.Group. settings: fields of struct lh_group_attr: {"peer_timeout": 5.0, "block_bytes": 1 <<
    20}. key: as of longhaul.Group; None: LONGHAUL_SECRET, LONGHAUL_KEY_FILE, else random bytes that rank 0
    hands over by the store. insecure: all in clear text, with ranks on any host.
    """

    site: str | None = None
    attr: dict[str, Any] | None = None
    attr_across: dict[str, Any] | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    key: Key = dataclasses.field(default=None, repr=False)
    insecure: bool = False


@dataclasses.dataclass
class SiteOptions(Options):
    """Options of a group whose all-reduces take other groups, one a site and one between the sites."""

    reducer: SiteReducer | None = None


# ---- the group ---------------------------------------------------------------------------------------------


_Base: Any = dist.ProcessGroup


class ProcessGroupLonghaul(_Base):
    """A process group over a longhaul.Group. All calls of torch.distributed; errors are LonghaulError."""

    def __init__(
        self, store: Any, rank: int, size: int, timeout: datetime.timedelta, options: Options | None = None
    ) -> None:
        super().__init__(rank, size)
        self._rank, self._size, self._options = rank, size, options or Options()
        # A store keeps the keys of groups that are gone. All ranks create the groups of a store in one order.
        generation = store.add(f"longhaul/generation/{rank}", 1)
        self._store = store = PrefixStore(f"longhaul/{generation}", store)
        self._names = {"name": "", "desc": ""}
        self._process = os.getpid()
        self._start_lock = threading.Lock()
        self._idle = threading.Condition(self._start_lock)
        self._waited: set[Any] = set()  # handles of operations for which a caller waits in the library
        self._kept: list[Any] = []  # memory of interrupted operations that did not end in time
        self._pending: dict[Work, Any] = {}  # handle; None: it is freed, the work has yet to end
        self._mail: Messages | None = None
        self._mail_lock = threading.Lock()
        self._closed: LonghaulError | None = None
        self._canceled = False
        self._gone = threading.Event()
        self._sites = self._options.reducer if isinstance(self._options, SiteOptions) else None
        exchange = Exchange(store, rank, size)
        self._key: Key
        with shared_key(store, rank, self._options.key, self._options.insecure) as self._key:
            self._endpoint = enter(own_device(exchange, store))
            try:
                self._group = self._made(exchange, timeout)
            except BaseException:
                leave(self._endpoint)
                raise
        self._token = exchange.token
        self._handle = ffi.new("struct lh_collective **")
        self._result = ffi.new("struct lh_collective_result *")
        self._started = ffi.new("struct lh_collective_options *")
        lib.lh_collective_options_init(self._started)
        self.set_timeout(timeout)
        groups.add(self)

    def _made(self, exchange: Exchange, timeout: datetime.timedelta) -> Group:
        options = self._options
        return Group(
            self._rank,
            self._size,
            exchange,
            engine=self._endpoint.engine,
            attr=options.attr,
            attr_across=options.attr_across,
            site=options.site or os.environ.get("LONGHAUL_SITE"),
            key=self._key,
            insecure=options.insecure,
            **{"timeout": min(timeout.total_seconds(), 300.0), **options.settings},
        )

    # ---- state ---------------------------------------------------------------------------------------------

    def getBackendName(self) -> str:
        return "longhaul"

    @property
    def encryption(self) -> str:
        """What is encrypted of all that ranks send each other: "full" or "off"."""
        return self._group.encryption

    # The base keeps names in backends, of which there are none.
    # C++ calls get… and set…, Python the others.

    def getGroupName(self) -> str:
        return self._names["name"]

    def setGroupName(self, name: str) -> None:
        self._names["name"] = name

    def getGroupDesc(self) -> str:
        return self._names["desc"]

    def setGroupDesc(self, desc: str) -> None:
        self._names["desc"] = desc

    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    group_name, group_desc = property(getGroupName), property(getGroupDesc)

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """The time after which an operation ends with TimedOut, unless its call has a timeout."""
        self._timeout_ns = nanoseconds(timeout.total_seconds())

    def abort(self) -> None:
        """Ends pending operations with Canceled, here and at the ranks that take part, and closes the group.

        Callbacks of their futures may still run after it.
        """
        self._close(True)

    def shutdown(self) -> None:
        """Waits for pending operations, which their timeouts bound, and for callbacks of their futures, and
        closes the group.
        """
        self._close(False)

    def _close(self, cancel: bool) -> None:
        if os.getpid() != self._process:
            return
        in_callback = callers.runs_here()  # of a future, whose work ends after it
        with self._start_lock:
            first = self._closed is None
            if first:
                self._closed = Canceled(lib.LH_ECANCELED, "process group: closed (create another)")
            if cancel:
                self._canceled = True
                for handle in [*self._waited, *self._pending.values()]:
                    if handle is not None:
                        lib.lh_collective_cancel(handle)
                self._idle.notify_all()  # another thread may wait in shutdown()
        if cancel and self._sites is not None:
            self._sites.cancel()
        if first:
            self._end_close(in_callback)
            return
        mail = self._mail
        if cancel and mail is not None and self._closed is not None:
            mail.close(self._closed)  # another thread may wait in shutdown() for its sends
        if not in_callback:
            self._gone.wait()

    def _end_close(self, in_callback: bool) -> None:
        try:
            if self._sites is not None:
                self._sites.close(in_callback)
            with self._start_lock:
                while self._is_busy(in_callback):  # each operation has a deadline
                    self._idle.wait()
            with self._mail_lock:
                mail = self._mail
            if mail is not None:
                assert self._closed is not None
                mail.close(self._closed, drain=not self._canceled)
            self._group.close()
        finally:
            groups.discard(self)
            try:
                leave(self._endpoint)
            finally:
                self._gone.set()

    def _is_busy(self, in_callback: bool) -> bool:
        """Whether operations of the library are pending; for shutdown(), also whether works are."""
        if self._waited or any(handle is not None for handle in self._pending.values()):
            return True
        return bool(self._pending) and not self._canceled and not in_callback

    # ---- one operation of the library ----------------------------------------------------------------------

    def _timeout_of(self, opts: Any) -> int:
        timeout: datetime.timedelta | None = getattr(opts, "timeout", None)
        if timeout is None or timeout.days < 0:  # -1 ms: unset
            return self._timeout_ns
        return nanoseconds(timeout.total_seconds()) or self._timeout_ns

    def _run(
        self,
        call: Any,
        arguments: tuple[Any, ...],
        opts: Any,
        outputs: list[torch.Tensor],
        keep: Any = None,
        finish: Finish | None = None,
    ) -> Work:
        """Starts an operation. When the caller is going to wait (asyncOp is False), waits for it here, in the
        library.
        """
        waits = not getattr(opts, "asyncOp", True)
        work = Work(outputs, not waits, self)
        with self._start_lock:
            if self._closed is not None:
                raise self._closed
            started, number = self._started, 0
            started.deadline_ns = self._timeout_of(opts)
            started.reliable = getattr(opts, "reliable", False)
            started.queue = ffi.NULL
            if not waits:
                number = self._endpoint.expect(lambda entry: self._on_done(work, keep, finish))
                started.queue, started.user = self._endpoint.queue, number
            code = call(self._group._handle, *arguments, started, self._handle)
            handle = self._handle[0]
            if code < 0:
                self._endpoint.forget(number)
                check(code)
            if waits:
                self._waited.add(handle)
            else:
                self._pending[work] = handle
        if not waits:
            self._endpoint.wake()
            return work
        result = self._waited_for(handle, keep)
        if result.error:
            raise _result_error(result)
        work.missing_bytes = result.missing_bytes
        if finish is not None:
            with torch.no_grad():
                finish()
        return work

    def _waited_for(self, handle: Any, keep: Any) -> Any:
        """The result of an operation, which is freed. A signal's handler runs soon; its exception, such as
        KeyboardInterrupt, cancels the operation.
        """
        result, ended = ffi.new("struct lh_collective_result *"), False
        try:
            code = sliced(lambda ns: int(lib.lh_collective_wait(handle, ns, result)), None)
            ended = True
            check(code)
            return result
        finally:
            if not ended:
                lib.lh_collective_cancel(handle)
                if lib.lh_collective_wait(handle, _CANCEL_NS, result) == -lib.LH_ETIMEDOUT:
                    self._kept.append(keep)  # the library may still use it
            with self._start_lock:
                self._waited.discard(handle)
                lib.lh_collective_free(handle)
                if self._closed is not None:
                    self._idle.notify_all()

    def _on_done(self, work: Work, keep: Any, finish: Finish | None) -> None:
        """In the thread of the endpoint: the operation has ended."""
        with self._start_lock:
            handle = self._pending[work]
            result = ffi.new("struct lh_collective_result *")
            lib.lh_collective_wait(handle, lib.LH_TIME_NEVER, result)
            if result.missing_bytes:
                work.missing_ranges = ranges_of(lib.lh_collective_ranges, handle)
            lib.lh_collective_free(handle)
            self._pending[work] = None
            work._error = error = _result_error(result) if result.error else None
            if self._closed is not None:
                self._idle.notify_all()
        work.missing_bytes = result.missing_bytes
        finish_work(work, error, finish, lambda: self._forget(work))

    def _forget(self, work: Work) -> None:
        with self._start_lock:
            del self._pending[work]
            if self._closed is not None:
                self._idle.notify_all()

    def _done(self, outputs: list[torch.Tensor], finish: Finish | None = None) -> Work:
        """Work without an operation: all ranks have no elements."""
        if finish is not None:
            with torch.no_grad():
                finish()
        return Work(outputs, False, self)

    # ---- reductions ----------------------------------------------------------------------------------------

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Work:
        tensor = only_one(tensors)
        op = getattr(opts, "reduceOp", opts if opts is not None else KIND.SUM)
        direct = self._sites is None and DIRECT.get((tensor.dtype, getattr(op, "op", op)))
        if direct and tensor.numel() and tensor.is_contiguous() and tensor.device.type == "cpu":
            memory = address_of(tensor)
            arguments = (memory, memory, tensor.numel(), *direct)
            return self._run(lib.lh_allreduce, arguments, opts, [tensor], tensor)
        return self._allreduce(tensor, op, opts, [tensor], lambda result: copied(tensor, result))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        op = getattr(opts, "reduceOp", KIND.SUM)
        if len(tensors) == 1:
            return self.allreduce(tensors, opts)
        check_types(tensors[0].dtype, tensors)
        store = functools.partial(split_into, tensors)
        return self._allreduce(join(tensors), op, opts, list(tensors), store)

    def _allreduce(
        self,
        tensor: torch.Tensor,
        op: Any,
        opts: Any,
        outputs: list[torch.Tensor],
        store: Callable[[Any], None],
    ) -> Work:
        if self._sites is not None:
            return self._allreduce_sites(self._sites, tensor, op, opts, outputs, store)
        given = contiguous(tensor)
        if not given.numel():
            return self._done(outputs)
        plan = planned(given, op)
        result = torch.empty_like(plan.given)
        arguments = (address_of(plan.given), address_of(result), result.numel(), plan.kind, plan.op)
        return self._run(
            lib.lh_allreduce,
            arguments,
            opts,
            outputs,
            (plan.given, result),
            lambda: store(plan.back(result) if plan.back else result),
        )

    def _allreduce_sites(
        self,
        sites: SiteReducer,
        tensor: torch.Tensor,
        op: Any,
        opts: Any,
        outputs: list[torch.Tensor],
        store: Callable[[Any], None],
    ) -> Work:
        """By the backends of hierarchical(), on the tensor's device."""
        kind, given = getattr(op, "op", op), strided(tensor)
        if not given.numel():
            return self._done(outputs)
        if tensor.dtype is torch.bool:
            if kind == KIND.AVG:
                raise NotImplementedError(f"{kind} of {tensor.dtype}: not supported (convert the tensor)")
            kind = {KIND.SUM: KIND.MAX, KIND.PRODUCT: KIND.MIN}.get(kind, kind)  # sums of bytes are not
        back: Callable[[torch.Tensor], torch.Tensor] | None = None
        if kind == KIND.PREMUL_SUM:
            given, kind = premultiplied(given, op), KIND.SUM
        elif kind == KIND.AVG and (given.is_floating_point() or given.is_complex()):
            given, kind = given / self._size, KIND.SUM  # first: the sum of a site does not overflow
        elif kind == KIND.AVG:
            given, kind = given.to(torch.int64), KIND.SUM
            back = lambda sums: torch.div(sums, self._size, rounding_mode="trunc")  # noqa: E731
        staged = given.contiguous()
        finish: Finish | None = None
        if back is not None or tensor is not outputs[0] or staged.data_ptr() != tensor.data_ptr():
            finish = lambda: store(back(staged) if back else staged)  # noqa: E731
        timeout = datetime.timedelta(microseconds=self._timeout_of(opts) // 1000)
        return sites.start(Work(outputs, True, self), staged, dist.ReduceOp(kind), timeout, finish)

    def reduce(self, tensors: Tensors, opts: Any) -> Work:
        tensor = only_one(tensors)
        given = contiguous(tensor)
        if not given.numel():
            return self._done([tensor])
        plan = planned(given, opts.reduceOp)
        root = self._rank == opts.rootRank
        result = torch.empty_like(plan.given) if root else None
        arguments = (
            address_of(plan.given),
            ffi.NULL if result is None else address_of(result),
            plan.given.numel(),
            plan.kind,
            plan.op,
            opts.rootRank,
        )
        finish = None
        if result is not None:
            reduced = result
            finish = lambda: copied(tensor, plan.back(reduced) if plan.back else reduced)  # noqa: E731
        return self._run(lib.lh_reduce, arguments, opts, [tensor], (plan.given, result), finish)

    def _reduce_scatter(self, output: Tensors, given: torch.Tensor, op: Any, opts: Any) -> Work:
        """given: the parts of all ranks, contiguous, of equal size; a part fills the tensors of `output`."""
        check_types(given.dtype, output)
        count = sum(tensor.numel() for tensor in output)
        if given.numel() != count * self._size:
            raise ValueError(f"input of {given.numel()} elements: expected {self._size} * {count}")
        if not count:
            return self._done(list(output))
        plan = planned(given.reshape(self._size, count), op)
        direct = plan.back is None and len(output) == 1 and output[0].is_contiguous()
        direct = direct and output[0].device.type == "cpu" and output[0].dtype == plan.given.dtype
        result = output[0] if direct else torch.empty_like(plan.given[0])
        return self._run(
            lib.lh_reduce_scatter,
            (address_of(plan.given), address_of(result), plan.given[0].numel(), plan.kind, plan.op),
            opts,
            list(output),
            (plan.given, result),
            None
            if direct
            else lambda: split_into(output, (plan.back(result) if plan.back else result).reshape(-1)),
        )

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Work:
        op = getattr(opts, "reduceOp", KIND.SUM)
        if len(inputs) != 1 or len(inputs[0]) != self._size:
            raise ValueError(f"inputs: expected one list of {self._size} tensors")
        sizes = {tensor.numel() for tensor in inputs[0]}
        if len(sizes) != 1:
            raise NotImplementedError(f"parts of {sorted(sizes)} elements: parts of one size only (pad them)")
        check_types(inputs[0][0].dtype, inputs[0])
        return self._reduce_scatter([only_one(outputs)], join(inputs[0]), op, opts)

    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        op = getattr(opts, "reduceOp", KIND.SUM)
        return self._reduce_scatter([output], contiguous(given).reshape(-1), op, opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        op = getattr(opts, "reduceOp", KIND.SUM)
        check_types(inputs[0].dtype, inputs)
        parts = torch.cat([contiguous(each).reshape(self._size, -1) for each in inputs], 1)
        return self._reduce_scatter(outputs, parts.reshape(-1), op, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ---- copies --------------------------------------------------------------------------------------------

    def broadcast(self, tensors: Tensors, opts: Any) -> Work:
        tensor = only_one(tensors)
        staged = contiguous(tensor)
        if not staged.numel():
            return self._done([tensor])
        finish = None if self._rank == opts.rootRank else copy_back(tensor, staged)
        arguments = (address_of(staged), byte_size(staged), lib.LH_U8, opts.rootRank)
        return self._run(lib.lh_broadcast, arguments, opts, [tensor], staged, finish)

    def _allgather(
        self, given: torch.Tensor, into: torch.Tensor, opts: Any, outputs: Any, finish: Any
    ) -> Work:
        if into.dtype != given.dtype or byte_size(into) != byte_size(given) * self._size:
            raise ValueError(
                f"output of {into.numel()} {into.dtype}: expected {self._size} * "
                f"{given.numel()} {given.dtype}"
            )
        if not given.numel():
            return self._done(outputs)
        memory = address_of(given)
        place = into.data_ptr() + self._rank * byte_size(given)
        if given.data_ptr() != place and overlap(given, into):
            given = given.clone()  # the input is elsewhere in the output: its place would be overwritten
            memory = address_of(given)
        arguments = (memory, address_of(into), byte_size(given), lib.LH_U8)
        return self._run(lib.lh_allgather, arguments, opts, outputs, (given, into), finish)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Work:
        given, parts = contiguous(only_one(inputs)), outputs[0]
        if len(outputs) != 1 or len(parts) != self._size or any(p.numel() != given.numel() for p in parts):
            raise ValueError(
                f"outputs of {[[p.numel() for p in each] for each in outputs]} elements: expected one list "
                f"of {self._size} tensors of {given.numel()} (tensors of different sizes: pad them)"
            )
        check_types(given.dtype, parts)
        into = given.new_empty(self._size * given.numel())
        return self._allgather(given, into, opts, list(parts), lambda: split_into(parts, into))

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        staged = contiguous(output)
        return self._allgather(contiguous(given), staged, opts, [output], copy_back(output, staged))

    _allgather_base = all_gather_single

    def allgather_coalesced(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Work:
        """outputs[rank][i] gets inputs[i] of the rank."""
        if len(outputs) != self._size or any(len(each) != len(inputs) for each in outputs):
            raise ValueError(f"outputs: expected {self._size} lists of {len(inputs)} tensors")
        for i, each in enumerate(inputs):
            check_types(each.dtype, (tensors[i] for tensors in outputs))
            sizes = {each.numel(), *(tensors[i].numel() for tensors in outputs)}
            if len(sizes) != 1:
                raise ValueError(f"tensors {i} of {sorted(sizes)} elements: expected one size (pad them)")
        given = torch.cat([bytes_of(each) for each in inputs])
        into = given.new_empty((self._size, given.numel()))

        def finish() -> None:
            for tensors, part in zip(outputs, into):
                split_bytes(tensors, part)

        return self._allgather(given, into, opts, [t for each in outputs for t in each], finish)

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        """outputs[i] gets inputs[i] of all ranks."""
        if len(outputs) == 1:
            return self.all_gather_single(outputs[0], inputs[0], opts)
        parts = [parts_of(output, self._size) for output in outputs]
        work = self.allgather_coalesced(list(zip(*parts)), inputs, opts)
        work._outputs = list(outputs)
        return work

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> Work:
        given, root = contiguous(only_one(inputs)), self._rank == opts.rootRank
        parts = list(outputs[0]) if root else []
        if root and (len(parts) != self._size or any(p.numel() != given.numel() for p in parts)):
            raise ValueError(f"outputs: expected {self._size} tensors of {given.numel()} elements")
        check_types(given.dtype, parts)
        if not given.numel():
            return self._done(parts)
        into = given.new_empty(self._size * given.numel()) if root else None
        return self._run(
            lib.lh_gather,
            (
                address_of(given),
                ffi.NULL if into is None else address_of(into),
                byte_size(given),
                lib.LH_U8,
                opts.rootRank,
            ),
            opts,
            parts,
            (given, into),
            None if into is None else lambda: split_into(parts, into),
        )

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> Work:
        output = only_one(outputs)
        staged, root = contiguous(output), self._rank == opts.rootRank
        given = None
        if root:
            if len(inputs) != 1 or len(inputs[0]) != self._size:
                raise ValueError(f"inputs: expected one list of {self._size} tensors")
            check_types(output.dtype, inputs[0])
            given = join(inputs[0])
            if any(each.numel() != staged.numel() for each in inputs[0]):
                raise ValueError(f"inputs: expected {self._size} tensors of {staged.numel()} elements")
        if not staged.numel():
            return self._done([output])
        return self._run(
            lib.lh_scatter,
            (
                ffi.NULL if given is None else address_of(given),
                address_of(staged),
                byte_size(staged),
                lib.LH_U8,
                opts.rootRank,
            ),
            opts,
            [output],
            (given, staged),
            copy_back(output, staged),
        )

    def _alltoallv(
        self,
        given: torch.Tensor,
        given_sizes: Sequence[int],
        into: torch.Tensor,
        into_sizes: Sequence[int],
        opts: Any,
        outputs: list[torch.Tensor],
        finish: Finish | None,
    ) -> Work:
        """Sizes are bytes, one a rank."""
        sent, received = counts_of(given_sizes), counts_of(into_sizes)
        arguments = (address_of(given), sent, address_of(into), received, lib.LH_U8)
        return self._run(lib.lh_alltoallv, arguments, opts, outputs, (given, into, sent, received), finish)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_splits: Sequence[int] = (),
        input_splits: Sequence[int] = (),
        opts: Any = None,
    ) -> Work:
        """Splits are rows, one number a rank; none: equal parts."""
        check_types(given.dtype, [output])
        staged, data = contiguous(output), contiguous(given)
        finish = copy_back(output, staged)
        if not output_splits and not input_splits:
            if data.numel() != staged.numel() or (data.dim() and data.shape[0] % self._size):
                raise ValueError(
                    f"input of shape {tuple(data.shape)}, output of shape {tuple(staged.shape)}: expected "
                    f"equal numbers of elements, and rows divisible by {self._size} (or splits)"
                )
            if not data.numel():
                return self._done([output])
            arguments = (address_of(data), address_of(staged), byte_size(data) // self._size, lib.LH_U8)
            return self._run(lib.lh_alltoall, arguments, opts, [output], (data, staged), finish)
        sizes = []
        for tensor, splits, name in ((data, input_splits, "input"), (staged, output_splits, "output")):
            rows = tensor.shape[0] if tensor.dim() else 0
            taken = list(splits) or [rows // self._size] * self._size
            if len(taken) != self._size or sum(taken) != rows:
                raise ValueError(f"{name} splits {taken}: expected {self._size} numbers with the sum {rows}")
            width = byte_size(tensor) // rows if rows else 0
            sizes.append([width * each for each in taken])
        return self._alltoallv(data, sizes[0], staged, sizes[1], opts, [output], finish)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        if len(outputs) != self._size or len(inputs) != self._size:
            raise ValueError(f"{len(inputs)} inputs, {len(outputs)} outputs: expected {self._size} of each")
        given = torch.cat([bytes_of(each) for each in inputs])
        into = torch.empty(sum(byte_size(each) for each in outputs), dtype=torch.uint8)
        return self._alltoallv(
            given,
            [byte_size(each) for each in inputs],
            into,
            [byte_size(each) for each in outputs],
            opts,
            list(outputs),
            lambda: split_bytes(outputs, into),
        )

    def barrier(self, opts: Any = None) -> Work:
        return self._run(lib.lh_barrier, (), opts, [])

    # ---- messages ------------------------------------------------------------------------------------------

    def _messages(self) -> Messages:
        """The caller holds _mail_lock, with which _end_close() closes it, until the message has started."""
        if self._closed is not None:
            raise self._closed
        if self._mail is None:
            settings = {k: v for k, v in self._options.settings.items() if k.startswith("peer_timeout")}
            settings.update({"mtu_bytes": lib.lh_group_mtu(self._group._handle) or None})
            settings.update(self._options.attr or {})
            settings.update({"key": self._key, "insecure": self._options.insecure})
            self._mail = Messages(self._group, self._store, self._endpoint, settings, self._token)
        return self._mail

    def send(self, tensors: Tensors, rank: int, tag: int = 0) -> Work:
        tensor = only_one(tensors)
        work = Work([tensor], True, self)
        with self._mail_lock:
            self._messages().send(contiguous(tensor), rank, tag, work, self._timeout_ns / 1e9)
        return work

    def recv(self, tensors: Tensors, rank: int, tag: int = 0) -> Work:
        return self._recv(only_one(tensors), rank, tag)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Work:
        return self._recv(only_one(tensors), None, tag)

    def _recv(self, tensor: torch.Tensor, rank: int | None, tag: int) -> Work:
        staged = contiguous(tensor)
        work = Work([tensor], True, self)
        finish = copy_back(tensor, staged)
        with self._mail_lock:
            self._messages().recv(staged, rank, tag, work, self._timeout_ns / 1e9, finish)
        return work


def _result_error(result: Any) -> LonghaulError:
    rank = result.failed_rank if result.failed_rank != lib.LH_NO_RANK else None
    # "Timed out": what programs look for in the text of other backends.
    late = "Timed out: " if result.error == -lib.LH_ETIMEDOUT else ""
    return failure(result.error, late + text(result.message), rank)
