"""A run that was killed, wherever that was, goes on to the same losses, bit for bit."""

from __future__ import annotations

import functools
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.training import runs
from tritensor import nn, optim
from tritensor.data import DataLoader, IterableDataset, LengthBucketSampler, RandomSampler, TensorDataset
from tritensor.ground.pytree import tree_map_only
from tritensor.training import Callback, Trainer, callbacks

WAYS: dict[str, dict[str, Any]] = {
    "every epoch": {},
    "every step": {"checkpoint_every": 1},
    "accumulated": {"checkpoint_every": 1, "accumulate": 4, "validate_every": 1},
    "rate by step": {"checkpoint_every": 2, "scheduler_interval": "step", "clip_norm": 0.5},
    "scaled": {"checkpoint_every": 1, "autocast": tt.bfloat16, "scaler": "cpu"},
    "with everything": {
        "checkpoint_every": 1, "accumulate": 3, "autocast": tt.bfloat16, "scaler": "cpu", "clip_norm": 0.5, "validate_every": 1,
        "train_metrics": {"accuracy": lambda out, y: (out.argmax(1) == y).float().mean()},
    },
}  # fmt: skip


class Killer(Callback):
    """Ends its process in the n-th call of a hook."""

    def __init__(self, hook: str, count: int) -> None:
        self.left = count

        def die(*_: Any) -> None:
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(self, hook, die)


def way(name: str) -> dict[str, Any]:
    given = dict(WAYS[name])
    if "scaler" in given:
        given["scaler"] = tt.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
    return given


def in_child(run: Callable[[], Any]) -> int:
    """How a process that runs this ends: 0, or minus the signal."""
    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    child.join(60)
    assert child.exitcode is not None, "the child hangs"
    return child.exitcode


def more(name: str, folder: Path | None) -> list[Callback]:
    """Callbacks that keep a state of their own."""
    if name != "with everything":
        return []
    kept = [] if folder is None else [callbacks.ModelCheckpoint(keep=2), callbacks.TensorBoard(folder / "log")]
    return [callbacks.WeightAveraging(0.5, start=1), *kept]


def goes_on(folder: Path, name: str = "every step", extra: Any = ()) -> Trainer:
    trainer = runs.trainer(folder, [*more(name, folder), *extra], **way(name))
    trainer.fit(*runs.loaders(), resume=True)
    return trainer


@functools.cache
def whole(name: str) -> Trainer:
    """A run that nothing stopped."""
    trainer = runs.trainer(None, more(name, None), **{k: v for k, v in way(name).items() if k != "checkpoint_every"})
    trainer.fit(*runs.loaders())
    return trainer


def same(one: Trainer, other: Trainer) -> None:
    assert one.losses == other.losses
    assert one.history == other.history
    assert one.grad_norms == other.grad_norms
    kept = [
        [
            (type(c).__name__, c.state_dict())
            for c in t.callbacks
            if not isinstance(c, callbacks.ModelCheckpoint | callbacks.TensorBoard | Killer)
        ]
        for t in (one, other)
    ]
    assert tree_map_only(tt.Tensor, tt.Tensor.tolist, kept[0]) == tree_map_only(tt.Tensor, tt.Tensor.tolist, kept[1])
    for name, value in one.model.state_dict().items():
        assert tt.equal(value, other.model.state_dict()[name]), name


@pytest.mark.parametrize("name", WAYS)
def test_killed_again_and_again(name: str, tmp_path: Path) -> None:
    """Each attempt dies a little later, at another hook; the last lives."""
    expected, deaths = whole(name), 0
    rng = random.Random(name)
    for _ in range(4):
        hook = rng.choice(
            ["on_batch_start", "on_after_backward", "on_before_optimizer_step", "on_batch_end", "on_validation_end", "on_epoch_end"]
        )
        deaths += in_child(lambda h=hook: goes_on(tmp_path, name, [Killer(h, rng.randrange(3))])) == -signal.SIGKILL
    assert deaths
    found = goes_on(tmp_path, name)
    same(found, expected)
    if name == "with everything":
        logged(tmp_path / "log", found)


def logged(folder: Path, trainer: Trainer) -> None:
    """tensorboard shows one run, whole, whatever happened to it."""
    from tests.utils.tensorboard.reading import accumulated

    read = accumulated(folder)
    for tag, series in (("loss/train", trainer.losses), ("grad_norm", trainer.grad_norms)):
        assert [(e.step, e.value) for e in read.Scalars(tag)] == [(i, np.float32(v)) for i, v in enumerate(series, 1)]
    shown = {(e.step, e.value) for e in read.Scalars("accuracy/val")}
    assert shown == {(h["step"], np.float32(h["val_accuracy"])) for h in trainer.history}


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("count", [0, 4])
def test_killed_while_it_saved(call: str, count: int, tmp_path: Path) -> None:
    """While bytes are written, before they are on the disk, before the file takes its place."""

    def run() -> None:
        from tritensor.io import atomic, safetensors

        room: Any = safetensors if call == "write" else atomic.os
        real, left = getattr(room, call), [count]

        def dying(*args: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                if call == "write":
                    args[0].write(b"torn")
                    args[0].flush()
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args)

        setattr(room, call, dying)
        goes_on(tmp_path)

    assert in_child(run) == -signal.SIGKILL
    same(goes_on(tmp_path), whole("every step"))
    assert os.listdir(tmp_path) == ["last.safetensors"], "nothing that the dead process left stays"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_killed_from_outside(seed: int, tmp_path: Path) -> None:
    """At moments that no hook marks: SIGKILL after a random time, until a run ends."""
    rng, name = random.Random(seed), list(WAYS)[seed % len(WAYS)]
    for _ in range(200):
        child = multiprocessing.get_context("fork").Process(target=goes_on, args=(tmp_path, name))
        child.start()
        time.sleep(rng.uniform(0.02, 0.6))
        child.kill()
        child.join()
        if child.exitcode == 0:
            break
    found = goes_on(tmp_path, name)
    same(found, whole(name))
    if name == "with everything":
        logged(tmp_path / "log", found)


class Stream(IterableDataset[Any]):
    """Points that are drawn as they are asked for, from generators that training draws from as well."""

    def __iter__(self) -> Iterator[Any]:
        for _ in range(12):
            x = tt.randn(4) + np.random.randn()
            yield x.float(), int(random.random() > 0.5)


class Foreign:
    """A loader of someone else's: it shuffles by itself."""

    def __iter__(self) -> Iterator[Any]:
        for i in np.random.permutation(5):
            yield tt.ones(4, 4) * float(i) + tt.randn(4, 4), tt.tensor([0, 1, 0, 1])


LENGTHS = [1 + i % 7 for i in range(runs.SAMPLES)]
SOURCES: dict[str, Callable[[], Any]] = {
    "shuffled": lambda: runs.loaders()[0],
    "with a generator": lambda: DataLoader(runs.Noisy(), 4, shuffle=True, generator=tt.Generator().manual_seed(5)),
    "drawn with replacement": lambda: DataLoader(runs.Noisy(), 4, sampler=RandomSampler(runs.Noisy(), True, 24)),
    "single samples": lambda: [(tt.full((4, 4), float(i)), tt.tensor([0, 1, 0, 1])) for i in range(5)],
    "buckets": lambda: DataLoader(runs.Noisy(), batch_sampler=LengthBucketSampler(LENGTHS, 4)),
    "a stream": lambda: DataLoader(Stream(), 4),
    "foreign": Foreign,
}


@pytest.mark.parametrize("source", SOURCES)
def test_any_loader_goes_on_in_the_middle_of_an_epoch(source: str, tmp_path: Path) -> None:
    def fit(**given: Any) -> Trainer:
        resume = given.pop("resume", False)
        trainer = runs.trainer(tmp_path, **given)
        trainer.fit(SOURCES[source](), resume=resume)
        return trainer

    expected = fit(epochs=2)
    fit(epochs=2, steps=len(expected.losses) - 2)
    same(fit(epochs=2, resume=True), expected)
    assert expected.losses[0] != expected.losses[len(expected.losses) // 2]


def test_earlier_batches_are_not_read_again(tmp_path: Path) -> None:
    class Counted(runs.Noisy):
        read = 0

        def __getitem__(self, i: int) -> Any:
            Counted.read += 1
            return super().__getitem__(i)

    runs.trainer(tmp_path, steps=2, epochs=1).fit(DataLoader(Counted(), 4, shuffle=True))
    Counted.read = 0
    runs.trainer(tmp_path, epochs=1).fit(DataLoader(Counted(), 4, shuffle=True), resume=True)
    assert Counted.read == runs.SAMPLES - 8


def test_a_longer_run_goes_on_where_a_shorter_one_ended(tmp_path: Path) -> None:
    expected = whole("every epoch")
    for steps in (3, 8, 5, 9, None):
        trainer = runs.trainer(tmp_path, steps=steps)
        trainer.fit(*runs.loaders(), resume=True)
    same(trainer, expected)
    again = runs.trainer(tmp_path)
    again.fit(*runs.loaders(), resume=tmp_path / "last.safetensors")
    same(again, expected)


@pytest.mark.filterwarnings("error")
def test_a_schedule_that_goes_on_at_an_epochs_end_does_not_warn(tmp_path: Path) -> None:
    in_child(lambda: goes_on(tmp_path, "every step", [Killer("on_epoch_end", 0)]))
    assert tt.load(tmp_path / "last.safetensors")["run"]["batch_index"] == runs.BATCHES
    same(goes_on(tmp_path), whole("every step"))


def test_killed_between_the_last_step_and_the_end_of_its_epoch(tmp_path: Path) -> None:
    """The run has all its steps, and its last epoch is not over yet."""

    def fit(folder: Path | None, *more: Callback) -> Trainer:
        trainer = runs.trainer(folder, more, steps=2 * runs.BATCHES, checkpoint_every=1 if folder else None)
        trainer.fit(*runs.loaders(), resume=folder is not None)
        return trainer

    assert in_child(lambda: fit(tmp_path, Killer("on_epoch_end", 1))) == -signal.SIGKILL
    found = fit(tmp_path)
    same(found, fit(None))
    assert found.scheduler.last_epoch == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda o: optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, factor=0.5),
        lambda o: optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=30),
        lambda o: optim.lr_scheduler.SequentialLR(
            o, [optim.lr_scheduler.LinearLR(o), optim.lr_scheduler.CosineAnnealingLR(o, 5)], milestones=[1]
        ),
    ],
    ids=["plateau", "one cycle", "sequence"],
)
def test_schedules_go_on(make: Any, tmp_path: Path) -> None:
    def fit(resume: bool, **given: Any) -> Trainer:
        runs.seeded()
        model = runs.network()
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        trainer = Trainer(
            model, optimizer, nn.functional.cross_entropy, scheduler=make(optimizer), epochs=4, checkpoint=tmp_path, progress=False, **given
        )
        trainer.fit(*runs.loaders(), resume=resume)
        return trainer

    expected = fit(False)
    fit(False, steps=10)
    same(fit(True), expected)


def test_early_stopping_goes_on_counting(tmp_path: Path) -> None:
    def fit(resume: bool, **given: Any) -> tuple[Trainer, callbacks.EarlyStopping]:
        stopping = callbacks.EarlyStopping("val_accuracy", patience=2, mode="max", min_delta=1.0)
        trainer = runs.trainer(tmp_path, [stopping], **({"epochs": 9} | given))
        trainer.fit(*runs.loaders(), resume=resume)
        return trainer, stopping

    expected, _ = fit(False)
    assert expected.epoch == 3
    fit(False, epochs=2)
    found, stopping = fit(True)
    same(found, expected)
    assert stopping.bad == 2
    assert fit(True)[0].step == expected.step, "a run that has stopped stays where it is"


def test_a_checkpoint_is_a_models_too(tmp_path: Path) -> None:
    trainer = runs.trainer(tmp_path, epochs=1)
    trainer.fit(*runs.loaders())
    model = runs.network()
    model.load_state_dict(tt.load(tmp_path / "last.safetensors")["model"])
    assert tt.equal(model[0].weight, trainer.model[0].weight)


def refused(folder: Path, said: str, *, data: Any = None, **changed: Any) -> None:
    """Fit of another trainer says why, and changes nothing."""
    other = runs.trainer(folder, **changed)
    before = {k: v.clone() for k, v in other.model.state_dict().items()}
    with pytest.raises(tt.CheckpointError, match=f"^Trainer.fit: {said}"):
        other.fit(runs.loaders()[0] if data is None else data, resume=True)
    assert all(tt.equal(v, before[k]) for k, v in other.model.state_dict().items())


def test_what_is_not_this_trainings_is_refused(tmp_path: Path) -> None:
    runs.trainer(tmp_path, steps=2, callbacks=[callbacks.EarlyStopping()]).fit(*runs.loaders())
    refused(tmp_path, "the checkpoint has the state of callback EarlyStopping, which is not here; give")
    both = {"callbacks": [callbacks.EarlyStopping()]}
    wide, more = nn.Sequential(nn.Linear(4, 9), nn.BatchNorm1d(9)), nn.Sequential(*runs.network(), nn.Linear(2, 2))
    refused(tmp_path, r"the checkpoint is of another model: .*0.weight is \(9, 4\) here and \(6, 4\) there", model=wide, **both)
    refused(tmp_path, "the checkpoint is of another model: it lacks 5.bias, 5.weight; give", model=more, **both)
    refused(tmp_path, "scheduler is None here and StepLR in the checkpoint", scheduler=None, **both)
    refused(tmp_path, "scaler is GradScaler here and None", scaler=tt.amp.GradScaler("cpu"), **both)
    short = TensorDataset(tt.zeros(8, 4), tt.zeros(8).long())
    refused(
        tmp_path,
        "the checkpoint is of batch 2 of epoch 0, with 4 batches an epoch, and here there are 2",
        data=DataLoader(short, 4),
        **both,
    )
    refused(tmp_path, "the checkpoint is of batch 2 .* with 1 batches a step .*, and here there are 2", accumulate=2, **both)


def test_other_batches_from_an_epochs_end_on_are_told(tmp_path: Path) -> None:
    runs.trainer(tmp_path, epochs=1).fit(*runs.loaders())
    with pytest.warns(
        UserWarning, match="batch 0 of epoch 1, with 4 batches an epoch, and here there are 7; the losses will not be those of one"
    ):
        runs.trainer(tmp_path, epochs=2).fit(*runs.loaders(batch_size=2), resume=True)


def test_another_optimizers_state_is_refused(tmp_path: Path) -> None:
    runs.trainer(tmp_path, steps=2).fit(*runs.loaders())
    model = runs.network()
    for optimizer, said in (
        (optim.SGD(model.parameters(), lr=0.1), "optimizer is SGD here and AdamW in the checkpoint"),
        (optim.AdamW([{"params": [p]} for p in model.parameters()]), r"AdamW.load_state_dict: .*\[6\].*\[1, 1, 1, 1, 1, 1\]"),
    ):
        trainer = Trainer(
            model, optimizer, nn.functional.cross_entropy, epochs=1, checkpoint=tmp_path, callbacks=[runs.Draws()], progress=False,
            scheduler=optim.lr_scheduler.StepLR(optimizer, 1),
        )  # fmt: skip
        with pytest.raises(tt.CheckpointError, match=said):
            trainer.fit(runs.loaders()[0], resume=True)


def test_where_there_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="resume=True, and the trainer has no folder"):
        runs.trainer().fit(*runs.loaders(), resume=True)
    with pytest.raises(FileNotFoundError, match="resume='gone' is no file"):
        runs.trainer().fit(*runs.loaders(), resume="gone")
    tt.save({"x": tt.ones(2)}, tmp_path / "x")
    with pytest.raises(tt.CheckpointError, match="is no checkpoint of a Trainer"):
        runs.trainer().fit(*runs.loaders(), resume=tmp_path / "x")
