#!/usr/bin/env python3
# One rank of a training run by a backend of torch.distributed; started with RANK, WORLD_SIZE, MASTER_ADDR and
# MASTER_PORT. Rank 0 prints one JSON object: see training.py, which starts it.
#
# usage: train_rank.py TASK BACKEND STEPS SEED [EVERY]
#   TASK: digits, a perceptron of 301,066 parameters for scikit-learn's images of 8 x 8; text, a byte-level
#   transformer of 867,072 parameters for the standard library of this Python
#   BACKEND: gloo, longhaul, or bounded: gradients by longhaul.torch.bounded_hook()
#   EVERY: replicas train alone for that many steps, then DiLoCo averages what changed; 0: DDP
#
# SPDX-License-Identifier: BSD-3-Clause
import datetime
import gzip
import importlib.util
import json
import pathlib
import statistics
import sys
import sysconfig
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 32
CONTEXT, BATCH_TEXT = 64, 4
CHECK_EVERY = 10 # steps


class Digits:
    """1,437 images to train with, 360 to test. Score: the share that is named right."""

    def __init__(self, seed):
        folder = pathlib.Path(importlib.util.find_spec("sklearn").origin).parent # importing it takes seconds
        with gzip.open(folder / "datasets/data/digits.csv.gz", "rt") as file:
            rows = torch.tensor([[float(word) for word in line.split(",")] for line in file])
        rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))]
        pixels, names = rows[:, :-1] / 16, rows[:, -1].long()
        self.train, self.test = (pixels[:1437], names[:1437]), (pixels[1437:], names[1437:])
        self.model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                   nn.Linear(512, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.draw = torch.Generator().manual_seed(1000 * seed + dist.get_rank())

    def loss(self, model):
        chosen = torch.randint(len(self.train[1]), (BATCH,), generator=self.draw)
        return F.cross_entropy(model(self.train[0][chosen]), self.train[1][chosen])

    def score(self):
        return (self.model(self.test[0]).argmax(1) == self.test[1]).float().mean().item()


class Transformer(nn.Module):
    def __init__(self, width=128, layers=4, heads=4):
        super().__init__()
        self.embed, self.place = nn.Embedding(256, width), nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, 256)
        self.mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)

    def forward(self, given):
        inside = self.embed(given) + self.place(torch.arange(CONTEXT))
        return self.out(self.layers(inside, mask=self.mask, is_causal=True))


class Text:
    """Modules of the standard library, in the order of their names. Score: minus the bits a byte of the last
    64 KiB, of which a fixed sample is tested."""

    def __init__(self, seed):
        text = bytearray()
        for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
            text += path.read_bytes()
        data = torch.frombuffer(text, dtype=torch.uint8).long()
        self.train, self.test = data[:-65536], data[-65536:]
        self.model = Transformer()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.draw = torch.Generator().manual_seed(1000 * seed + dist.get_rank())

    def windows(self, data, count, draw):
        starts = torch.randint(len(data) - CONTEXT - 1, (count,), generator=draw)
        both = torch.stack([data[start:start + CONTEXT + 1] for start in starts])
        return both[:, :-1], both[:, 1:]

    def loss(self, model):
        given, wanted = self.windows(self.train, BATCH_TEXT, self.draw)
        return F.cross_entropy(model(given).flatten(0, 1), wanted.flatten())

    def score(self):
        given, wanted = self.windows(self.test, 64, torch.Generator().manual_seed(7))
        return -F.cross_entropy(self.model(given).flatten(0, 1), wanted.flatten()).item() / 0.6931472


class DiLoCo:
    """Averages what `every` steps of the replicas changed, and applies it by Nesterov momentum (DiLoCo,
    arXiv:2311.08105, algorithm 1)."""

    def __init__(self, model, every, reduce):
        self.parameters, self.every, self.reduce, self.count = list(model.parameters()), every, reduce, 0
        self.outer = [p.detach().clone() for p in self.parameters]
        self.optimizer = torch.optim.SGD(self.outer, lr=0.7, momentum=0.9, nesterov=True)

    def step(self):
        self.count += 1
        if self.count % self.every:
            return
        with torch.no_grad():
            change = torch.cat([(o - p).reshape(-1) for o, p in zip(self.outer, self.parameters)])
            self.reduce(change)
            for outer, part in zip(self.outer, change.split([p.numel() for p in self.parameters])):
                outer.grad = part.view_as(outer)
            self.optimizer.step()
            for parameter, outer in zip(self.parameters, self.outer):
                parameter.copy_(outer)


def sent_bytes():
    """Bytes of IP packets that this side has sent over the path, before the loss."""
    return int(pathlib.Path("/sys/class/net/path0/statistics/tx_bytes").read_text())


def drift(model):
    """The distance of the replicas, as a share of the parameters' length."""
    mine = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    mean = mine.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    return ((mine - mean).norm() / mean.norm()).item()


def main():
    name, backend, steps, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    every = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    torch.set_num_threads(1)
    if backend != "gloo":
        import longhaul.torch # pylint: disable=import-outside-toplevel
    dist.init_process_group("gloo" if backend == "gloo" else "longhaul",
                            timeout=datetime.timedelta(seconds=200))
    torch.manual_seed(seed)
    task = {"digits": Digits, "text": Text}[name](seed)
    hook = longhaul.torch.bounded_hook() if backend == "bounded" else None
    outer, model = None, task.model
    if every:
        def average(tensor):
            dist.all_reduce(tensor) # gloo has no average
            tensor.div_(dist.get_world_size())
        outer = DiLoCo(model, every, hook.average if hook else average)
    else:
        model = DistributedDataParallel(model)
        if hook:
            hook.register(model)
    dist.barrier()
    took, scores, trained = [], [], 0.0
    sent = sent_bytes()
    for step in range(1, steps + 1):
        began = time.monotonic()
        task.optimizer.zero_grad(set_to_none=True)
        task.loss(model).backward()
        task.optimizer.step()
        if outer:
            outer.step()
        took.append(time.monotonic() - began)
        trained += took[-1]
        if step % CHECK_EVERY == 0: # outside of the time
            with torch.no_grad():
                scores.append((step, trained, task.score()))
            dist.barrier()
    sent = sent_bytes() - sent
    apart = drift(task.model)
    took = sorted(took[every - 1::every] if every else took[5:])
    if dist.get_rank() == 0:
        missing = hook.steps if hook else ()
        print(json.dumps({
            "scores": scores,
            "step_p50_s": statistics.median(took), "step_p99_s": took[int(0.99 * len(took))],
            "trained_s": trained, "drift": apart, "bytes": sent,
            "parameters": sum(p.numel() for p in task.model.parameters()),
            "missing_share": statistics.fmean(s.missing_share for s in missing) if missing else 0.0,
            "wrong": 0}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
