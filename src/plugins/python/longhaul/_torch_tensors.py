"""Tensors of torch as memory of the library: types and reductions, contiguous copies, joined and split
parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from longhaul._native import ffi, lib
from longhaul._torch_works import Finish

Tensors = Sequence[torch.Tensor]

# ---- types and reductions ----------------------------------------------------------------------------------

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
KIND: Any = dist.ReduceOp.RedOpType
_Pair = tuple[torch.dtype, Any]  # a tensor's type, and a RedOpType


def _direct() -> dict[_Pair, tuple[int, int]]:
    """What the library reduces as it is, with its type and its reduction."""
    sums = {KIND.SUM: lib.LH_SUM, KIND.PRODUCT: lib.LH_PROD}
    bits = {KIND.BAND: lib.LH_BAND, KIND.BOR: lib.LH_BOR, KIND.BXOR: lib.LH_BXOR}
    ordered = {KIND.MIN: lib.LH_MIN, KIND.MAX: lib.LH_MAX}
    any_of, all_of = lib.LH_BOR, lib.LH_BAND  # of booleans
    logical = {KIND.SUM: any_of, KIND.MAX: any_of, KIND.PRODUCT: all_of, KIND.MIN: all_of}
    # Sums, products and bits of integers are the same with a sign and without.
    by_bytes = {2: lib.LH_I16, 4: lib.LH_I32, 8: lib.LH_I64}
    found = {(torch.bool, op): (lib.LH_U8, reduction) for op, reduction in {**logical, **bits}.items()}
    for kind, element in _ELEMENTS.items():
        averages = {} if kind in _NARROW else {KIND.AVG: lib.LH_AVG}
        integer = {} if kind.is_floating_point else bits
        for op, reduction in {**sums, **ordered, **averages, **integer}.items():
            found[kind, op] = (element, reduction)
    for kind in _UNSIGNED:
        for op, reduction in {**sums, **bits}.items():
            found[kind, op] = (by_bytes[kind.itemsize], reduction)
    return found


def _widened() -> dict[_Pair, torch.dtype]:
    """What is reduced in a wider type."""
    found = {(kind, KIND.AVG): torch.int32 for kind in _NARROW}
    for kind in _UNSIGNED:
        if kind.itemsize < 8:
            found.update({(kind, op): torch.int64 for op in (KIND.MIN, KIND.MAX, KIND.AVG)})
    return found


DIRECT = _direct()
_WIDENED = _widened()


# ---- tensors -----------------------------------------------------------------------------------------------


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without its graph. NotImplementedError: it is sparse."""
    if tensor.layout is not torch.strided:
        raise NotImplementedError(f"tensor of layout {tensor.layout}: not supported (call to_dense() first)")
    return tensor.detach()


def contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a contiguous copy on the CPU."""
    tensor = strided(tensor)
    return tensor.contiguous() if tensor.device.type == "cpu" else tensor.cpu().contiguous()


def address_of(tensor: torch.Tensor) -> Any:
    return ffi.cast("void *", tensor.data_ptr())


def byte_size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def copy_back(tensor: torch.Tensor, staged: torch.Tensor) -> Finish | None:
    """Copies a staged output to where it belongs; None: it is there."""
    if staged.data_ptr() == tensor.data_ptr() and staged.device == tensor.device:
        return None
    return lambda: copied(tensor, staged)


def copied(tensor: torch.Tensor, staged: torch.Tensor) -> None:
    tensor.detach().copy_(staged.view(tensor.shape))
    if tensor.device.type == "cuda":
        torch.cuda.current_stream(tensor.device).synchronize()


def join(tensors: Tensors) -> torch.Tensor:
    """All elements in one contiguous tensor."""
    return torch.cat([contiguous(tensor).reshape(-1) for tensor in tensors])


def split_into(tensors: Tensors, joined: torch.Tensor) -> None:
    at = 0
    for tensor in tensors:
        copied(tensor, joined[at : at + tensor.numel()])
        at += tensor.numel()


def counts_of(sizes: Iterable[int]) -> Any:
    return ffi.new("size_t[]", list(sizes))


def check_types(given: torch.dtype, others: Iterable[torch.Tensor]) -> None:
    """ValueError: a tensor has another type. The library gets addresses and sizes only."""
    for other in others:
        if other.dtype != given:
            raise ValueError(f"tensors of {given} and {other.dtype}: expected equal types (convert one)")


def only_one(tensors: Tensors) -> torch.Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors: invalid number (1; one process has one device)")
    return tensors[0]


@dataclasses.dataclass
class Plan:
    """A reduction in the library's types. given: the elements; kind, op: of the library."""

    given: torch.Tensor
    kind: int
    op: int
    back: Callable[[torch.Tensor], torch.Tensor] | None = None  # from reduced elements to the tensor's


# Of unsigned numbers: their order is that of signed ones with this bit flipped.
_FLIP = torch.iinfo(torch.int64).min


def premultiplied(tensor: torch.Tensor, reduce_op: Any) -> torch.Tensor:
    """By the factor of a PREMUL_SUM, which may be a tensor of a wider type."""
    product: torch.Tensor = tensor * reduce_op.__getstate__()[1]
    return product.to(tensor.dtype)


def planned(tensor: torch.Tensor, reduce_op: Any) -> Plan:
    """Maps a reduction of a contiguous tensor. NotImplementedError: there is none for its type."""
    op = getattr(reduce_op, "op", reduce_op)
    kind = tensor.dtype
    if op == KIND.PREMUL_SUM:
        return planned(premultiplied(tensor, reduce_op), KIND.SUM)
    if (kind, op) in DIRECT:
        return Plan(tensor, *DIRECT[kind, op])
    if (kind, op) in _WIDENED:
        plan = planned(tensor.to(_WIDENED[kind, op]), op)
        return dataclasses.replace(plan, back=lambda t: t.to(kind))
    if kind is getattr(torch, "uint64", None) and op in (KIND.MIN, KIND.MAX):
        plan = planned(tensor.view(torch.int64) ^ _FLIP, op)
        return dataclasses.replace(plan, back=lambda t: (t ^ _FLIP).view(kind))
    if kind.is_complex and op in (KIND.SUM, KIND.AVG):
        plan = planned(torch.view_as_real(tensor), op)
        return dataclasses.replace(plan, back=torch.view_as_complex)
    raise NotImplementedError(f"{op} of {kind}: not supported (convert the tensor, for example to float32)")


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    first, second = one.data_ptr(), other.data_ptr()
    return first < second + byte_size(other) and second < first + byte_size(one)


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor as a flat tensor of bytes."""
    return contiguous(tensor).reshape(-1).view(torch.uint8)


def split_bytes(tensors: Tensors, joined: torch.Tensor) -> None:
    at = 0
    for tensor in tensors:
        part = joined[at : at + byte_size(tensor)].clone()  # aligned for the tensor's type
        at += byte_size(tensor)
        if part.numel():
            copied(tensor, part.view(tensor.dtype))


def parts_of(output: torch.Tensor, size: int) -> list[torch.Tensor]:
    """A gathered tensor in parts, one a rank."""
    if not output.is_contiguous():
        raise ValueError("output: not contiguous (pass a contiguous tensor to a coalesced all-gather)")
    return list(output.detach().reshape(-1).chunk(size)) if output.numel() else [output] * size
