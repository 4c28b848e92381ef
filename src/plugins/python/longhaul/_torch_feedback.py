"""Error feedback of bounded gradients: what did not arrive in one step is added to a later one.

Each rank gathers the others' gradients by an all-gather that ends by a deadline, and adds them itself. So it
knows which granules (1024 bytes) of which rank it lacks; in the next step all ranks tell each other, over the
reliable path. In the step after that the owner of a granule that some rank lacks adds it again to what it
sends, and the ranks that had it take it off again. So all replicas add the same numbers, some of them two
steps late, and drift apart by rounding alone. While a granule is missing it counts as 0.

The first step of a bucket is reliable, as DDP makes other buckets after it, by the order in which gradients
came: what is missing of one bucket has no place in another.

With the Hadamard transform, gradients are encoded for all of this: a granule that is late is a little of many
elements, in place of 256 whole ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from longhaul.planning import Hadamard

_GRANULE = 256  # elements: 1024 bytes, of which a bounded operation delivers all or nothing
_SEED = 0x6C6F6E67  # the same at all ranks


@dataclasses.dataclass
class Reliable:
    """Options of an operation for which the group's bound does not hold."""

    reliable: bool = True
    asyncOp: bool = True
    timeout: Any = None


@dataclasses.dataclass
class _Step:
    """A bucket of one backward pass: what came of each rank, as it was sent, and which granules did not."""

    came: torch.Tensor  # [rank, element]
    lacks: torch.Tensor  # [rank, granule], here
    ended: bool = False
    told: Any = None  # the work that gathers `lacks` of all ranks into:
    of_all: torch.Tensor | None = None  # [rank that lacks, rank, granule]


@dataclasses.dataclass
class _Bucket:
    parameters: Sequence[torch.Tensor]  # whose ids name it, and so stay theirs
    steps: list[_Step]  # the last two


class Feedback:
    """The state of a hook: of each bucket, which is its parameters in their order.

    hadamard, stride: of the transform; stride 0: the default.
    """

    def __init__(self, group: Any, hadamard: bool, stride: int) -> None:
        self._group = group
        self._transform = Hadamard("f32", stride=stride, seed=_SEED) if hadamard else None
        self._buckets: dict[tuple[int, ...], _Bucket] = {}

    def start(self, parameters: Sequence[torch.Tensor], gradients: torch.Tensor) -> tuple[Any, Any]:
        """Starts to average a bucket. Returns the work, and a function that returns the average after it.

        parameters: of the bucket, whose last step has ended.
        """
        size, rank, count = self._group.size(), self._group.rank(), gradients.numel()
        if gradients.dtype is not torch.float32:
            raise TypeError(f"gradients of {gradients.dtype}: no feedback (float32 only)")
        known = self._known(parameters)
        if known and not known[-1].ended:  # ranks no longer agree on what is late
            raise RuntimeError("bounded_hook: a reduction has failed (make another hook at all ranks)")
        sent = torch.zeros(-(-count // _GRANULE) * _GRANULE)
        sent[:count] = gradients
        if self._transform is not None:
            self._transform.encode(sent)
        sent, back = self._fed_back(known, sent)
        if known:
            self._tell(known[-1])
        options = None if known else Reliable()
        del known[:-1]  # before memory for this step is taken
        lacks = torch.zeros(size, sent.numel() // _GRANULE, dtype=torch.bool)
        step = _Step(sent.new_zeros((size, sent.numel())), lacks)
        known.append(step)
        work = self._group.all_gather_single(step.came.view(-1), sent, options)

        def finish() -> torch.Tensor:
            self._note_missing(step, work.missing_ranges)
            step.came[rank] = sent
            result: torch.Tensor = (step.came.sum(0) - back) / size
            if self._transform is not None:
                self._transform.decode(result)
            return result[:count]

        return work, finish

    def _known(self, parameters: Sequence[torch.Tensor]) -> list[_Step]:
        name = tuple(map(id, parameters))
        if name not in self._buckets:
            ours = set(name)
            for other in [each for each in self._buckets if not ours.isdisjoint(each)]:
                del self._buckets[other]  # DDP has made other buckets
            self._buckets[name] = _Bucket(parameters, [])
        return self._buckets[name].steps

    def _fed_back(self, known: list[_Step], sent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What is sent, with what ranks lack of the step before the last; and what had come of that here."""
        back = torch.zeros_like(sent)
        step = known[0] if len(known) == 2 else None
        if step is None or step.told is None:
            return sent, back
        step.told.wait()
        assert step.of_all is not None
        again = step.of_all.any(0)  # [rank, granule]
        parts = step.came.view(self._group.size(), -1, _GRANULE)
        sent = sent.view(-1, _GRANULE)
        mine = again[self._group.rank()]
        sent[mine] += parts[self._group.rank()][mine]
        had = again & ~step.lacks
        for owner in range(self._group.size()):
            back.view(-1, _GRANULE)[had[owner]] += parts[owner][had[owner]]
        return sent.view(-1), back

    def _tell(self, step: _Step) -> None:
        step.of_all = torch.empty((self._group.size(), *step.lacks.shape), dtype=torch.bool)
        step.told = self._group.all_gather_single(step.of_all.view(-1), step.lacks.view(-1), Reliable())

    def _note_missing(self, step: _Step, ranges: list[tuple[int, int]]) -> None:
        """ranges: (offset, bytes) of what is missing of all ranks' parts."""
        granules = step.lacks.view(-1)
        for offset, count in ranges:
            first, end = offset // (4 * _GRANULE), -(-(offset + count) // (4 * _GRANULE))
            granules[first:end] = True
        step.lacks[self._group.rank()] = False
        step.came.view(-1, _GRANULE)[granules] = 0  # also the rest of one that has come in part
        step.ended = True
