"""Runs a function in several processes, one a rank, and bounds their time.

The caller has no engine then: a fork copies no threads.
"""

import multiprocessing
import os
import socket
import time
import traceback

SECONDS = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _enter(function, rank, size, port, pipe, arguments):
    try:
        pipe.send((True, function(rank, size, port, *arguments)))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
    pipe.close()


def run(function, size, *arguments, dies=(), seconds=SECONDS):
    """Returns function(rank, size, port, *arguments) of each rank; None for ranks of `dies`, which end
    themselves.

    AssertionError: a rank failed, with its traceback, ended with a status, or did not end in time.
    """
    context = multiprocessing.get_context("fork")  # what the caller has imported is there at once
    port, children = free_port(), []
    for rank in range(size):
        mine, theirs = context.Pipe(False)
        child = context.Process(
            target=_enter, args=(function, rank, size, port, theirs, arguments), daemon=True
        )
        child.start()
        theirs.close()
        children.append((child, mine))
    end, results, wrong = time.monotonic() + seconds, [], []
    for rank, (child, pipe) in enumerate(children):
        good, value = False, f"no result after {seconds} s"
        try:
            if pipe.poll(max(0, end - time.monotonic())):
                good, value = pipe.recv()
        except EOFError:
            value = "it ended without a result"
            if rank in dies:
                good, value = True, None
        results.append(value)
        child.join(max(0.1, end - time.monotonic()) if good else 0.1)
        if child.exitcode is None:
            wrong.append(f"rank {rank}: did not end in time")
            os.kill(child.pid, 9)
            child.join()
        elif child.exitcode and rank not in dies:
            wrong.append(f"rank {rank}: ended with status {child.exitcode}")
        if not good:
            wrong.append(f"rank {rank}: {value}")
    assert not wrong, "\n".join(wrong)
    return results
