"""The C library: loading, errors, attributes of its structs, and buffers without copies.

Every other module of the package calls the library through `lib` and `ffi` of this one. cffi releases the GIL
in each call, so a thread that waits in the library blocks no other.
"""

from __future__ import annotations

import ctypes
import math
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

from longhaul._ffi import ffi as _ffi

ffi: Any = _ffi
NO_LIMIT = 2**64 - 1  # LH_TIME_NEVER


# ---- errors ------------------------------------------------------------------------------------------------


class LonghaulError(RuntimeError):
    """A call or an operation failed. The text is the library's: cause and remedy.

    code: number of the error, as in `lh_strerror(3)`, positive: 12. name: "LH_ETIMEDOUT". rank: the rank of a
    group that caused it, a missing one for example; None: none.
    """

    def __init__(self, code: int, text: str, rank: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.name = _names.get(code, f"LH_E{code}")
        self.rank = rank

    def __reduce__(self) -> Any:
        return type(self), (self.code, str(self), self.rank)  # to another process


class RankFailed(LonghaulError):
    """A rank of a group has failed or left. rank: its number in the group."""


class TimedOut(LonghaulError, TimeoutError):
    """The time limit of a call, or the deadline of an operation, has passed."""


class Canceled(LonghaulError):
    """The operation was canceled, by this side or by a peer."""


def _library_folder() -> pathlib.Path:
    """The folder with the libraries: that of LONGHAUL_LIBRARY, else the package's."""
    return pathlib.Path(os.environ.get("LONGHAUL_LIBRARY") or pathlib.Path(__file__).parent)


def _load() -> Any:
    declared = ffi.dlopen(None)  # constants only
    version = f"{declared.LH_VERSION_MAJOR}.{declared.LH_VERSION_MINOR}"
    path = _library_folder() / f"liblonghaul.so.{version}"
    try:
        # Its threads may run when the interpreter ends: it stays where it is.
        loaded = ffi.dlopen(str(path), ffi.RTLD_NOW | ffi.RTLD_NODELETE)
    except OSError as error:
        raise ImportError(
            f"{path}: {error} (install the package again with pip, or set LONGHAUL_LIBRARY to the folder "
            f"that contains liblonghaul.so.{version})"
        ) from None
    found = ffi.string(loaded.lh_version()).decode()
    if not found.startswith(version + "."):
        raise ImportError(
            f"{path}: version {found}, the package needs {version} (install both from one release)"
        )
    return loaded


def nccl_plugin_path() -> str:
    """The file of NCCL's network plugin, for the variable NCCL_NET_PLUGIN."""
    path = _library_folder() / "libnccl-net-longhaul.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing (install the package again with pip)")
    return str(path)


lib: Any = _load()
_names: dict[int, str] = {number: name for number, name in ffi.typeof("enum lh_error").elements.items()}


def last_error(code: int) -> LonghaulError:
    """The exception for a negative code that a call of this thread has returned."""
    return failure(code, ffi.string(lib.lh_last_error()).decode(errors="replace") or describe(code))


def failure(code: int, text: str, rank: int | None = None) -> LonghaulError:
    """The exception for a code, negative or positive. rank: the one that caused it, if any."""
    kinds: dict[int, type[LonghaulError]] = {lib.LH_ETIMEDOUT: TimedOut, lib.LH_ECANCELED: Canceled}
    if rank is not None:
        kinds |= {lib.LH_EPEER: RankFailed, lib.LH_ECLOSED: RankFailed}
    return kinds.get(abs(code), LonghaulError)(abs(code), text, rank)


def describe(code: int) -> str:
    """The library's text for a code."""
    return str(ffi.string(lib.lh_strerror(code)).decode())


def check(code: int) -> int:
    """Returns a result that is not negative; raises LonghaulError for another."""
    if code < 0:
        raise last_error(code)
    return code


# ---- attributes --------------------------------------------------------------------------------------------


def nanoseconds(seconds: float | None) -> int:
    """A time limit in the library's unit. None or infinity: no limit."""
    if seconds is None or seconds == math.inf:
        return NO_LIMIT
    if not seconds >= 0:
        raise ValueError(f"timeout {seconds}: out of range (0 or more seconds, or None for no limit)")
    return min(int(seconds * 1e9), NO_LIMIT - 1)


_SLICE = 0.2  # seconds


def sliced(call: Callable[[int], int], timeout: float | None) -> int:
    """Calls call(nanoseconds), which waits for that time at most, until it does not return -LH_ETIMEDOUT, or
    `timeout` seconds have passed. Ctrl-C acts between two calls.
    """
    nanoseconds(timeout)  # refuses what is no time
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _SLICE if end is None else min(_SLICE, max(0.0, end - time.monotonic()))
        code = call(nanoseconds(left))
        if code != -lib.LH_ETIMEDOUT or (end is not None and time.monotonic() >= end):
            return code


def text(pointer: Any) -> str:
    """A C string; "" for NULL."""
    return "" if pointer == ffi.NULL else str(ffi.string(pointer).decode(errors="replace"))


def set_fields(struct: Any, settings: dict[str, Any], keep: list[Any]) -> None:
    """Sets fields of a C struct from keyword arguments; keep holds the memory that the struct points to.

    A name is that of the field; or, for a field NAME_ns, also NAME with a value in seconds. A `struct
    lh_link_spec` takes its text. None leaves the default. TypeError: no such field; the message lists all.
    """
    fields = dict(ffi.typeof(struct).item.fields)
    for name, value in settings.items():
        if value is None:
            continue
        if name not in fields and name + "_ns" in fields:
            name, value = name + "_ns", nanoseconds(value)
        if name not in fields or name == "struct_bytes":
            known = ", ".join(n.removesuffix("_ns") for n in fields if n != "struct_bytes")
            raise TypeError(f"{name}: unknown setting (known: {known})")
        kind = fields[name].type
        if kind.cname == "struct lh_link_spec":
            check(lib.lh_link_parse(str(value).encode(), ffi.addressof(struct, name)))
            continue
        if kind.cname == "char *" and isinstance(value, (str, os.PathLike)):
            value = ffi.new("char[]", os.fsencode(value))
            keep.append(value)
        try:
            setattr(struct, name, value)
        except (OverflowError, TypeError) as error:
            raise type(error)(f"{name}: {error}") from None


def fields_of(struct: Any) -> dict[str, Any]:
    """The fields of a struct as a dict of numbers, texts and dicts; without pointers."""
    found: dict[str, Any] = {}
    kind = ffi.typeof(struct)
    for name, field in (kind.item if kind.kind == "pointer" else kind).fields:
        value = getattr(struct, name)
        if field.type.kind == "primitive" or field.type.kind == "enum":
            found[name] = value
        elif field.type.kind == "struct":
            found[name] = fields_of(value)
        elif field.type.cname.startswith("char"):
            found[name] = text(value)
    return found


# ---- buffers -----------------------------------------------------------------------------------------------

# The type of an element, by the kind of its format in the buffer protocol and its bytes ("l" has 4 or 8), and
# by DLPack's code and bits.
_KINDS = {"e": "f", "f": "f", "d": "f", "b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "B": "u"}
_TYPES_OF_KINDS = {
    ("f", 2): "f16",
    ("f", 4): "f32",
    ("f", 8): "f64",
    ("i", 1): "i8",
    ("i", 2): "i16",
    ("i", 4): "i32",
    ("i", 8): "i64",
    ("u", 1): "u8",
}
_FOREIGN_ORDER = ">!" if sys.byteorder == "little" else "<"
_DLPACK_TYPES = {
    (2, 32): "f32",
    (2, 64): "f64",
    (2, 16): "f16",
    (4, 16): "bf16",
    (0, 8): "i8",
    (0, 16): "i16",
    (0, 32): "i32",
    (0, 64): "i64",
    (1, 8): "u8",
}
_DLPACK_CPU = (1, 3)  # kDLCPU, kDLCUDAHost

TYPES: dict[str, int] = {}
for _number in range(lib.LH_TYPES):
    TYPES[text(lib.lh_type_name(_number))] = _number
REDUCTIONS: dict[str, int] = {}
for _number in range(lib.LH_REDUCTIONS):
    REDUCTIONS[text(lib.lh_reduction_name(_number))] = _number

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def element_type(form: str, size: int) -> str | None:
    """The type of elements of `size` bytes with a format of the buffer protocol; None: it has no name."""
    if form and form[0] in _FOREIGN_ORDER:
        return None
    return _TYPES_OF_KINDS.get((_KINDS.get(form.lstrip("@=<>!"), ""), size))


class Buffer:
    """Contiguous memory of another object, not copied; the object stays referenced as long as this one.

    Takes the buffer protocol (bytes, bytearray, memoryview, array, numpy) and DLPack on the CPU (torch, jax).
    address: cdata of a `void *`. bytes: its length. type: name of the elements' type, "f32"; None: other
    elements. BufferError: read-only memory that is to be written, or memory that is not contiguous.
    """

    __slots__ = ("_keep", "address", "bytes", "type")

    def __init__(self, source: Any, writable: bool) -> None:
        self.type: str | None = None
        try:
            view = memoryview(source)
        except (TypeError, ValueError, BufferError):
            if not hasattr(source, "__dlpack__"):
                raise TypeError(
                    f"{type(source).__name__}: not a buffer (bytearray, numpy array, or an object with "
                    "__dlpack__)"
                ) from None
            self._from_dlpack(source, writable)
            return
        if writable and view.readonly:
            raise BufferError(
                f"{type(source).__name__}: read-only, but the operation writes it (pass a bytearray or a "
                "writable array)"
            )
        if not view.c_contiguous:
            raise BufferError(
                f"{type(source).__name__} of shape {view.shape}: not contiguous (pass a contiguous copy)"
            )
        # cffi takes contiguous memory of bytes; a 0-dimensional or typed view is cast first.
        self._keep: Any = ffi.from_buffer("char[]", view, require_writable=writable)
        self.address: Any = ffi.cast("void *", self._keep)
        self.bytes: int = view.nbytes
        self.type = element_type(view.format, view.itemsize)

    def _from_dlpack(self, source: Any, writable: bool) -> None:
        device = source.__dlpack_device__()[0]
        if int(device) not in _DLPACK_CPU:
            raise BufferError(
                f"{type(source).__name__}: on device type {int(device)}, not in the CPU's memory (copy it "
                "to the CPU first)"
            )
        try:
            capsule = source.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = source.__dlpack__()
        versioned = '"dltensor_versioned"' in repr(capsule)
        name = b"dltensor_versioned" if versioned else b"dltensor"
        kind = "lh_dl_versioned *" if versioned else "lh_dl_managed *"
        managed = ffi.cast(kind, _capsule_pointer(capsule, name))
        tensor = managed.tensor
        if writable and versioned and managed.flags & 1:
            raise BufferError(f"{type(source).__name__}: read-only, but the operation writes it")
        shape = [tensor.shape[i] for i in range(tensor.ndim)]
        step = 1
        if tensor.strides != ffi.NULL and 0 not in shape:
            for i in reversed(range(tensor.ndim)):
                if shape[i] != 1 and tensor.strides[i] != step:
                    raise BufferError(
                        f"{type(source).__name__} of shape {tuple(shape)}: not contiguous (pass a "
                        "contiguous copy)"
                    )
                step *= shape[i]
        # The capsule is not consumed: it frees the tensor's description when it is collected.
        self._keep = (capsule, source)
        self.address = ffi.cast("char *", tensor.data) + tensor.byte_offset
        self.bytes = math.prod(shape) * ((tensor.bits * tensor.lanes + 7) // 8)
        self.type = _DLPACK_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None


def type_number(name: str | None, *buffers: Buffer | None) -> int:
    """The number of an element type: of the given name, else that of the buffers."""
    for buffer in buffers:
        if name is None and buffer is not None:
            name = buffer.type
    if name not in TYPES:
        given = "the buffer's elements" if name is None else repr(name)
        raise ValueError(f"type: {given}: unknown type (type= one of {', '.join(TYPES)})")
    return TYPES[name]


def count_of(buffer: Buffer, number: int) -> int:
    """The number of elements of a buffer; ValueError: not a whole number."""
    size = int(lib.lh_type_bytes(number))
    if buffer.bytes % size:
        raise ValueError(f"buffer of {buffer.bytes} bytes: not a whole number of elements of {size} bytes")
    return buffer.bytes // size
