"""find_batch_size: the largest that fits, by memory, by time, by a limit; everything is put back."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.training import runs
from tritensor import nn, optim
from tritensor.data import DataLoader, TensorDataset
from tritensor.training import batch_size, find_batch_size


@pytest.mark.parametrize("limit", [None, 5, 64])
@pytest.mark.parametrize("most", [2, 3, 7, 8, 9, 100, 128])
def test_it_doubles_and_bisects(most: int, limit: int | None) -> None:
    tried = []

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= most

    assert batch_size._search(fits, 2, limit) == min(most, limit or most)
    assert len(tried) == len(set(tried)) <= 2 * (most + 1).bit_length()
    assert max(tried, default=0) <= (limit or 256)


def test_what_was_tried_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def step(size: int) -> None:
        if size > 5:
            raise tt.OutOfMemoryError("full")

    assert find_batch_size(step, device="cpu") == 5
    lines = [line.removeprefix("find_batch_size: a batch of ") for line in capsys.readouterr().err.splitlines()]
    assert [line.partition(" ")[0] for line in lines] == ["2", "4", "8", "6", "5"]
    assert " fits: " in lines[0]
    assert lines[2] == "8 runs out of memory"
    with pytest.raises(MemoryError, match=r"^find_batch_size: not even a batch of 8 runs out of memory; give a smaller start"):
        find_batch_size(step, device="cpu", start=8, quiet=True)


def test_bytes_and_seconds_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(size: int) -> None:
        tt.zeros(size, 250_000).sum()

    take(2)  # what a first call loads is no memory of a batch
    assert find_batch_size(take, memory=20_500_000, device="cpu", quiet=True) == 20
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    assert find_batch_size(lambda n: now.append(now.pop() + n * 0.004), seconds=0.022, limit=40, device="cpu", quiet=True) == 5


def everything(trainer: Any) -> list[Any]:
    """All that a step changes, as numbers."""
    state = {str(i): {k: np.asarray(v) for k, v in s.items()} for i, s in enumerate(trainer.optimizer.state.values())}
    grads = [None if p.grad is None else p.grad.tolist() for p in trainer.model.parameters()]
    modes = [m.training for m in trainer.model.modules()]
    numbers = [v.tolist() for v in trainer.model.state_dict().values()]
    here = {k: {n: v.tolist() for n, v in s.items()} for k, s in state.items()}
    rates = [{k: v for k, v in g.items() if k != "params"} for g in trainer.optimizer.param_groups]
    return [
        numbers,
        here,
        grads,
        modes,
        rates,
        trainer.optimizer._steps,
        str(tt.training.generators.get_state()),
        trainer.losses,
        trainer.step,
    ]


@pytest.mark.parametrize("trained", [False, True])
def test_a_trainer_is_as_it_was(trained: bool) -> None:
    trainer = runs.trainer(scaler=tt.amp.GradScaler("cpu", init_scale=16.0), epochs=1)
    if trained:
        trainer.fit(*runs.loaders())
    trainer.model.eval()
    before, scale = everything(trainer), trainer.scaler.get_scale()
    grads = [p.grad for p in trainer.model.parameters()]
    assert find_batch_size(trainer, DataLoader(runs.Noisy(), 2), start=10, quiet=True) == runs.SAMPLES
    data = TensorDataset(tt.ones(3, 4), tt.zeros(3).long())
    assert find_batch_size(trainer, data, limit=5, start=5, quiet=True) == 5
    with pytest.raises(MemoryError):
        find_batch_size(trainer, data, memory=10, quiet=True)
    assert everything(trainer) == before
    assert trainer.scaler.get_scale() == scale
    assert all(a is b for a, b in zip(grads, (p.grad for p in trainer.model.parameters()), strict=True))
    trainer.fit(*runs.loaders())


def test_a_step_that_fails_otherwise_leaves_all_as_it_was() -> None:
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=tt.tensor(0.1), momentum=0.9)
    weight, rate = model.weight.clone(), optimizer.param_groups[0]["lr"]

    def step(size: int) -> None:
        F.mse_loss(model(tt.ones(size, 2)), tt.ones(size, 1)).backward()
        optimizer.step()
        rate.fill_(7.0)
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        find_batch_size(step, model=model, optimizer=optimizer, quiet=True)
    assert tt.equal(weight, model.weight)
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == pytest.approx(0.1)
    assert not optimizer.state
    assert model.weight.grad is None


@pytest.mark.parametrize("budget", [True, False])
def test_memory_of_a_gpu(budget: bool) -> None:
    """By a number of bytes, or until the device has no more; what failed trials held is given back."""
    held = tt.cuda.memory_allocated()
    room = held + 20 * 2**20
    tt.cuda.empty_cache()
    if not budget:
        tt.cuda.set_per_process_memory_fraction(room / tt.cuda.mem_get_info()[1])
    try:
        found = find_batch_size(
            lambda n: [tt.empty(n, 2**18, device="cuda"), tt.empty(n, 2**18, device="cuda")],
            device="cuda", memory=room if budget else None, quiet=True,
        )  # fmt: skip
    finally:
        tt.cuda.set_per_process_memory_fraction(1.0)
    assert found == 10
    assert tt.cuda.memory_allocated() == held


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: find_batch_size(3), TypeError, "step is an int; give a Trainer, or a function"),
        (lambda: find_batch_size(print, start=0), ValueError, "start is 0; give an integer"),
        (lambda: find_batch_size(print, limit=True), ValueError, "limit is True; give an integer"),
        (lambda: find_batch_size(print, memory=-1), ValueError, "memory is -1; give a number"),
        (lambda: find_batch_size(runs.trainer()), ValueError, "data is a NoneType, of which no batch can be made; give a dataset"),
        (lambda: find_batch_size(runs.trainer(), []), ValueError, "data is a list of 0, of which no batch"),
    ],
    ids=["step", "start", "limit", "memory", "no data", "empty"],
)
def test_what_it_refuses(call: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=f"^find_batch_size: {said}"):
        call()


def test_what_the_system_has_free_is_known() -> None:
    assert batch_size._free_memory() > 1 << 20
