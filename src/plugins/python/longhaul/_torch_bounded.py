"""A hook of DDP and FSDP2 whose reductions of gradients end by a deadline (longhaul.torch.bounded_hook())."""

from __future__ import annotations

import collections
import dataclasses
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

from longhaul._torch_feedback import Feedback

_TYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class BoundedStep:
    """What the reductions of one backward pass did without.

    bytes: of the gradients that this rank reduced, or of its shard. missing_bytes: of their encoded sums,
    that lack a contribution at this rank.
    failed_buckets: reductions that failed; their bytes are not counted.
    """

    bytes: int
    missing_bytes: int
    failed_buckets: int = 0

    @property
    def missing_share(self) -> float:
        return self.missing_bytes / self.bytes if self.bytes else 0.0


class _Pass:
    """A backward pass whose reductions end in any order."""

    def __init__(self, task: int = -1) -> None:
        self.pending = self.bytes = self.missing = self.failed = 0
        self.complete = False  # the last one has started
        self.task = task  # autograd's number of the pass


class BoundedHook:
    """Averages gradients with the reliability `bounded`: made by longhaul.torch.bounded_hook().

    steps: a BoundedStep for each backward pass that has ended, of the last 1000.
    """

    # DDP reads annotations, which are text here.
    __signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("state", "bucket")]
    )

    def __init__(self, group: Any, feedback: Feedback | None = None) -> None:
        self.__name__ = self.__qualname__ = "bounded_hook"  # as of a function: DDP logs them
        self.group = group
        self._feedback = feedback
        self.steps: collections.deque[BoundedStep] = collections.deque(maxlen=1000)
        self._lock = threading.Lock()
        self._pass = _Pass()  # of DDP
        self._open: _Pass | None = None  # of FSDP2

    def register(self, model: torch.nn.Module) -> None:
        """Makes a model reduce its gradients by this hook.

        model: DistributedDataParallel; or one after fully_shard(). Modules whose shards belong to the hook's
        ranks get a reduce-scatter that ends by the deadline, and gather parameters as before. Where the
        hook's ranks have the same shard in several groups, one a site, shards are averaged over them after
        each reduce-scatter. TypeError: another model; also with a mesh of two dimensions (HSDP) or
        replicate(), whose replicas torch averages itself. ValueError: other ranks.
        """
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model.register_comm_hook(None, self)
            return
        if self._feedback is not None:
            raise TypeError(f"{type(model).__name__}: no feedback (DistributedDataParallel has)")
        sharded: list[Any] = [each for each in model.modules() if hasattr(each, "set_custom_reduce_scatter")]
        if not sharded:
            raise TypeError(
                f"{type(model).__name__}: not supported (DistributedDataParallel, or a module after "
                "fully_shard(), which takes a reduce-scatter since torch 2.9)"
            )
        self._check_member()
        ours = dist.get_process_group_ranks(self.group)
        hooks: list[tuple[Callable[[Any], None], Any]] = []
        for module in sharded:
            for part in _parameter_groups(module):
                if getattr(part.mesh_info, "replicate_process_group", None) is not None:
                    raise TypeError(
                        f"{type(module).__name__}: torch averages its replicas (shard by a mesh of one "
                        "dimension, within each site)"
                    )
                theirs = dist.get_process_group_ranks(part.mesh_info.shard_process_group)
                if theirs == ours:
                    hooks.append((module.set_custom_reduce_scatter, _ReduceScatter(self)))
                elif set(theirs) & set(ours) == {dist.get_rank()}:
                    hooks.append((module.set_all_reduce_hook, self.average))
                else:
                    raise ValueError(f"model sharded over ranks {theirs}, a hook of {ours}: not the same")
        for register, hook in hooks:  # a model that is refused stays as it is
            register(hook)

    def average(self, tensor: torch.Tensor) -> None:
        """Averages a contiguous tensor over the hook's ranks, in place, and waits for it.

        Outside of a backward pass, as for an outer step of DiLoCo, each call adds a BoundedStep.
        """
        if self._feedback is not None:
            raise TypeError("average: no feedback (make a hook without)")
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp(dist.ReduceOp.AVG)
        options.asyncOp = False
        self._check(tensor)
        self._reduced(tensor, lambda: self.group.allreduce([tensor], options))

    def _reduced(self, result: torch.Tensor, start: Callable[[], Any]) -> None:
        """Counts a reduction for the backward pass in which it is called, or alone outside of one."""
        task: int = torch._C._current_graph_task_id()  # -1: outside
        with self._lock:
            current = self._open
            if current is None or current.task != task:  # another that is open has failed
                current = _Pass(task)
            first = current is not self._open
            self._open = current
            current.pending += 1
        if task < 0:
            self._complete(current)
        elif first:
            torch.autograd.Variable._execution_engine.queue_callback(lambda: self._complete(current))
        try:
            work = start()
        except BaseException:
            self._complete(current)  # the backward pass ends here
            self._ended(current, None, 0)
            raise
        self._ended(current, result.numel() * result.element_size(), work.missing_bytes)

    def _check_member(self) -> None:
        if not isinstance(self.group, dist.ProcessGroup):
            raise ValueError("bounded_hook: this rank is not among its ranks (pass those that train)")

    def _check(self, gradients: torch.Tensor) -> None:
        self._check_member()
        if gradients.dtype not in _TYPES:
            raise TypeError(f"gradients of {gradients.dtype}: not supported (float32, float16 or bfloat16)")

    def __call__(self, state: object, bucket: Any) -> Future[torch.Tensor]:
        """The hook of DDP: model.register_comm_hook(None, hook), or register(model)."""
        tensor: torch.Tensor = bucket.buffer()
        self._check(tensor)
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp(dist.ReduceOp.AVG)
        with self._lock:
            if bucket.index() == 0:
                self._pass = _Pass()
            current = self._pass
            current.pending += 1
            current.complete = bucket.is_last()
        size, average = tensor.numel() * tensor.element_size(), None
        work: Any
        try:
            if self._feedback is None:
                work = self.group.allreduce([tensor], options)
            else:
                work, average = self._feedback.start(bucket.parameters(), tensor)
                size = 4 * tensor.numel() * (self.group.size() - 1)
        except BaseException:
            self._ended(current, None, 0)
            raise

        def reduced(future: Any) -> torch.Tensor:
            try:
                result: torch.Tensor = future.value()[0]  # raises what the operation failed with
                if average is not None:
                    result = average()
            except BaseException:
                self._ended(current, None, 0)
                raise
            self._ended(current, size, work.missing_bytes)
            return result

        future: Future[torch.Tensor] = work.get_future().then(reduced)
        return future

    def _ended(self, of: _Pass, size: int | None, missing: int) -> None:
        """A reduction has ended. size: None: it failed."""
        with self._lock:
            of.pending -= 1
            if size is None:
                of.failed += 1
            else:
                of.bytes += size
                of.missing += missing
            self._note(of)

    def _complete(self, of: _Pass) -> None:
        """No further reduction starts in this pass."""
        with self._lock:
            if self._open is of:
                self._open, of.complete = None, True
                self._note(of)

    def _note(self, of: _Pass) -> None:
        if of.complete and of.pending == 0:
            self.steps.append(BoundedStep(of.bytes, of.missing, of.failed))


def _parameter_groups(module: Any) -> list[Any]:
    """What FSDP2 reduces together: in early releases, of torch 2.9 for example, one group of a module."""
    state = module._get_fsdp_state()
    if hasattr(state, "_fsdp_param_groups"):
        return list(state._fsdp_param_groups)
    return [state._fsdp_param_group] if state._fsdp_param_group else []


class _ReduceScatter:
    """The reduce-scatter of an FSDPModule (torch.distributed.fsdp.ReduceScatter)."""

    def __init__(self, hook: BoundedHook) -> None:
        self._hook = hook

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: Any,
        op: Any,
        async_op: bool = False,
    ) -> None:
        hook = self._hook
        hook._check(input_tensor)
        options = dist.ReduceScatterOptions()
        options.reduceOp = op
        options.asyncOp = False
        hook._reduced(
            output_tensor, lambda: hook.group.reduce_scatter_single(output_tensor, input_tensor, options)
        )


def reliability_of(deadline: float | str | None, code: str | None) -> str:
    """The text of a reliability, "bounded:deadline=20ms,code=mds,k=32,m=8"."""
    if isinstance(deadline, str) and deadline != "auto":
        raise ValueError(f'deadline "{deadline}": invalid ("auto", seconds, or None)')
    if isinstance(deadline, (int, float)) and not deadline > 0:
        raise ValueError(f"deadline {deadline}: out of range (above 0 s)")
    parts = []
    if deadline is None:
        parts.append("deadline=none")
    elif not isinstance(deadline, str):
        parts.append(f"deadline={round(float(deadline) * 1e6)}us")
    if code is not None:
        parts.append(f"code={code}")
    return "bounded" + (":" + ",".join(parts) if parts else "")
