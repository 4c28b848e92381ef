"""A communication hook of DDP whose all-reduces end by a deadline (longhaul.torch.bounded_hook())."""

from __future__ import annotations

import collections
import dataclasses
import inspect
import threading
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

_TYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class BoundedStep:
    """What the buckets of one backward pass did without.

    bytes: of gradients. missing_bytes: of their encoded sums, that lack a contribution at this rank.
    failed_buckets: whose all-reduces failed; their bytes are not counted.
    """

    bytes: int
    missing_bytes: int
    failed_buckets: int = 0

    @property
    def missing_share(self) -> float:
        return self.missing_bytes / self.bytes if self.bytes else 0.0


class _Pass:
    """A backward pass whose buckets end in any order."""

    def __init__(self) -> None:
        self.pending = self.bytes = self.missing = self.failed = 0
        self.complete = False  # the last bucket has started


class BoundedHook:
    """Averages gradients with the reliability `bounded`: made by longhaul.torch.bounded_hook().

    steps: a BoundedStep for each backward pass that has ended, of the last 1000.
    """

    # DDP reads annotations, which are text here.
    __signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("state", "bucket")]
    )

    def __init__(self, group: Any) -> None:
        self.__name__ = self.__qualname__ = "bounded_hook"  # as of a function: DDP logs them
        self.group = group
        self.steps: collections.deque[BoundedStep] = collections.deque(maxlen=1000)
        self._lock = threading.Lock()
        self._pass = _Pass()

    def __call__(self, state: object, bucket: Any) -> Future[torch.Tensor]:
        """The hook: model.register_comm_hook(None, hook)."""
        if not isinstance(self.group, dist.ProcessGroup):
            raise ValueError("bounded_hook: this rank is not among its ranks (pass those that train)")
        tensor: torch.Tensor = bucket.buffer()
        if tensor.dtype not in _TYPES:
            raise TypeError(f"gradients of {tensor.dtype}: not supported (float32, float16 or bfloat16)")
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp(dist.ReduceOp.AVG)
        with self._lock:
            if bucket.index() == 0:
                self._pass = _Pass()
            current = self._pass
            current.pending += 1
            current.complete = bucket.is_last()
        try:
            work: Any = self.group.allreduce([tensor], options)
        except BaseException:
            self._ended(current, None, 0)
            raise
        size = tensor.numel() * tensor.element_size()

        def reduced(future: Any) -> torch.Tensor:
            try:
                result: torch.Tensor = future.value()[0]  # raises what the operation failed with
            except BaseException:
                self._ended(current, None, 0)
                raise
            self._ended(current, size, work.missing_bytes)
            return result

        future: Future[torch.Tensor] = work.get_future().then(reduced)
        return future

    def _ended(self, of: _Pass, size: int | None, missing: int) -> None:
        """A bucket has ended. size: None: it failed."""
        with self._lock:
            of.pending -= 1
            if size is None:
                of.failed += 1
            else:
                of.bytes += size
                of.missing += missing
            if of.complete and of.pending == 0:
                self.steps.append(BoundedStep(of.bytes, of.missing, of.failed))


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
