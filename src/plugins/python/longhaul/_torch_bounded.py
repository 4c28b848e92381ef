"""A communication hook of DDP whose all-reduces end by a deadline (longhaul.torch.bounded_hook())."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

_TYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class BoundedStep:
    """What the buckets of one backward pass did without.

    bytes: of gradients. missing_bytes: of their encoded sums, that lack a contribution at this rank.
    """

    bytes: int
    missing_bytes: int

    @property
    def missing_share(self) -> float:
        return self.missing_bytes / self.bytes if self.bytes else 0.0


class BoundedHook:
    """Averages gradients with the reliability `bounded`: made by longhaul.torch.bounded_hook().

    steps: a BoundedStep for each backward pass that has ended.
    """

    # DDP reads annotations, which are text here.
    __signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("state", "bucket")]
    )

    def __init__(self, group: Any) -> None:
        self.__name__ = self.__qualname__ = "bounded_hook"  # as of a function: DDP logs them
        self.group = group
        self.steps: list[BoundedStep] = []
        self._bytes = self._missing = 0

    def __call__(self, state: object, bucket: Any) -> Future[torch.Tensor]:
        """The hook: model.register_comm_hook(None, hook)."""
        tensor: torch.Tensor = bucket.buffer()
        if tensor.dtype not in _TYPES:
            raise TypeError(f"gradients of {tensor.dtype}: not supported (float32, float16 or bfloat16)")
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp(dist.ReduceOp.AVG)
        work = self.group.allreduce([tensor], options)
        size, last = tensor.numel() * tensor.element_size(), bucket.is_last()

        def reduced(future: Any) -> torch.Tensor:
            result: torch.Tensor = future.value()[0]  # raises what the operation failed with
            self._bytes += size
            self._missing += work.missing_bytes
            if last:
                self.steps.append(BoundedStep(self._bytes, self._missing))
                self._bytes = self._missing = 0
            return result

        future: Future[torch.Tensor] = work.get_future().then(reduced)
        return future


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
