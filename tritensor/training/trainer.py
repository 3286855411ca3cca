"""Trainer: a training script's loop, written once: epochs, steps, validation, and checkpoints that a killed run goes on from."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from tritensor.amp import GradScaler, autocast
from tritensor.autograd.modes import no_grad
from tritensor.dtypes import as_dtype, bfloat16, float16, float64
from tritensor.errors import ArgumentError, MissingFileError
from tritensor.io import save
from tritensor.nn import Module
from tritensor.nn.utils import clip_grad_norm_, clip_grad_value_
from tritensor.optim import Optimizer
from tritensor.optim.lr_scheduler import ReduceLROnPlateau
from tritensor.optim.state import read_rate
from tritensor.tensor.core import Tensor
from tritensor.training import generators
from tritensor.training.batches import batches, kind_of, length, moves, samples_of
from tritensor.training.callbacks import Callback, ProgressBar
from tritensor.training.checks import check_counts, check_loader, check_loss, check_settings, check_state, read_state
from tritensor.training.generators import Stream
from tritensor.utils.pytree import tree_map

_UNREAD = 16  # losses that wait on a GPU before the host reads them


class Trainer:
    """Trains a model with an optimizer::

        trainer = Trainer(model, optimizer, F.cross_entropy, epochs=3, checkpoint="out", callbacks=[EarlyStopping(patience=2)])
        history = trainer.fit(train_loader, test_loader, resume=True)

    Killed at any moment and started again with `resume=True`, it goes on from its last checkpoint to the same losses, bit for bit on the CPU.

    Args:
        model: a Module, on the device where it is to be trained. Batches are moved there.
        optimizer: an optimizer of its parameters.
        loss: (outputs, targets) -> a tensor of one number; a batch is then a pair (inputs, targets), and inputs that are a tuple or a dict
            are the model's arguments. Give `loss`, or
        step: (model, batch) -> the loss, or (loss, outputs); a batch is whatever the loader gives.
        epochs, steps: where to end, at the first that is reached; a step is one of the optimizer.
        scheduler: stepped after every epoch, or with `scheduler_interval="step"` after every step; ReduceLROnPlateau is given `monitor`.
        monitor: what that looks at: "val_loss" where there is validation, else "loss".
        accumulate: batches that make one step. Losses are weighted by the samples of their batches, so that the gradient of a mean loss is
            that of the one large batch, for the fewer batches at an epoch's end as well.
        clip_norm, clip_value: the most that the norm of all gradients, or an element of one, may be.
        autocast: float16 or bfloat16: the type that products run in.
        scaler: a GradScaler; float16 has one where none is given.
        metrics: {name: (outputs, targets) -> a number}, means over the validation set as "val_<name>". With `step` the targets are the batch.
        validate_every: steps between validations, besides the one after every epoch.
        callbacks: instances of Callback, called in this order.
        checkpoint: a folder for `last.safetensors`, whose ["model"] is the model's state_dict.
        checkpoint_every: steps between checkpoints; None saves after every epoch. The end of a run is saved as well.
        progress: whether to show how far the run is, on stderr.

    Raises ValueError for settings that make no sense or exclude each other, TypeError for an argument of another kind.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss: Callable[[Any, Any], Tensor] | None = None,
        *,
        step: Callable[[Module, Any], Any] | None = None,
        epochs: int | None = None,
        steps: int | None = None,
        scheduler: Any = None,
        scheduler_interval: str = "epoch",
        monitor: str | None = None,
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        autocast: Any = None,
        scaler: GradScaler | None = None,
        metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
        validate_every: int | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        progress: bool = True,
    ) -> None:
        check_settings(model, optimizer, loss, step, scheduler_interval, callbacks)
        counts = {
            "epochs": epochs,
            "steps": steps,
            "accumulate": accumulate,
            "validate_every": validate_every,
            "checkpoint_every": checkpoint_every,
        }
        check_counts(counts, {"clip_norm": clip_norm, "clip_value": clip_value})
        if checkpoint_every is not None and checkpoint is None:
            raise ArgumentError(f"Trainer: checkpoint_every={checkpoint_every}, and no folder to save to; give checkpoint='out'")
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.device = next(p for group in optimizer.param_groups for p in group["params"]).device
        self.epochs, self.steps, self.accumulate = epochs, steps, accumulate
        self.clip_norm, self.clip_value, self.metrics = clip_norm, clip_value, dict(metrics or {})
        self.scheduler_interval, self.monitor, self.validate_every = scheduler_interval, monitor, validate_every
        self.autocast = None if autocast is None else as_dtype(autocast)
        if self.autocast not in (None, float16, bfloat16):
            raise ArgumentError(f"Trainer: autocast is {autocast}; give tritensor.float16 or tritensor.bfloat16")
        self.scaler = GradScaler(self.device.type) if scaler is None and self.autocast is float16 else scaler
        self.checkpoint = None if checkpoint is None else Path(checkpoint) / "last.safetensors"
        self.checkpoint_every = checkpoint_every
        self.callbacks = [*callbacks, ProgressBar()] if progress else list(callbacks)
        self._loss, self._step = loss, step
        self._loaders: tuple[Any, Any] = (None, None)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """What is known of a run before its first step."""
        self.epoch = self.batch_index = self.step = 0
        self.losses: list[float] = []  # of each step
        self.history: list[dict[str, Any]] = []  # what was known after each validation and each epoch
        self.should_stop = False
        self.batch: Any = None
        self.outputs: Any = None
        self.loss: Any = None
        self._seeds = generators.seeds()
        self._epoch_began = 0  # the step that the epoch began with
        self._unread: list[tuple[int, int, float, Tensor]] = []  # (step, batch, share, loss)
        self._saved: tuple[int, int] | None = None  # (epoch, batch) of the last checkpoint

    # -- the run
    def fit(
        self, train_loader: Iterable[Any], validation_loader: Iterable[Any] | None = None, *, resume: bool | str | os.PathLike[str] = False
    ) -> list[dict[str, Any]]:
        """Train, and return `history`: a dict of epoch, step, loss and metrics for every validation and every epoch.

        Args:
            train_loader: batches, to be gone through once an epoch: a DataLoader, a list, anything that can be iterated again. Its order, and what
                its dataset draws, depend on the seeds and the epoch alone.
            validation_loader: batches for the metrics. What validation draws leaves the training as it is.
            resume: True goes on from the folder's checkpoint where there is one, and begins where there is none; a path goes on from that file.

        Raises:
            FloatingPointError: a loss that is NaN or infinite, with its step and batch.
            ShapeError, TypeError: a batch that is no pair, or a loss that is no single number.
            GradError: a loss that no parameter's gradient can be had of.
            CheckpointError: a checkpoint of another model, optimizer, loader or set of callbacks.
        """
        self._loaders = check_loader("train_loader", train_loader), check_loader("validation_loader", validation_loader)
        self._begin_anew()
        self._into_training_mode()
        state = self._found(resume)
        if state is not None:
            self.load_state_dict(state)
        self._call("on_fit_start")
        if state is not None:
            generators.set_state(state["generators"])
        try:
            if self.batch_index:  # in the middle of an epoch, or behind the last batch of one
                self._run_epoch()
            while not self._finished():
                self._run_epoch()
            self._save()
            if self.batch_index:  # an epoch that is not over has not been validated, and its rest may yet come
                self._validate_and_note()
        finally:
            self._call("on_fit_end")
        return self.history

    def rehearse(self, batch: Any) -> None:
        """One training step on a batch; counts begin anew."""
        self._begin_anew()
        self._into_training_mode()
        self._train([batch])

    def _into_training_mode(self) -> None:
        if not self.model.training:  # layers that were put into eval mode one by one stay there
            self.model.train()

    def _finished(self) -> bool:
        reached = (self.epochs is not None and self.epoch >= self.epochs) or (self.steps is not None and self.step >= self.steps)
        return reached or self.should_stop

    def _run_epoch(self) -> None:
        """An epoch, or what is left of it."""
        if not self.batch_index:
            self._epoch_began = self.step
            self._call("on_epoch_start")
        coming = batches(self._loaders[0], self._seeds, self.epoch, self.batch_index)
        while not self._finished():
            window = list(itertools.islice(coming, self.accumulate))
            if not window:
                break
            self._train(window)
            if self.validate_every is not None and self.step % self.validate_every == 0:
                self._validate_and_note()
            if self.checkpoint_every is not None and self.step % self.checkpoint_every == 0:
                self._save()
        if not list(itertools.islice(coming, 1)):  # the last step of all may have been the epoch's last as well
            self._end_epoch()

    def _end_epoch(self) -> None:
        if not self.batch_index:
            raise ArgumentError(
                f"Trainer.fit: train_loader gave no batch in epoch {self.epoch}; give one that is not empty, and can be iterated again"
            )
        self._validate_and_note()
        if self.scheduler is not None and self.scheduler_interval == "epoch":
            self._schedule()
        self._call("on_epoch_end")
        self.epoch, self.batch_index = self.epoch + 1, 0
        if self.checkpoint_every is None:
            self._save()

    # -- a step
    def _train(self, window: list[Any]) -> None:
        """One step of the optimizer, on the batches of a window."""
        samples = [samples_of(batch) for batch in window]
        self.optimizer.zero_grad()
        for i, batch in enumerate(window):
            self.batch = self._changed("on_batch_start", self._moved(batch))
            self._backward(samples[i] / sum(samples))
            if i == len(window) - 1:
                self._update()
            self.batch_index += 1
            self._call("on_batch_end")

    def _backward(self, share: float) -> None:
        """Add the gradients of the present batch, of which this is the share in its window."""
        with self._casting():
            self.outputs, loss = self._forward(self.batch)
        self.loss = self._changed("on_after_forward", self.outputs, loss)
        check_loss(self.loss, f"at step {self.step}, batch {self.batch_index} of epoch {self.epoch},")
        self._unread.append((self.step, self.batch_index, share, self.loss.detach()))
        if self.device.type == "cpu" or len(self._unread) >= _UNREAD:  # to read a GPU's number is to wait for it
            self._read_losses()
        scaled = self.loss if share == 1 else self.loss * share
        (scaled if self.scaler is None else self.scaler.scale(scaled)).backward()
        self._call("on_after_backward")

    def _update(self) -> None:
        """Move the parameters by their gradients."""
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        self._call("on_before_optimizer_step")
        params = [p for group in self.optimizer.param_groups for p in group["params"]]
        if self.clip_value is not None:
            clip_grad_value_(params, self.clip_value)
        if self.clip_norm is not None:
            clip_grad_norm_(params, self.clip_norm)
        if self.scaler is not None:  # leaves the step out where a gradient is infinite or NaN
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.step += 1
        if self.scheduler is not None and self.scheduler_interval == "step":
            self._schedule()

    def _forward(self, batch: Any) -> tuple[Any, Any]:
        """(outputs, loss) of a batch."""
        if self._step is not None:
            found = self._step(self.model, batch)
            if isinstance(found, tuple) and len(found) == 2:
                return found[1], found[0]
            return None, found
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise TypeError(
                f"Trainer.fit: a batch is {kind_of(batch)}, and a loss takes a pair (inputs, targets); "
                "make pairs in the loader, or give Trainer(step=...), a function (model, batch) -> loss"
            )
        inputs, targets = batch
        if isinstance(inputs, Mapping):
            outputs = self.model(**inputs)
        else:
            outputs = self.model(*inputs) if isinstance(inputs, tuple | list) else self.model(inputs)
        assert self._loss is not None
        return outputs, self._loss(outputs, targets)

    def _read_losses(self) -> None:
        """Fetch the losses that wait on the device; the first that is no number ends the run."""
        unread, self._unread = self._unread, []
        for step, batch, share, loss in unread:
            value = loss.item()
            if not math.isfinite(value) and (self.scaler is None or not self.scaler.is_enabled()):
                raise FloatingPointError(
                    f"Trainer.fit: the loss is {value} at step {step}, batch {batch} of epoch {self.epoch}; "
                    "lower the rate, set clip_norm, or ask tritensor.autograd.detect_anomaly() which op made it"
                )
            if step == len(self.losses):
                self.losses.append(0.0)
            self.losses[step] += share * value

    @property
    def last_loss(self) -> float:
        """The last step's loss that the host has read: on a GPU it may be some steps old."""
        return self.losses[-1] if self.losses else math.nan

    @property
    def total_steps(self) -> int | None:
        """How many steps the run has, where that is known beforehand."""
        count = length(self._loaders[0])
        known = [] if self.steps is None else [self.steps]
        if self.epochs is not None and count is not None:
            known.append(self.epochs * -(-count // self.accumulate))
        return min(known, default=None)

    def _moved(self, batch: Any) -> Any:
        def move(x: Any) -> Any:
            if isinstance(x, Tensor):
                return x.to(self.device, non_blocking=True)  # from pinned memory the host does not wait
            return x.to(self.device) if moves(x) else x

        return tree_map(move, batch, is_leaf=moves)

    def _casting(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.autocast is None else autocast(self.device.type, self.autocast)

    # -- what is looked at between steps
    def validate(self, loader: Iterable[Any]) -> dict[str, float]:
        """{"val_loss": ..., "val_<metric>": ...}: means over a loader's samples, in eval mode and without gradients; nothing else changes."""
        modes = [(m, m.training) for m in self.model.modules()]
        self.model.eval()
        totals: dict[str, Any] = {}
        count = 0
        try:
            with no_grad(), Stream(self._seeds).at("validation"):
                for batch in map(self._moved, loader):
                    with self._casting():
                        outputs, loss = self._forward(batch)
                    targets = batch[1] if self._step is None else batch
                    found = {"loss": loss, **{name: metric(outputs, targets) for name, metric in self.metrics.items()}}
                    samples = samples_of(batch)
                    for name, value in found.items():
                        mean = value.to(float64).mean() if isinstance(value, Tensor) else float(value)
                        totals[f"val_{name}"] = totals.get(f"val_{name}", 0.0) + mean * samples
                    count += samples
        finally:
            for module, mode in modes:
                module.training = mode
        if not count:
            raise ArgumentError("Trainer.validate: the loader gave no batch; give one that is not empty, and can be iterated again")
        return {name: float(total) / count for name, total in totals.items()}

    def _validate_and_note(self) -> None:
        """An entry of the history, unless there is one of this step already."""
        self._read_losses()
        if self.history and self.history[-1]["step"] == self.step:
            return
        recent = self.losses[self._epoch_began :]
        rate = float(read_rate(self.optimizer.param_groups[0]))
        known = {"epoch": self.epoch, "step": self.step, "loss": sum(recent) / len(recent), "lr": rate}
        found = {} if self._loaders[1] is None else self.validate(self._loaders[1])
        self.history.append({**known, **found})
        if found:
            self._call("on_validation_end", found)

    def _schedule(self) -> None:
        if not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
            return
        known = self.history[-1] if self.history else {}
        monitor = self.monitor or ("loss" if self._loaders[1] is None else "val_loss")
        if monitor not in known:
            raise KeyError(f"Trainer.fit: ReduceLROnPlateau looks at {monitor!r}, and known is {list(known)}; set monitor to one of these")
        self.scheduler.step(known[monitor])

    def _call(self, hook: str, *given: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(self, *given)

    def _changed(self, hook: str, *given: Any) -> Any:
        """The last of what is given, after every callback has seen it and changed it where it wanted."""
        *others, value = given
        for callback in self.callbacks:
            new = getattr(callback, hook)(self, *others, value)
            value = value if new is None else new
        return value

    # -- checkpoints
    def state_dict(self) -> dict[str, Any]:
        """All that the rest of a run depends on, as it is between two steps."""
        self._read_losses()
        kept = {name: part for name, part in self._parts().items() if part is not None}
        return {
            "model": self.model.state_dict(),
            **{name: part.state_dict() for name, part in kept.items()},
            "kinds": {name: type(part).__name__ for name, part in kept.items()},
            "callbacks": [(type(c).__name__, c.state_dict()) for c in self.callbacks],
            "generators": generators.state(),
            "run": {name: getattr(self, name) for name in _RUN},
            "batches": length(self._loaders[0]),
            "accumulate": self.accumulate,
            "losses": Tensor.wrap(np.array(self.losses, np.float64)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called. Raises CheckpointError, before anything is changed, where it is of another training."""
        kept = {name: part for name, part in self._parts().items() if part is not None}
        check_state(state, self.model, kept, self.callbacks, length(self._loaders[0]), self.accumulate)
        self.optimizer.load_state_dict(state["optimizer"])
        self.model.load_state_dict(state["model"])
        for name in kept.keys() - {"optimizer"}:
            kept[name].load_state_dict(state[name])
        states = list(state["callbacks"])
        for callback in self.callbacks:
            mine = next((pair for pair in states if pair[0] == type(callback).__name__), None)
            if mine is not None:
                states.remove(mine)
                callback.load_state_dict(mine[1])
        for name, value in state["run"].items():
            setattr(self, name, value)
        self.losses = state["losses"].tolist()
        self.optimizer._steps = self.step  # schedules warn where they are stepped before it

    def _parts(self) -> dict[str, Any]:
        """What has a state of its own besides the model."""
        return {"optimizer": self.optimizer, "scheduler": self.scheduler, "scaler": self.scaler}

    def _save(self) -> None:
        if self.checkpoint is not None and self._saved != (self.epoch, self.batch_index):
            self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
            save(self.state_dict(), self.checkpoint)
            self._saved = (self.epoch, self.batch_index)

    def _found(self, resume: bool | str | os.PathLike[str]) -> dict[str, Any] | None:
        """The checkpoint to go on from, None where there is none."""
        if not isinstance(resume, bool):
            if not os.path.exists(resume):
                raise MissingFileError(
                    f"Trainer.fit: resume={os.fspath(resume)!r} is no file; give the path of a checkpoint, or True for the folder's"
                )
            path = Path(resume)
        elif not resume:
            return None
        elif self.checkpoint is None:
            raise ArgumentError(
                "Trainer.fit: resume=True, and the trainer has no folder of checkpoints; give Trainer(checkpoint='out'), or a path here"
            )
        elif not self.checkpoint.exists():  # killed before it had saved anything
            return None
        else:
            path = self.checkpoint
        return read_state(path)


# Attributes that are a run's place
_RUN = ("epoch", "batch_index", "step", "history", "should_stop", "_epoch_began", "_seeds")
