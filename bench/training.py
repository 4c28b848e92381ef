#!/usr/bin/env python3
# Training by PyTorch, a rank at each end of longhaul-path: Gloo over the kernel's BBR, longhaul, and longhaul
# with bounded gradients. Time to a score, final score over several seeds with an interval, step times, bytes.
#
# usage: BUILD=build training.py [--quick] [--json FILE] [PART ...]
#   PART: digits, a small perceptron by DDP, 25 ms and 200 Mbit/s, losses of 1e-3 to 5e-2; text, a transformer
#   of 0.87 M parameters by DDP, 25 ms and 1 Gbit/s; diloco, the latter with replicas that train alone for 20
#   steps at a time, 100 ms and 200 Mbit/s. Default: all. --quick: one seed, one loss.
#   Needs torch, longhaul and scikit-learn in the Python of the tests (build/python-venv), or in another one,
#   PYTHON.
# Prints tables, with lost data and bytes of the left rank, and writes the curves to $BUILD/training.txt:
#   part, loss, backend, seed, step, seconds of training, score
# A run that fails, or takes more than four minutes, is named and left out of its row.
#
# SPDX-License-Identifier: BSD-3-Clause
import math
import os
import statistics
import sys

import collectives
from path_messages import BUILD, QUICK, report

BACKENDS = ("longhaul", "bounded", "gloo")
CURVES = os.path.join(BUILD, "training.txt")
# Student's t for 95 %, two-sided, by the number of values less one.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78}
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train_rank.py")


class Case:
    """A table. every: as of train_rank.py. target: the score whose time is given."""

    def __init__(self, task, rate, rtt_s, losses, seeds, steps, target, every=0):
        self.task, self.rate, self.rtt_s, self.losses = task, rate, rtt_s, losses
        self.steps, self.target, self.every = steps, target, every
        self.seeds = range(1, 2 if QUICK else seeds + 1)

    @property
    def words(self):
        method = f"DiLoCo {self.every}" if self.every else "DDP"
        return f"{self.task}, {method}, {1e3 * self.rtt_s:.0f} ms, {self.rate / 1e6:.0f} Mbit/s"


CASES = {"digits": Case("digits", 200e6, 0.025, ("1e-3", "1e-2", "5e-2"), 5, 150, 0.94),
         "text": Case("text", 1e9, 0.025, ("1e-2",), 3, 200, -3.5),
         "diloco": Case("text", 200e6, 0.1, ("1e-3", "1e-2"), 3, 400, -3.3, 20)}


def measured(case, backend, seed):
    numbers = map(str, (case.steps, seed, case.every))
    command = [collectives.PYTHON, "-I", PROGRAM, case.task, backend, *numbers]
    return collectives.both(command, command)


def interval(values):
    """The mean and half its interval of 95 %."""
    if len(values) < 2:
        return values[0], float("nan")
    return statistics.fmean(values), T95[len(values) - 1] * statistics.stdev(values) / len(values) ** 0.5


def time_to(target, scores):
    """Seconds of training until the score is reached for the first time; infinite: it was not."""
    return min((seconds for _, seconds, score in scores if score >= target), default=float("inf"))


def table(name, case, loss):
    found = {backend: [] for backend in BACKENDS}
    for seed in case.seeds:
        for backend in BACKENDS: # in turns
            value = measured(case, backend, seed)
            if value:
                found[backend].append(value)
                with open(CURVES, "a", encoding="ascii") as file:
                    for step, seconds, score in value["scores"]:
                        print(name, loss, backend, seed, step, f"{seconds:.4f} {score:.4f}", file=file)
    print(f"\n  {case.words}, loss {loss}: {len(case.seeds)} seeds, {case.steps} steps", flush=True)
    step = "outer step" if case.every else "step"
    print(f"                final score       to {case.target} s   {step} ms: p50     p99   "
          "lost %   replicas apart   MB sent")
    for backend, values in found.items():
        if not values:
            print(f"    {backend:9}  not measured")
            continue
        mean, half = interval([value["scores"][-1][2] for value in values])
        reached = statistics.median(time_to(case.target, value["scores"]) for value in values)
        p50, p99 = (1e3 * statistics.median(value[f"step_{p}_s"] for value in values)
                    for p in ("p50", "p99"))
        lost = 100 * statistics.fmean(value["missing_share"] for value in values)
        apart, octets = (statistics.fmean(value[key] for value in values) for key in ("drift", "bytes"))
        ended = f"{len(values)} of {len(case.seeds)} runs ended"
        print(f"    {backend:9} {mean:8.4f} +- {half:.4f} {reached:10.2f} {p50:15.1f} {p99:8.1f} {lost:8.3f}"
              f" {apart:16.1e} {octets / 1e6:9.0f}   {ended}", flush=True)
        if backend != "gloo" and found["gloo"]:
            other = found["gloo"]
            for figure, ours, theirs in (
                    ("step p50", p50, 1e3 * statistics.median(value["step_p50_s"] for value in other)),
                    ("step p99", p99, 1e3 * statistics.median(value["step_p99_s"] for value in other)),
                    ("time to score", 1e3 * reached,
                     1e3 * statistics.median(time_to(case.target, value["scores"]) for value in other))):
                if math.isfinite(ours) and math.isfinite(theirs):
                    report(f"training {case.words}, loss {loss} {backend} {figure}", ours, "ms", "gloo",
                           theirs, len(values))


def main():
    words = sys.argv[1:]
    if "--json" in words:
        del words[words.index("--json"):words.index("--json") + 2]
    wanted = [word for word in words if word != "--quick"] or list(CASES)
    for name in wanted:
        if name not in CASES:
            print(f"training.py: no part {name!r}: {', '.join(CASES)}", file=sys.stderr)
            return 2
    if not collectives.python_has("torch", "longhaul.torch", "sklearn"):
        return 0
    with open(CURVES, "w", encoding="ascii"):
        pass
    for name in wanted:
        case = CASES[name]
        for loss in case.losses[:1] if QUICK else case.losses:
            collectives.over_path(lambda: (collectives.control("bbr"), table(name, case, loss)),
                                  case.rate, case.rtt_s, loss)
    return 0


if __name__ == "__main__":
    sys.exit(main())
