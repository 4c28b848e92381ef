"""What to expect of a link: the model, the planner, the probe, and the Hadamard transform of tensors.

    import longhaul
    longhaul.predict("ec:mds,k=32,m=8", size="128MiB", bandwidth="400Gbit", rtt="25ms", loss=1e-5)["mean_s"]
    longhaul.plan(size="128MiB", bandwidth="400Gbit", rtt="25ms", loss=1e-5)["scheme"]

Sizes, rates and times are numbers (bytes, bit/s, seconds) or texts ("128MiB", "400Gbit", "25ms").
"""

from __future__ import annotations

from typing import Any

from longhaul._native import (
    Buffer,
    check,
    count_of,
    ffi,
    fields_of,
    lib,
    nanoseconds,
    set_fields,
    text,
    type_number,
)
from longhaul._pending import Closes

_HADAMARD_TYPES = {"f32": 1, "bf16": 2, "f16": 3}
_MEASURES = {"mean": 0, "p50": 1, "p99": 2, "p999": 3}


def _number(value: float | str, parse: str) -> float:
    if not isinstance(value, str):
        return value
    found = ffi.new("double *" if parse == "ratio" else "uint64_t *")
    check(getattr(lib, f"lh_parse_{parse}")(value.encode(), found))
    return found[0] / 1e9 if parse == "time" else float(found[0])


def _path(path: Any, bandwidth: float | str, rtt: float | str, loss: float | str, burst: float) -> None:
    path.bandwidth_bps = _number(bandwidth, "rate")
    path.rtt_s = _number(rtt, "time")
    path.loss = _number(loss, "ratio")
    path.burst_packets = burst


def _scheme(scheme: str) -> Any:
    found = ffi.new("struct lh_model_scheme *")
    check(lib.lh_model_scheme_parse(scheme.encode(), found))
    return found


def predict(
    scheme: str,
    *,
    size: int | str,
    bandwidth: float | str,
    rtt: float | str,
    loss: float | str,
    burst: float = 0,
    mtu: int = 4096,
    chunk: int = 4096,
) -> dict[str, float]:
    """Predicts completion time and cost of a message: mean_s, p50_s, p99_s, p999_s, ideal_s, overhead_bytes,
    ...

    burst: mean burst length in packets; mtu: payload of a packet, chunk: of a bit of the bitmap, in bytes.

    >>> times = predict("sr-nack", size="1MiB", bandwidth="10Gbit", rtt="25ms", loss=0)
    >>> round(times["ideal_s"], 4)
    0.0258
    """
    path, times = ffi.new("struct lh_model_path *"), ffi.new("struct lh_model_times *")
    _path(path, bandwidth, rtt, loss, burst)
    path.message_bytes, path.mtu_bytes, path.chunk_bytes = int(_number(size, "size")), mtu, chunk
    check(lib.lh_model_predict(path, _scheme(scheme), times))
    return fields_of(times)


def plan(
    *,
    size: int | str,
    bandwidth: float | str,
    rtt: float | str,
    loss: float | str,
    burst: float = 0,
    by: str = "mean",
    max_overhead: float | None = None,
) -> dict[str, Any]:
    """Recommends the fastest scheme for messages of one size over a link.

    by: the measure to minimize, "mean", "p50", "p99" or "p999". max_overhead: maximum share of parity and
    retransmissions. Returns scheme (as in reliability=), chunk_bytes, seconds, times_ideal, overhead, cores,
    and `reasons`, a text. ValueError: no scheme is within the limit.

    >>> plan(size="128MiB", bandwidth="400Gbit", rtt="25ms", loss=0)["times_ideal"] < 1.1
    True
    """
    if by not in _MEASURES:
        raise ValueError(f"by {by!r}: unknown measure ({', '.join(_MEASURES)})")
    question, made = ffi.new("struct lh_plan_question *"), ffi.new("struct lh_plan *")
    lib.lh_plan_init(question)
    _path(question.link, bandwidth, rtt, loss, burst)
    question.sizes[0].message_bytes, question.sizes[0].weight = int(_number(size, "size")), 1
    question.sizes_count, question.by = 1, _MEASURES[by]
    if max_overhead is not None:
        question.max_overhead = max_overhead
    check(lib.lh_plan_make(question, made))
    reasons = ffi.new("char[]", lib.LH_PLAN_VERDICT_MAX)
    lib.lh_plan_verdict(question, made, reasons, lib.LH_PLAN_VERDICT_MAX)
    if made.best == lib.LH_PLAN_NONE:
        raise ValueError(f"no scheme is within the limit: {text(reasons)}")
    choice = made.choices[made.best]
    name = ffi.new("char[]", lib.LH_MODEL_SCHEME_TEXT_MAX)
    return {
        "scheme": text(
            lib.lh_model_scheme_format(ffi.addressof(choice.scheme), name, lib.LH_MODEL_SCHEME_TEXT_MAX)
        ),
        "chunk_bytes": choice.chunk_bytes,
        "seconds": choice.seconds,
        "times_ideal": choice.times_ideal,
        "overhead": choice.overhead,
        "cores": choice.cores,
        "reasons": text(reasons),
    }


def sample(
    scheme: str,
    count: int,
    *,
    size: int | str,
    bandwidth: float | str,
    rtt: float | str,
    loss: float | str,
    burst: float = 0,
    mtu: int = 4096,
    chunk: int = 4096,
    seed: int = 1,
    threads: int = 1,
) -> list[float]:
    """Samples `count` completion times of a message, in seconds. The same seed gives the same samples."""
    path, seconds = ffi.new("struct lh_model_path *"), ffi.new("double[]", max(1, count))
    _path(path, bandwidth, rtt, loss, burst)
    path.message_bytes, path.mtu_bytes, path.chunk_bytes = int(_number(size, "size")), mtu, chunk
    check(lib.lh_model_sample(path, _scheme(scheme), seed, threads, seconds, count))
    return list(seconds)[:count]


def probe(
    where: str, *, wait: float = 10.0, insecure: bool = False, **settings: Any
) -> dict[str, Any]:
    """Measures the path to a server (`longhaul probe --server`, or ProbeServer): rtt_ns, rate_bps, loss, ...

    where: "HOST:PORT". insecure: also of another host: probes have no key. wait: seconds to reach the server.
    settings: fields of struct lh_probe_attr: time=10.0 (s), rate_bps, trials, packets, flows. Blocks for
    about `time`, always bounded.
    """
    keep: list[Any] = []
    attr, result = ffi.new("struct lh_probe_attr *"), ffi.new("struct lh_probe_result *")
    lib.lh_probe_attr_init(attr)
    set_fields(attr, {"loopback_only": not insecure, **settings}, keep)
    check(lib.lh_probe_run(where.encode(), attr, nanoseconds(wait), result))
    return fields_of(result)


class ProbeServer(Closes):
    """The server of probe(): answers a client while serve() runs. A context manager.

    where: "HOST:PORT", or ":PORT"; 0: a free port. port: the one it listens on. insecure: serves other hosts,
    too: probes have no key.
    """

    def __init__(self, where: str, *, insecure: bool = False) -> None:
        handle = ffi.new("struct lh_probe_server **")
        check(lib.lh_probe_listen(where.encode(), handle))
        if not insecure:
            lib.lh_probe_server_loopback_only(handle[0])
        self._handle = handle[0]
        self.port: int = lib.lh_probe_server_port(self._handle)

    def serve(self, timeout: float | None = None) -> str:
        """Serves one client to its end, and returns its address. TimedOut: none came within `timeout`
        seconds.
        """
        check(lib.lh_probe_serve(self._handle, nanoseconds(timeout)))
        return text(lib.lh_probe_server_peer(self._handle))

    def close(self) -> None:
        """Stops listening."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            lib.lh_probe_server_close(handle)


class Hadamard:
    """A transform that spreads lost data over the whole tensor (longhaul/hadamard.h).

    type: "f32", "bf16" or "f16". block: p, stride: S, in elements; 0: the defaults. The encoded tensor has
    the shape of the tensor. Different seeds for different messages keep errors independent.

    >>> import array
    >>> tensor, transform = array.array("f", range(4096)), Hadamard(seed=7)
    >>> encoded = array.array("f", tensor)
    >>> transform.encode(encoded)
    >>> transform.decode(encoded)
    >>> max(abs(a - b) for a, b in zip(tensor, encoded)) < 0.01
    True
    """

    def __init__(
        self,
        type: str = "f32",
        *,
        block: int = 0,
        stride: int = 0,
        seed: int = 0,
        zero_non_finite: bool = False,
    ) -> None:
        if type not in _HADAMARD_TYPES:
            raise ValueError(f"type {type!r}: unknown type ({', '.join(_HADAMARD_TYPES)})")
        self.type = type
        self._described = ffi.new("struct lh_hadamard *")
        lib.lh_hadamard_init(self._described, _HADAMARD_TYPES[type])
        if block:
            self._described.block = self._described.stride = block
        if stride:
            self._described.stride = stride
        self._described.seed = seed
        self._described.non_finite = lib.LH_HADAMARD_ZERO if zero_non_finite else lib.LH_HADAMARD_REFUSE
        check(lib.lh_hadamard_check(self._described))

    def encode(self, data: Any, out: Any = None) -> None:
        """Encodes data into out; without `out` in place. LonghaulError: an element is NaN or infinite."""
        given, into, count = self._buffers(data, out, False)
        check(lib.lh_hadamard_encode(self._described, given.address, into.address, count, ffi.NULL))

    def decode(self, data: Any, out: Any = None, *, missing: list[tuple[int, int]] | None = None) -> None:
        """Decodes data, which is overwritten, into out; without `out` in place.

        missing: (offset, bytes) of the ranges that did not arrive, as Operation.missing_ranges() reports
        them.
        """
        given, into, count = self._buffers(data, out, True)
        arrival = ffi.NULL
        if missing:
            ranges = ffi.new("struct lh_range[]", missing)
            arrival = ffi.new(
                "struct lh_hadamard_arrival *", {"missing": ranges, "missing_count": len(missing)}
            )
        check(lib.lh_hadamard_decode(self._described, arrival, given.address, into.address, count, ffi.NULL))

    def _buffers(self, data: Any, out: Any, writable: bool) -> tuple[Buffer, Buffer, int]:
        given = Buffer(data, writable or out is None)
        into = given if out is None else Buffer(out, True)
        for buffer in (given, into):  # numpy has no bfloat16: uint16, which has no name here, stands for it
            if buffer.type not in (None, "u8", self.type):
                raise ValueError(
                    f"elements of {buffer.type}: expected {self.type} (convert them, or pass type=)"
                )
        number = type_number(self.type)
        count = count_of(given, number)
        if count_of(into, number) != count:
            raise ValueError(f"out: {into.bytes} bytes, expected {given.bytes}")
        return given, into, count
