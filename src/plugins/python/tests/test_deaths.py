"""Two replicas of torchft train; one is killed 20 times, at any moment, and comes back.

Gradients are averaged by Manager.allreduce(): torchft 0.2.0's DistributedDataParallel fails an assertion of
its own when an all-reduce fails within a step, whatever the process group.
"""

import datetime
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import torch
import torch.distributed as dist
import torchft
from torchft.coordination import LighthouseServer

import longhaul.torchft

KILLS = 20
PATIENCE_S = 120  # far above what anything here takes: a test does not measure


def train(name, lighthouse, path):
    """One replica, until it is killed. Appends a line a step: step, participants, loss, digest."""
    torch.set_num_threads(1)
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(20, 200), torch.nn.ReLU(), torch.nn.Linear(200, 2))
    inner = torch.optim.SGD(model.parameters(), lr=0.02)

    def load(state):
        model.load_state_dict(state["model"])
        inner.load_state_dict(state["optimizer"])

    options = longhaul.torch.Options(settings={"peer_timeout": 2.0})
    manager = torchft.Manager(
        pg=longhaul.torchft.ProcessGroupLonghaul(datetime.timedelta(seconds=20), options),
        load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()},
        min_replica_size=1, replica_id=name, lighthouse_addr=lighthouse,
        store_addr="localhost", store_port=store.port, rank=0, world_size=1,
    )  # fmt: skip
    optimizer = torchft.Optimizer(manager, inner)
    held_out = torch.randn(500, 20, generator=torch.Generator().manual_seed(1))
    with open(path, "a") as log:
        while True:
            data = torch.randn(32, 20)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(data), (data.sum(1) > 0).long()).backward()
            gradients = [p.grad for p in model.parameters()]
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            manager.allreduce(flat).wait()
            for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients])):
                gradient.copy_(part.view_as(gradient))
            optimizer.step()
            with torch.no_grad():
                loss = torch.nn.functional.cross_entropy(model(held_out), (held_out.sum(1) > 0).long())
            digest = sum(p.double().abs().sum().item() for p in model.parameters())
            row = [manager.current_step(), manager.num_participants(), loss.item(), digest]
            log.write(json.dumps(row) + "\n")
            log.flush()


class Replica:
    def __init__(self, name, lighthouse, folder):
        self.name, self.lighthouse, self.path = name, lighthouse, os.path.join(folder, name)
        self.start()

    def start(self):
        self.errors = open(f"{self.path}.errors", "w")
        command = [sys.executable, __file__, "replica", self.name, self.lighthouse, self.path]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.errors)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.errors.close()

    def rows(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path) as log:
            lines = log.read().split("\n")[:-1]  # the last one may be half written
        return [json.loads(line) for line in lines if line.endswith("]")]

    def wait(self, participants, after):
        """Waits for a step with so many participants, after a number of rows."""
        end = time.monotonic() + PATIENCE_S
        while not any(row[1] == participants for row in self.rows()[after:]):
            if self.process.poll() is not None or time.monotonic() > end:
                with open(f"{self.path}.errors") as errors:
                    text = errors.read()[-2000:]
                raise AssertionError(f"{self.name}: no step of {participants} replicas: {text}")
            time.sleep(0.05)


class Deaths(unittest.TestCase):
    def test_a_replica_that_is_killed(self):
        lighthouse = LighthouseServer(
            bind="[::]:0", min_replicas=1, join_timeout_ms=200, quorum_tick_ms=50, heartbeat_timeout_ms=1000
        )
        pick = random.Random(5)
        with tempfile.TemporaryDirectory() as folder:
            stays, dies = (Replica(name, lighthouse.address(), folder) for name in ("stays", "dies"))
            try:
                began = 0
                for _ in range(KILLS):
                    dies.wait(2, began)
                    time.sleep(pick.uniform(0, 1.5))
                    dies.kill()
                    stays.wait(1, len(stays.rows()))
                    began = len(dies.rows())
                    dies.start()
                dies.wait(2, began)
            finally:
                stays.kill()
                dies.kill()
                lighthouse.shutdown()
            mine = {row[0]: row for row in stays.rows() if row[1] == 2}
            both = [(mine[row[0]], row) for row in dies.rows() if row[1] == 2 and row[0] in mine]
            self.assertGreater(len(both), KILLS)
            for one, other in both:
                self.assertEqual(one, other)
            losses = [row[2] for row in stays.rows()]
            tenth = len(losses) // 10
            self.assertLess(sum(losses[-tenth:]), 0.5 * sum(losses[:tenth]))
            print(f"{KILLS} kills, {len(both)} steps of both, loss {losses[0]:.3f} to {losses[-1]:.3f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["replica"]:
        train(*sys.argv[2:])
    unittest.main(verbosity=2)
