"""The backend "longhaul" of torch.distributed.

    import longhaul.torch, torch.distributed as dist
    dist.init_process_group("longhaul")               # torchrun, or any store: no second rendezvous

The store that torch gives carries the addresses and the keys of the connections. Options of connections:

    options = longhaul.torch.Options(site="paris", attr={"reliability": "auto"}, attr_across={"rate_bps":
    10**9}) dist.init_process_group("longhaul", pg_options=options)

Environment: LONGHAUL_DEVICE ("udp:10.0.0.1", an address that the other ranks reach; default: the one that
reaches the store), LONGHAUL_SITE.

A group replaces all backends of its devices, so "cpu:longhaul,cuda:nccl" is not possible. torch refuses
monitored_barrier() for every backend but gloo: use barrier() with a timeout. Reductions that the library
lacks are mapped: complex numbers are pairs; averages of 8- and 16-bit integers, and MIN, MAX and AVG of
unsigned ones, are computed in a wider type.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore

from longhaul._native import Canceled, LonghaulError, check, failure, ffi, lib, nanoseconds, sliced, text
from longhaul._torch_bounded import BoundedHook, BoundedStep, reliability_of
from longhaul._torch_hierarchical import SiteReducer, make_reducer, sites_of
from longhaul._torch_messages import Messages
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
)
from longhaul.group import Group

if torch.__version__ < "2.7":  # compares versions
    # C++ kept no works of groups in Python, and waited for their remains without end; nor did it close them.
    raise ImportError(f"torch {torch.__version__}: no backend in Python is safe (install torch 2.7 or later)")

__all__ = [
    "BoundedHook",
    "BoundedStep",
    "Options",
    "ProcessGroupLonghaul",
    "bounded_hook",
    "hierarchical",
    "register",
]

Tensors = Sequence[torch.Tensor]

_ELEMENTS = {
    torch.float32: lib.LH_F32,
    torch.float64: lib.LH_F64,
    torch.float16: lib.LH_F16,
    torch.bfloat16: lib.LH_BF16,
    torch.int32: lib.LH_I32,
    torch.int64: lib.LH_I64,
    torch.uint8: lib.LH_U8,
    torch.int8: lib.LH_I8,
    torch.int16: lib.LH_I16,
}
_UNSIGNED = [getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)]
_NARROW = (torch.uint8, torch.int8, torch.int16)  # the sum of an average would wrap around
_KIND: Any = dist.ReduceOp.RedOpType
_Pair = tuple[torch.dtype, Any]  # a tensor's type, and a RedOpType


def _direct() -> dict[_Pair, tuple[int, int]]:
    """What the library reduces as it is, with its type and its reduction."""
    sums = {_KIND.SUM: lib.LH_SUM, _KIND.PRODUCT: lib.LH_PROD}
    bits = {_KIND.BAND: lib.LH_BAND, _KIND.BOR: lib.LH_BOR, _KIND.BXOR: lib.LH_BXOR}
    ordered = {_KIND.MIN: lib.LH_MIN, _KIND.MAX: lib.LH_MAX}
    any_of, all_of = lib.LH_BOR, lib.LH_BAND  # of booleans
    logical = {_KIND.SUM: any_of, _KIND.MAX: any_of, _KIND.PRODUCT: all_of, _KIND.MIN: all_of}
    # Sums, products and bits of integers are the same with a sign and without.
    by_bytes = {2: lib.LH_I16, 4: lib.LH_I32, 8: lib.LH_I64}
    found = {(torch.bool, op): (lib.LH_U8, reduction) for op, reduction in {**logical, **bits}.items()}
    for kind, element in _ELEMENTS.items():
        averages = {} if kind in _NARROW else {_KIND.AVG: lib.LH_AVG}
        integer = {} if kind.is_floating_point else bits
        for op, reduction in {**sums, **ordered, **averages, **integer}.items():
            found[kind, op] = (element, reduction)
    for kind in _UNSIGNED:
        for op, reduction in {**sums, **bits}.items():
            found[kind, op] = (by_bytes[kind.itemsize], reduction)
    return found


def _widened() -> dict[_Pair, torch.dtype]:
    """What is reduced in a wider type."""
    found = {(kind, _KIND.AVG): torch.int32 for kind in _NARROW}
    for kind in _UNSIGNED:
        if kind.itemsize < 8:
            found.update({(kind, op): torch.int64 for op in (_KIND.MIN, _KIND.MAX, _KIND.AVG)})
    return found


_DIRECT = _direct()
_WIDENED = _widened()


@dataclasses.dataclass
class Options:
    """Options of a group: `pg_options` of init_process_group() and new_group().

    site: name of this rank's site. attr, attr_across: settings of connections, and of those to other sites,
    as of longhaul.Group. settings: fields of struct lh_group_attr: {"peer_timeout": 5.0, "block_bytes": 1 <<
    20}.
    """

    site: str | None = None
    attr: dict[str, Any] | None = None
    attr_across: dict[str, Any] | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class _SiteOptions(Options):
    """Options of a group whose all-reduces take other groups, one a site and one between the sites."""

    reducer: SiteReducer | None = None


# ---- tensors -----------------------------------------------------------------------------------------------


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without its graph. NotImplementedError: it is sparse."""
    if tensor.layout is not torch.strided:
        raise NotImplementedError(f"tensor of layout {tensor.layout}: not supported (call to_dense() first)")
    return tensor.detach()


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a contiguous copy on the CPU."""
    tensor = _strided(tensor)
    return tensor.contiguous() if tensor.device.type == "cpu" else tensor.cpu().contiguous()


def _address(tensor: torch.Tensor) -> Any:
    return ffi.cast("void *", tensor.data_ptr())


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _copy_back(tensor: torch.Tensor, staged: torch.Tensor) -> Finish | None:
    """Copies a staged output to where it belongs; None: it is there."""
    if staged.data_ptr() == tensor.data_ptr() and staged.device == tensor.device:
        return None
    return lambda: _copied(tensor, staged)


def _copied(tensor: torch.Tensor, staged: torch.Tensor) -> None:
    tensor.detach().copy_(staged.view(tensor.shape))
    if tensor.device.type == "cuda":
        torch.cuda.current_stream(tensor.device).synchronize()


def _joined(tensors: Tensors) -> torch.Tensor:
    """All elements in one contiguous tensor."""
    return torch.cat([_contiguous(tensor).reshape(-1) for tensor in tensors])


def _split_into(tensors: Tensors, joined: torch.Tensor) -> None:
    at = 0
    for tensor in tensors:
        _copied(tensor, joined[at : at + tensor.numel()])
        at += tensor.numel()


def _counts(sizes: Iterable[int]) -> Any:
    return ffi.new("size_t[]", list(sizes))


def _check_types(given: torch.dtype, others: Iterable[torch.Tensor]) -> None:
    """ValueError: a tensor has another type. The library gets addresses and sizes only."""
    for other in others:
        if other.dtype != given:
            raise ValueError(f"tensors of {given} and {other.dtype}: expected equal types (convert one)")


def _one(tensors: Tensors) -> torch.Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors: invalid number (1; one process has one device)")
    return tensors[0]


@dataclasses.dataclass
class _Plan:
    """A reduction in the library's types. given: the elements; kind, op: of the library."""

    given: torch.Tensor
    kind: int
    op: int
    back: Callable[[torch.Tensor], torch.Tensor] | None = None  # from reduced elements to the tensor's


# Of unsigned numbers: their order is that of signed ones with this bit flipped.
_FLIP = torch.iinfo(torch.int64).min


def _premultiplied(tensor: torch.Tensor, reduce_op: Any) -> torch.Tensor:
    """By the factor of a PREMUL_SUM, which may be a tensor of a wider type."""
    return (tensor * reduce_op.__getstate__()[1]).to(tensor.dtype)


def _planned(tensor: torch.Tensor, reduce_op: Any) -> _Plan:
    """Maps a reduction of a contiguous tensor. NotImplementedError: there is none for its type."""
    op = getattr(reduce_op, "op", reduce_op)
    kind = tensor.dtype
    if op == _KIND.PREMUL_SUM:
        return _planned(_premultiplied(tensor, reduce_op), _KIND.SUM)
    if (kind, op) in _DIRECT:
        return _Plan(tensor, *_DIRECT[kind, op])
    if (kind, op) in _WIDENED:
        plan = _planned(tensor.to(_WIDENED[kind, op]), op)
        return dataclasses.replace(plan, back=lambda t: t.to(kind))
    if kind is getattr(torch, "uint64", None) and op in (_KIND.MIN, _KIND.MAX):
        plan = _planned(tensor.view(torch.int64) ^ _FLIP, op)
        return dataclasses.replace(plan, back=lambda t: (t ^ _FLIP).view(kind))
    if kind.is_complex and op in (_KIND.SUM, _KIND.AVG):
        plan = _planned(torch.view_as_real(tensor), op)
        return dataclasses.replace(plan, back=torch.view_as_complex)
    raise NotImplementedError(f"{op} of {kind}: not supported (convert the tensor, for example to float32)")


_CANCEL_NS = 5_000_000_000  # until an operation that was canceled ends


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
        self._sites = self._options.reducer if isinstance(self._options, _SiteOptions) else None
        exchange = Exchange(store, rank, size)
        self._endpoint = enter(own_device(exchange, store))
        try:
            settings = {"timeout": min(timeout.total_seconds(), 300.0), **self._options.settings}
            self._group = Group(
                rank,
                size,
                exchange,
                engine=self._endpoint.engine,
                attr=self._options.attr,
                attr_across=self._options.attr_across,
                site=self._options.site or os.environ.get("LONGHAUL_SITE"),
                **settings,
            )
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

    # ---- state ---------------------------------------------------------------------------------------------

    def getBackendName(self) -> str:
        return "longhaul"

    # The base keeps names in backends, of which there are none. C++ calls get… and set…, Python the others.

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
        tensor = _one(tensors)
        op = getattr(opts, "reduceOp", opts if opts is not None else _KIND.SUM)
        direct = self._sites is None and _DIRECT.get((tensor.dtype, getattr(op, "op", op)))
        if direct and tensor.numel() and tensor.is_contiguous() and tensor.device.type == "cpu":
            memory = _address(tensor)
            arguments = (memory, memory, tensor.numel(), *direct)
            return self._run(lib.lh_allreduce, arguments, opts, [tensor], tensor)
        return self._allreduce(tensor, op, opts, [tensor], lambda result: _copied(tensor, result))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        op = getattr(opts, "reduceOp", _KIND.SUM)
        if len(tensors) == 1:
            return self.allreduce(tensors, opts)
        _check_types(tensors[0].dtype, tensors)
        store = functools.partial(_split_into, tensors)
        return self._allreduce(_joined(tensors), op, opts, list(tensors), store)

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
        given = _contiguous(tensor)
        if not given.numel():
            return self._done(outputs)
        plan = _planned(given, op)
        result = torch.empty_like(plan.given)
        arguments = (_address(plan.given), _address(result), result.numel(), plan.kind, plan.op)
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
        kind, given = getattr(op, "op", op), _strided(tensor)
        if not given.numel():
            return self._done(outputs)
        if tensor.dtype is torch.bool:
            if kind == _KIND.AVG:
                raise NotImplementedError(f"{kind} of {tensor.dtype}: not supported (convert the tensor)")
            kind = {_KIND.SUM: _KIND.MAX, _KIND.PRODUCT: _KIND.MIN}.get(kind, kind)  # sums of bytes are not
        back: Callable[[torch.Tensor], torch.Tensor] | None = None
        if kind == _KIND.PREMUL_SUM:
            given, kind = _premultiplied(given, op), _KIND.SUM
        elif kind == _KIND.AVG and (given.is_floating_point() or given.is_complex()):
            given, kind = given / self._size, _KIND.SUM  # first: the sum of a site does not overflow
        elif kind == _KIND.AVG:
            given, kind = given.to(torch.int64), _KIND.SUM
            back = lambda sums: torch.div(sums, self._size, rounding_mode="trunc")  # noqa: E731
        staged = given.contiguous()
        finish: Finish | None = None
        if back is not None or tensor is not outputs[0] or staged.data_ptr() != tensor.data_ptr():
            finish = lambda: store(back(staged) if back else staged)  # noqa: E731
        timeout = datetime.timedelta(microseconds=self._timeout_of(opts) // 1000)
        return sites.start(Work(outputs, True, self), staged, dist.ReduceOp(kind), timeout, finish)

    def reduce(self, tensors: Tensors, opts: Any) -> Work:
        tensor = _one(tensors)
        given = _contiguous(tensor)
        if not given.numel():
            return self._done([tensor])
        plan = _planned(given, opts.reduceOp)
        root = self._rank == opts.rootRank
        result = torch.empty_like(plan.given) if root else None
        arguments = (
            _address(plan.given),
            ffi.NULL if result is None else _address(result),
            plan.given.numel(),
            plan.kind,
            plan.op,
            opts.rootRank,
        )
        finish = None
        if result is not None:
            reduced = result
            finish = lambda: _copied(tensor, plan.back(reduced) if plan.back else reduced)  # noqa: E731
        return self._run(lib.lh_reduce, arguments, opts, [tensor], (plan.given, result), finish)

    def _reduce_scatter(self, output: Tensors, given: torch.Tensor, op: Any, opts: Any) -> Work:
        """given: the parts of all ranks, contiguous, of equal size; a part fills the tensors of `output`."""
        _check_types(given.dtype, output)
        count = sum(tensor.numel() for tensor in output)
        if given.numel() != count * self._size:
            raise ValueError(f"input of {given.numel()} elements: expected {self._size} * {count}")
        if not count:
            return self._done(list(output))
        plan = _planned(given.reshape(self._size, count), op)
        direct = plan.back is None and len(output) == 1 and output[0].is_contiguous()
        direct = direct and output[0].device.type == "cpu" and output[0].dtype == plan.given.dtype
        result = output[0] if direct else torch.empty_like(plan.given[0])
        return self._run(
            lib.lh_reduce_scatter,
            (_address(plan.given), _address(result), plan.given[0].numel(), plan.kind, plan.op),
            opts,
            list(output),
            (plan.given, result),
            None
            if direct
            else lambda: _split_into(output, (plan.back(result) if plan.back else result).reshape(-1)),
        )

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Work:
        op = getattr(opts, "reduceOp", _KIND.SUM)
        if len(inputs) != 1 or len(inputs[0]) != self._size:
            raise ValueError(f"inputs: expected one list of {self._size} tensors")
        sizes = {tensor.numel() for tensor in inputs[0]}
        if len(sizes) != 1:
            raise NotImplementedError(f"parts of {sorted(sizes)} elements: parts of one size only (pad them)")
        _check_types(inputs[0][0].dtype, inputs[0])
        return self._reduce_scatter([_one(outputs)], _joined(inputs[0]), op, opts)

    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        op = getattr(opts, "reduceOp", _KIND.SUM)
        return self._reduce_scatter([output], _contiguous(given).reshape(-1), op, opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        op = getattr(opts, "reduceOp", _KIND.SUM)
        _check_types(inputs[0].dtype, inputs)
        parts = torch.cat([_contiguous(each).reshape(self._size, -1) for each in inputs], 1)
        return self._reduce_scatter(outputs, parts.reshape(-1), op, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ---- copies --------------------------------------------------------------------------------------------

    def broadcast(self, tensors: Tensors, opts: Any) -> Work:
        tensor = _one(tensors)
        staged = _contiguous(tensor)
        if not staged.numel():
            return self._done([tensor])
        finish = None if self._rank == opts.rootRank else _copy_back(tensor, staged)
        arguments = (_address(staged), _size(staged), lib.LH_U8, opts.rootRank)
        return self._run(lib.lh_broadcast, arguments, opts, [tensor], staged, finish)

    def _allgather(
        self, given: torch.Tensor, into: torch.Tensor, opts: Any, outputs: Any, finish: Any
    ) -> Work:
        if into.dtype != given.dtype or _size(into) != _size(given) * self._size:
            raise ValueError(
                f"output of {into.numel()} {into.dtype}: expected {self._size} * "
                f"{given.numel()} {given.dtype}"
            )
        if not given.numel():
            return self._done(outputs)
        memory = _address(given)
        place = into.data_ptr() + self._rank * _size(given)
        if given.data_ptr() != place and _overlap(given, into):
            given = given.clone()  # the input is elsewhere in the output: its place would be overwritten
            memory = _address(given)
        arguments = (memory, _address(into), _size(given), lib.LH_U8)
        return self._run(lib.lh_allgather, arguments, opts, outputs, (given, into), finish)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Work:
        given, parts = _contiguous(_one(inputs)), outputs[0]
        if len(outputs) != 1 or len(parts) != self._size or any(p.numel() != given.numel() for p in parts):
            raise ValueError(
                f"outputs of {[[p.numel() for p in each] for each in outputs]} elements: expected one list "
                f"of {self._size} tensors of {given.numel()} (tensors of different sizes: pad them)"
            )
        _check_types(given.dtype, parts)
        into = given.new_empty(self._size * given.numel())
        return self._allgather(given, into, opts, list(parts), lambda: _split_into(parts, into))

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        staged = _contiguous(output)
        return self._allgather(_contiguous(given), staged, opts, [output], _copy_back(output, staged))

    _allgather_base = all_gather_single

    def allgather_coalesced(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Work:
        """outputs[rank][i] gets inputs[i] of the rank."""
        if len(outputs) != self._size or any(len(each) != len(inputs) for each in outputs):
            raise ValueError(f"outputs: expected {self._size} lists of {len(inputs)} tensors")
        for i, each in enumerate(inputs):
            _check_types(each.dtype, (tensors[i] for tensors in outputs))
            sizes = {each.numel(), *(tensors[i].numel() for tensors in outputs)}
            if len(sizes) != 1:
                raise ValueError(f"tensors {i} of {sorted(sizes)} elements: expected one size (pad them)")
        given = torch.cat([_bytes(each) for each in inputs])
        into = given.new_empty((self._size, given.numel()))

        def finish() -> None:
            for tensors, part in zip(outputs, into):
                _split_bytes(tensors, part)

        return self._allgather(given, into, opts, [t for each in outputs for t in each], finish)

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        """outputs[i] gets inputs[i] of all ranks."""
        if len(outputs) == 1:
            return self.all_gather_single(outputs[0], inputs[0], opts)
        parts = [_parts_of(output, self._size) for output in outputs]
        work = self.allgather_coalesced(list(zip(*parts)), inputs, opts)
        work._outputs = list(outputs)
        return work

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> Work:
        given, root = _contiguous(_one(inputs)), self._rank == opts.rootRank
        parts = list(outputs[0]) if root else []
        if root and (len(parts) != self._size or any(p.numel() != given.numel() for p in parts)):
            raise ValueError(f"outputs: expected {self._size} tensors of {given.numel()} elements")
        _check_types(given.dtype, parts)
        if not given.numel():
            return self._done(parts)
        into = given.new_empty(self._size * given.numel()) if root else None
        return self._run(
            lib.lh_gather,
            (
                _address(given),
                ffi.NULL if into is None else _address(into),
                _size(given),
                lib.LH_U8,
                opts.rootRank,
            ),
            opts,
            parts,
            (given, into),
            None if into is None else lambda: _split_into(parts, into),
        )

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> Work:
        output = _one(outputs)
        staged, root = _contiguous(output), self._rank == opts.rootRank
        given = None
        if root:
            if len(inputs) != 1 or len(inputs[0]) != self._size:
                raise ValueError(f"inputs: expected one list of {self._size} tensors")
            _check_types(output.dtype, inputs[0])
            given = _joined(inputs[0])
            if any(each.numel() != staged.numel() for each in inputs[0]):
                raise ValueError(f"inputs: expected {self._size} tensors of {staged.numel()} elements")
        if not staged.numel():
            return self._done([output])
        return self._run(
            lib.lh_scatter,
            (
                ffi.NULL if given is None else _address(given),
                _address(staged),
                _size(staged),
                lib.LH_U8,
                opts.rootRank,
            ),
            opts,
            [output],
            (given, staged),
            _copy_back(output, staged),
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
        sent, received = _counts(given_sizes), _counts(into_sizes)
        arguments = (_address(given), sent, _address(into), received, lib.LH_U8)
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
        _check_types(given.dtype, [output])
        staged, data = _contiguous(output), _contiguous(given)
        finish = _copy_back(output, staged)
        if not output_splits and not input_splits:
            if data.numel() != staged.numel() or (data.dim() and data.shape[0] % self._size):
                raise ValueError(
                    f"input of shape {tuple(data.shape)}, output of shape {tuple(staged.shape)}: expected "
                    f"equal numbers of elements, and rows divisible by {self._size} (or splits)"
                )
            if not data.numel():
                return self._done([output])
            arguments = (_address(data), _address(staged), _size(data) // self._size, lib.LH_U8)
            return self._run(lib.lh_alltoall, arguments, opts, [output], (data, staged), finish)
        sizes = []
        for tensor, splits, name in ((data, input_splits, "input"), (staged, output_splits, "output")):
            rows = tensor.shape[0] if tensor.dim() else 0
            taken = list(splits) or [rows // self._size] * self._size
            if len(taken) != self._size or sum(taken) != rows:
                raise ValueError(f"{name} splits {taken}: expected {self._size} numbers with the sum {rows}")
            width = _size(tensor) // rows if rows else 0
            sizes.append([width * each for each in taken])
        return self._alltoallv(data, sizes[0], staged, sizes[1], opts, [output], finish)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        if len(outputs) != self._size or len(inputs) != self._size:
            raise ValueError(f"{len(inputs)} inputs, {len(outputs)} outputs: expected {self._size} of each")
        given = torch.cat([_bytes(each) for each in inputs])
        into = torch.empty(sum(_size(each) for each in outputs), dtype=torch.uint8)
        return self._alltoallv(
            given,
            [_size(each) for each in inputs],
            into,
            [_size(each) for each in outputs],
            opts,
            list(outputs),
            lambda: _split_bytes(outputs, into),
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
            self._mail = Messages(self._group, self._store, self._endpoint, settings, self._token)
        return self._mail

    def send(self, tensors: Tensors, rank: int, tag: int = 0) -> Work:
        tensor = _one(tensors)
        work = Work([tensor], True, self)
        with self._mail_lock:
            self._messages().send(_contiguous(tensor), rank, tag, work, self._timeout_ns / 1e9)
        return work

    def recv(self, tensors: Tensors, rank: int, tag: int = 0) -> Work:
        return self._recv(_one(tensors), rank, tag)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Work:
        return self._recv(_one(tensors), None, tag)

    def _recv(self, tensor: torch.Tensor, rank: int | None, tag: int) -> Work:
        staged = _contiguous(tensor)
        work = Work([tensor], True, self)
        finish = _copy_back(tensor, staged)
        with self._mail_lock:
            self._messages().recv(staged, rank, tag, work, self._timeout_ns / 1e9, finish)
        return work


def _result_error(result: Any) -> LonghaulError:
    rank = result.failed_rank if result.failed_rank != lib.LH_NO_RANK else None
    # "Timed out": what programs look for in the text of other backends.
    late = "Timed out: " if result.error == -lib.LH_ETIMEDOUT else ""
    return failure(result.error, late + text(result.message), rank)


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    first, second = one.data_ptr(), other.data_ptr()
    return first < second + _size(other) and second < first + _size(one)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor as a flat tensor of bytes."""
    return _contiguous(tensor).reshape(-1).view(torch.uint8)


def _split_bytes(tensors: Tensors, joined: torch.Tensor) -> None:
    at = 0
    for tensor in tensors:
        part = joined[at : at + _size(tensor)].clone()  # aligned for the tensor's type
        at += _size(tensor)
        if part.numel():
            _copied(tensor, part.view(tensor.dtype))


def _parts_of(output: torch.Tensor, size: int) -> list[torch.Tensor]:
    """A gathered tensor in parts, one a rank."""
    if not output.is_contiguous():
        raise ValueError("output: not contiguous (pass a contiguous tensor to a coalesced all-gather)")
    return list(output.detach().reshape(-1).chunk(size)) if output.numel() else [output] * size


def _create(opts: Any, backend_options: Any = None) -> ProcessGroupLonghaul:
    if backend_options is not None and not isinstance(backend_options, Options):
        raise TypeError(f"pg_options: {type(backend_options).__name__}, expected longhaul.torch.Options")
    return ProcessGroupLonghaul(opts.store, opts.group_rank, opts.group_size, opts.timeout, backend_options)


def bounded_hook(
    deadline: float | str | None = "auto",
    code: str | None = None,
    ranks: Sequence[int] | None = None,
    options: Options | None = None,
) -> BoundedHook:
    """Makes a hook of DDP or FSDP2 that averages gradients by a deadline, with what has arrived.

        hook = longhaul.torch.bounded_hook()            # all ranks call it, after init_process_group()
        hook.register(model)                            # DistributedDataParallel, or after fully_shard()
        ...
        hook.steps[-1].missing_share                    # of the last backward pass

    deadline: seconds from the start of a reduction; "auto": learned from earlier ones; None: none, an
    all-reduce ends when no more data is expected. code: parity, "mds,k=32,m=2". ranks: as of new_group(), of
    which the hook makes one; at other ranks, the hook raises ValueError when it is used. options: of this
    group; with a `site`, only paths to other sites are bounded.

    Gradients are encoded (Hadamard): lost data are spread over a tensor, and a sum that lacks contributions
    is scaled. Where data is missing, ranks may get different averages, and replicas drift apart: average the
    parameters now and then (torch.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager).
    ValueError: deadline or code is invalid.
    """
    chosen = options or Options()
    bounded = {"reliability": reliability_of(deadline, code)}
    if chosen.site is None:
        chosen = dataclasses.replace(chosen, attr={**(chosen.attr or {}), **bounded})
    else:
        chosen = dataclasses.replace(chosen, attr_across={**(chosen.attr_across or {}), **bounded})
    return BoundedHook(dist.new_group(ranks, backend="longhaul", pg_options=chosen))


def hierarchical(
    intra: str = "gloo",
    inter: str = "longhaul",
    site: str | None = None,
    options: Options | None = None,
    timeout: datetime.timedelta | None = None,
) -> Any:
    """Makes a process group whose all-reduce uses one backend within each site, another between the sites.

        dist.init_process_group("gloo")                 # any backend
        group = longhaul.torch.hierarchical("gloo")     # all ranks call it; "nccl" where tensors are on GPUs
        model = DistributedDataParallel(model, process_group=group)

    A site reduces to its first rank; the first ranks all-reduce; each broadcasts the result in its site.
    Several all-reduces proceed at once. All other collectives are those of a longhaul group over all ranks,
    which knows the sites. intra, inter: backends that reduce the tensor's type. site: name of this rank's
    site; None: LONGHAUL_SITE. options: of the group between the sites, if its backend is "longhaul"; of the
    other group, its `settings`. timeout: as of new_group(), for each of the three steps.

    A rank that fails ends pending all-reduces at all ranks with an error; later ones are refused. Tensors of
    all-reduces that failed may be written later: make others. abort() ends those of its rank at once, and of
    other sites; of ranks of its own site by the timeout, if `intra` tells them nothing. ValueError: a rank
    has no site.
    """
    name = site or os.environ.get("LONGHAUL_SITE")
    rank, size = dist.get_rank(), dist.get_world_size()
    if getattr(dist.distributed_c10d._get_default_group(), "bound_device_id", None) is not None:
        raise ValueError("hierarchical: not possible after init_process_group(device_id=...) (leave it out)")
    store = dist.distributed_c10d._get_default_store()
    call = store.add(f"longhaul/hierarchical/{rank}", 1)
    exchange = Exchange(PrefixStore(f"longhaul/hierarchical/{call}", store), rank, size)
    sites = sites_of(exchange, name)
    chosen = dataclasses.replace(options or Options(), site=name)
    reducer, failed = None, None
    try:
        reducer = make_reducer(sites, intra, inter, chosen, timeout)
    except Exception as error:
        failed = error
    # A rank that fails alone must not leave the others waiting in the next group.
    texts = exchange(b"" if failed is None else (str(failed) or type(failed).__name__).encode())
    wrong = [f"rank {each}: {text.decode()}" for each, text in enumerate(texts) if text]
    try:
        if failed is not None:
            raise failed
        if wrong:
            raise RuntimeError(wrong[0])
        whole = _SiteOptions(site=name, settings=chosen.settings, reducer=reducer)
        return dist.new_group(None, timeout, "longhaul", pg_options=whole)
    except BaseException:
        if reducer is not None:
            reducer.cancel()
            reducer.close(False)
        raise


def register() -> None:
    """Registers the backend; importing this module does, too."""
    if "longhaul" not in dist.Backend.backend_list:
        dist.Backend.register_backend("longhaul", _create, extended_api=True, devices=["cpu", "cuda"])


register()
