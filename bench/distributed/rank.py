"""One rank of the benchmark of several processes, of either library: it waits for questions, and answers each with seconds.

Run as `python -m bench.distributed.rank LIBRARY ADDRESS`. Between two questions it blocks on a socket and takes no processor: it is
the other library's turn.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cpu.timing import once
from bench.cpu.train import mlp

BACKENDS = {"tritensor": "mpi", "torch": "gloo"}
BATCH = 64
COLD = 3  # steps before those that count: others have used the caches meanwhile


class Rank:
    """A process of a group of `library`, and what it can be asked."""

    def __init__(self, library: str) -> None:
        self.t, self.dist = importlib.import_module(library), importlib.import_module(f"{library}.distributed")
        self.t.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.dist.init_process_group(BACKENDS[library])
        self._arrays: dict[int, np.ndarray] = {}
        self._calls: dict[tuple[str, int], Callable[[], object]] = {}
        self._step: Callable[[bool], dict[str, float]] | None = None
        self._model: Any = None
        self._cut: dict[str, Callable[[], object]] = {}

    # all_reduce
    def _call(self, side: str, nbytes: int) -> Callable[[], object]:
        """An all_reduce of float32 in place by this library (sync, async), or by mpi4py on the same memory. Its result is checked once."""
        if (side, nbytes) not in self._calls:
            array = self._arrays.setdefault(nbytes, np.zeros(nbytes // 4, np.float32))
            tensor, dist = self.t.from_numpy(array), self.dist
            calls = {"sync": lambda: dist.all_reduce(tensor), "async": lambda: dist.all_reduce(tensor, async_op=True).wait()}
            if side == "mpi4py":
                from mpi4py import MPI

                calls["mpi4py"] = lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, [array, MPI.FLOAT])
            array.fill(1)
            calls[side]()
            if not (array == dist.get_world_size()).all():
                raise RuntimeError(f"all_reduce of ones by {side} gave {array[:4]}... on {dist.get_world_size()} ranks")
            array.fill(0)  # stays 0, however often it is added up
            self._calls[side, nbytes] = calls[side]
        return self._calls[side, nbytes]

    def all_reduce(self, side: str, nbytes: int, calls: int) -> float:
        """Seconds of one of so many calls."""
        call = self._call(side, nbytes)
        self.dist.barrier()
        return once(call, calls)

    def working(self) -> float:
        """Seconds for which cores have worked for this process."""
        return time.process_time()

    # a training step
    def _batch(self) -> tuple[Any, Any]:
        """This rank's examples and labels."""
        rng = np.random.default_rng(self.dist.get_rank())
        x, labels = rng.standard_normal((BATCH, 784)).astype(np.float32), rng.integers(0, 10, BATCH)
        return self.t.from_numpy(x), self.t.from_numpy(labels)

    def _training(self) -> Callable[[bool], dict[str, float]]:
        t = self.t
        t.manual_seed(0)
        parallel = importlib.import_module(f"{t.__name__}.nn.parallel")
        model = self._model = parallel.DistributedDataParallel(mlp(t))
        optimizer, loss_of = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), t.nn.CrossEntropyLoss()
        x, labels = self._batch()

        def step(averaged: bool) -> dict[str, float]:
            began = time.perf_counter()
            optimizer.zero_grad()
            if averaged:
                loss = loss_of(model(x), labels)
                loss.backward()
            else:
                with model.no_sync():
                    loss = loss_of(model(x), labels)
                    loss.backward()
            backward = time.perf_counter()
            optimizer.step()
            return {"began": began, "backward": backward, "ended": time.perf_counter()}

        return step

    def step(self, averaged: bool, calls: int) -> float:
        """Seconds of one of so many steps; without averages the ranks compute beside one another, each for itself."""
        self._step = self._step or self._training()
        run = self._step
        for _ in range(COLD):
            run(averaged)
        self.dist.barrier()
        return once(lambda: run(averaged), calls)

    def _of_shards(self, kind: str) -> Callable[[], object]:
        """A step of the same model with AdamW, whose states ("ZeRO-1") or whose everything ("fully_shard") is cut over the ranks."""
        t, name = self.t, self.t.__name__
        t.manual_seed(0)
        model = mlp(t)
        if kind == "ZeRO-1":
            model = importlib.import_module(f"{name}.nn.parallel").DistributedDataParallel(model)
            optimizer = importlib.import_module(f"{name}.distributed.optim").ZeroRedundancyOptimizer(
                model.parameters(), t.optim.AdamW, lr=1e-3
            )
        else:
            mesh = importlib.import_module(f"{name}.distributed.device_mesh").init_device_mesh("cpu", (self.dist.get_world_size(),))
            fully_shard = importlib.import_module(f"{name}.distributed.fsdp").fully_shard
            for part in [m for m in model.modules() if isinstance(m, t.nn.Linear)] + [model]:
                fully_shard(part, mesh=mesh)
            optimizer = t.optim.AdamW(model.parameters(), lr=1e-3)
        x, labels = self._batch()

        def step() -> None:
            optimizer.zero_grad()
            t.nn.functional.cross_entropy(model(x), labels).backward()
            optimizer.step()

        return step

    def sharded(self, kind: str, calls: int) -> float:
        """Seconds of one of so many steps of a model that is cut over the ranks."""
        run = self._cut.get(kind) or self._cut.setdefault(kind, self._of_shards(kind))
        for _ in range(COLD):
            run()
        self.dist.barrier()
        return once(run, calls)

    def timeline(self, calls: int) -> dict[str, Any]:
        """Of so many steps the one of median length: seconds of it, of backward's end, and when each bucket was ready and averaged."""
        self.step(True, 1)
        assert self._step is not None
        first: list[float] = []
        handles = [p.register_post_accumulate_grad_hook(lambda _: first.append(time.perf_counter())) for p in self._model.parameters()]
        seen: list[tuple[float, dict[str, Any]]] = []
        for _ in range(calls):
            first.clear()
            at = self._step(True)
            began = at["began"]
            buckets = [[b.bucket, b.nbytes, b.ready, b.averaged] for b in self._model.times()]
            step = at["ended"] - began
            seen.append((step, {"first": first[0] - began, "backward": at["backward"] - began, "step": step, "buckets": buckets}))
        for handle in handles:
            handle.remove()
        return sorted(seen, key=lambda s: s[0])[len(seen) // 2][1]


def main(library: str, address: str) -> None:
    """Answer what is asked at the address until the end is."""
    rank = Rank(library)
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(address)
        lines = asker.makefile("rw")
        print(json.dumps(rank.dist.get_rank()), file=lines, flush=True)
        while (question := json.loads(lines.readline())) is not None:
            what, given = question
            print(json.dumps(getattr(rank, what)(**given)), file=lines, flush=True)
        rank.dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
