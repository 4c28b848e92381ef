"""Longhaul: reliable messages, collectives and planning for long, lossy links.

    import longhaul
    with longhaul.Group.from_env() as group: ...   # collectives of processes: longhaul run, torchrun, mpirun
    longhaul.connect("site-b:7000")                # messages between two endpoints
    longhaul.plan(...), longhaul.predict(...)      # which scheme suits a link
    import longhaul.sim                            # the network simulator
    import longhaul.torch                          # torch.distributed: init_process_group("longhaul")

The C headers describe each mechanism; LonghaulError has their messages.
"""

from longhaul._native import Canceled, LonghaulError, RankFailed, TimedOut, lib, nccl_plugin_path, text
from longhaul.connection import (
    Completion,
    CompletionQueue,
    Connection,
    Delivery,
    Engine,
    Listener,
    Region,
    Request,
    connect,
    listen,
)
from longhaul.group import Group, Operation, Result, from_mpi4py
from longhaul.planning import Hadamard, ProbeServer, plan, predict, probe, sample

__version__ = text(lib.lh_version())

__all__ = [
    "Canceled",
    "Completion",
    "CompletionQueue",
    "Connection",
    "Delivery",
    "Engine",
    "Group",
    "Hadamard",
    "Listener",
    "LonghaulError",
    "Operation",
    "ProbeServer",
    "RankFailed",
    "Region",
    "Request",
    "Result",
    "TimedOut",
    "connect",
    "from_mpi4py",
    "listen",
    "nccl_plugin_path",
    "plan",
    "predict",
    "probe",
    "sample",
]
