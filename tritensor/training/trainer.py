"""Class Trainer, the loop of a training script: epochs, steps, validation, and checkpoints that a killed run goes on from."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tritensor.amp import GradScaler
from tritensor.autograd.modes import no_grad
from tritensor.ground.dtypes import as_dtype, bfloat16, float16
from tritensor.ground.errors import ArgumentError
from tritensor.io import save
from tritensor.io.checkpoint import check_readable
from tritensor.nn import Module
from tritensor.nn.utils import clip_grad_norm_, clip_grad_value_
from tritensor.optim import Optimizer
from tritensor.optim.lr_scheduler import ReduceLROnPlateau
from tritensor.optim.state import read_rate
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public
from tritensor.training import generators
from tritensor.training.batches import count_batches, count_samples, iterate_batches
from tritensor.training.callbacks import Callback, ProgressBar
from tritensor.training.callbacks.base import call_hooks, end_callbacks, pass_through_hooks
from tritensor.training.checks import (
    check_counts,
    check_loader,
    check_loss,
    check_metrics,
    check_settings,
    check_state,
    find_checkpoint,
    match_states,
    read_state,
)
from tritensor.training.evaluation import Evaluation
from tritensor.training.metrics import Metrics
from tritensor.training.signals import Interrupts, Stopped

_UNREAD = 16  # losses that wait on a GPU before the host reads them


class Trainer(Evaluation):
    """Trains a model with an optimizer.

    >>> data, model = tt.data.TensorDataset(x := tt.randn(64, 3), x.sum(1, keepdim=True)), nn.Linear(3, 1)
    >>> trainer = tt.training.Trainer(model, tt.optim.Adam(model.parameters(), 0.1), F.mse_loss, epochs=20, checkpoint="out", progress=False)
    >>> trainer.fit(tt.data.DataLoader(data, 16, shuffle=True), resume=True)[-1]["loss"] < 0.01
    True

    Killed at any moment and started again with `resume=True`, it goes on from its last checkpoint to the same losses, bit for bit on the CPU.
    Ctrl-C and SIGTERM end it behind the present step, with a checkpoint.

    Args:
        model: a Module, on the device where it is to be trained. Batches are moved there.
        optimizer: an optimizer of its parameters.
        loss: (outputs, targets) -> a tensor of one number; a batch is then a pair (inputs, targets), and inputs that are a tuple or a dict
            are the model's arguments. Give `loss`, or
        step: (model, batch) -> the loss, or (loss, outputs); a batch is whatever the loader gives.
        epochs, steps: where to end, at the first that is reached; a step is one of the optimizer.
        scheduler: stepped after every epoch, or with `scheduler_interval="step"` after every step; ReduceLROnPlateau is given `monitor`.
        monitor: the number that it is given: "val_loss" where there is validation, else "loss".
        accumulate: batches that make one step. Losses are weighted by the samples of their batches, so that the gradient of a mean loss is
            that of the one large batch, for the fewer batches at an epoch's end as well.
        clip_norm, clip_value: the most that the norm of all gradients, or an element of one, may be. Norms before clipping are kept in `grad_norms`,
            one a step; `clip_norm=inf` keeps them and clips nothing.
        autocast: float16 or bfloat16: the type that products run in.
        scaler: a GradScaler; float16 has one where none is given.
        metrics: {name: (outputs, targets) -> a number}, means over the samples of the validation set as "val_<name>"; or objects with
            update(outputs, targets), compute() and reset(), such as torchmetrics'. With `step` the targets are the batch.
        train_metrics: the same of the training batches, over the epoch so far, as "<name>".
        validate_every: steps between validations, besides the one after every epoch.
        callbacks: instances of Callback, called in this order.
        checkpoint: a folder for `last.safetensors`, whose ["model"] is the model's state_dict. ModelCheckpoint keeps the best beside it.
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
        metrics: Mapping[str, Any] | None = None,
        train_metrics: Mapping[str, Any] | None = None,
        validate_every: int | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        progress: bool = True,
    ) -> None:
        check_settings(model, optimizer, loss, step, scheduler_interval, callbacks)
        check_metrics(metrics, train_metrics)
        counts = {"epochs": epochs, "steps": steps, "accumulate": accumulate, "validate_every": validate_every}
        check_counts({**counts, "checkpoint_every": checkpoint_every}, {"clip_norm": clip_norm, "clip_value": clip_value})
        if checkpoint_every is not None and checkpoint is None:
            raise ArgumentError(f"Trainer: checkpoint_every={checkpoint_every}, and no folder to save to; give checkpoint='out'")
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.device = next(p for group in optimizer.param_groups for p in group["params"]).device
        self.epochs, self.steps, self.accumulate = epochs, steps, accumulate
        self.clip_norm, self.clip_value, self.metrics = clip_norm, clip_value, dict(metrics or {})
        self._train_metrics = Metrics(train_metrics or {})
        self.scheduler_interval, self.monitor, self.validate_every = scheduler_interval, monitor, validate_every
        self.autocast = None if autocast is None else as_dtype(autocast)
        if self.autocast not in (None, float16, bfloat16):
            raise ArgumentError(f"Trainer: autocast is {autocast}; give tritensor.float16 or tritensor.bfloat16")
        self.scaler = GradScaler(self.device.type) if scaler is None and self.autocast is float16 else scaler
        self.checkpoint = None if checkpoint is None else Path(checkpoint) / "last.safetensors"
        self.checkpoint_every, self.progress = checkpoint_every, progress
        self.callbacks = [*callbacks, ProgressBar()] if progress else list(callbacks)
        self._loss, self._step = loss, step
        self._loaders: tuple[Any, Any] = (None, None)
        self._reset_run()

    def _reset_run(self) -> None:
        self.epoch = self.batch_index = self.step = 0
        self.losses: list[float] = []  # of each step
        self.grad_norms: list[float] = []  # of each step, where norms are clipped
        self.history: list[dict[str, Any]] = []  # an entry for each validation and each epoch
        self.should_stop = False
        self.validated_model = self.model  # validation runs it: a callback may keep a better one
        self.batch: Any = None
        self.outputs: Any = None
        self.loss: Any = None
        self._seeds = generators.get_seeds()
        self._epoch_began = 0  # the step that the epoch began with
        self._unread: list[tuple[int, int, float, Tensor]] = []  # (step, batch, share, loss)
        self._unread_norms: list[Tensor] = []
        self._wanted: list[tuple[Path, list[Path]]] = []  # checkpoints that callbacks want, and the files that they replace
        self._interrupts = Interrupts()
        self._train_metrics.reset()
        self._saved: tuple[int, int] | None = None  # (epoch, batch) of the last checkpoint

    # -- the run
    def fit(
        self, train_loader: Iterable[Any], validation_loader: Iterable[Any] | None = None, *, resume: bool | str | os.PathLike[str] = False
    ) -> list[dict[str, Any]]:
        """Train, and return `history`: a dict of epoch, step, loss and metrics for every validation and every epoch.

        Args:
            train_loader: batches, to be gone through once an epoch: a DataLoader, a list, anything that can be iterated again. Its order, and
                the draws of its dataset, depend on the seeds and the epoch alone.
            validation_loader: batches for the metrics. Random draws of validation do not change the training.
            resume: True goes on from the folder's checkpoint where there is one, and begins where there is none; a path goes on from that file.

        Raises:
            FloatingPointError: a loss that is NaN or infinite, with its step and batch.
            ShapeError, TypeError: a batch that is no pair, or a loss that is no single number.
            GradError: a loss that no parameter's gradient can be had of.
            CheckpointError: a checkpoint of another model, optimizer, loader or set of callbacks.
        """
        self._loaders = check_loader("train_loader", train_loader), check_loader("validation_loader", validation_loader)
        self._reset_run()
        self._enter_training()
        path = find_checkpoint(resume, self.checkpoint)
        if path is not None:
            state = read_state(path)
            self.load_state_dict(state)
        try:
            call_hooks(self.callbacks, "on_fit_start", self)
            if path is not None:
                # after the hooks: what they drew does not count, as in the run that was interrupted
                generators.set_state(state["generators"])
            with Interrupts() as self._interrupts:
                self._run()
        except BaseException as error:
            end_callbacks(self.callbacks, self, error)
        else:
            end_callbacks(self.callbacks, self, None)
        return self.history

    def _run(self) -> None:
        """All epochs, or up to where a signal asks for an end."""
        try:
            if self.batch_index:  # in the middle of an epoch, or behind the last batch of one
                self._run_epoch()
            while not self._is_finished():
                self._run_epoch()
            self._save()
            if self.batch_index:  # an epoch that is not over has not been validated, and its rest may yet come
                self._add_history_entry()
            self._interrupts.check()
        except Stopped:
            self._save()
            saved = "" if self.checkpoint is None else f", saved to {self.checkpoint}; fit(resume=True) goes on from there"
            raise self._interrupts.end(f"Trainer.fit: stopped behind step {self.step}{saved}") from None

    def rehearse(self, batch: Any) -> None:
        """One training step on a batch; counts begin anew."""
        self._reset_run()
        self._enter_training()
        self._train([batch])

    def _enter_training(self) -> None:
        if not self.model.training:  # layers that were put into eval mode one by one stay there
            self.model.train()

    def _is_finished(self) -> bool:
        reached = (self.epochs is not None and self.epoch >= self.epochs) or (self.steps is not None and self.step >= self.steps)
        return reached or self.should_stop

    def _run_epoch(self) -> None:
        if not self.batch_index:
            self._epoch_began = self.step
            call_hooks(self.callbacks, "on_epoch_start", self)
        elif self._validation_is_due():  # interrupted while it went on
            self._add_history_entry()
        coming = iterate_batches(self._loaders[0], self._seeds, self.epoch, self.batch_index)
        while not self._is_finished():
            self._interrupts.check()
            # drawn before the step: the share of each batch needs the samples of all
            window = list(itertools.islice(coming, self.accumulate))
            if not window:
                break
            self._train(window)
            if self._validation_is_due():
                self._add_history_entry()
            if self.checkpoint_every is not None and self.step % self.checkpoint_every == 0:
                self._save()
        if not list(itertools.islice(coming, 1)):  # the last step of all may have been the epoch's last as well
            self._end_epoch()

    def _validation_is_due(self) -> bool:
        return self.validate_every is not None and self.step % self.validate_every == 0

    def _end_epoch(self) -> None:
        if not self.batch_index:
            raise ArgumentError(
                f"Trainer.fit: train_loader gave no batch in epoch {self.epoch}; give one that is not empty, and can be iterated again"
            )
        self._add_history_entry()
        if self.scheduler is not None and self.scheduler_interval == "epoch":
            self._schedule()
        call_hooks(self.callbacks, "on_epoch_end", self)
        self.epoch, self.batch_index = self.epoch + 1, 0
        self._train_metrics.reset()
        if self.checkpoint_every is None:
            self._save()
        self._save_wanted()

    # -- a step
    def _train(self, window: list[Any]) -> None:
        """One step of the optimizer, on the batches of a window."""
        samples = [count_samples(batch) for batch in window]
        self.optimizer.zero_grad()
        for i, batch in enumerate(window):
            self.batch = pass_through_hooks(self.callbacks, "on_batch_start", self, self._move_batch(batch))
            self._backward(samples[i], samples[i] / sum(samples))
            if i == len(window) - 1:
                self._update()
            self.batch_index += 1
            call_hooks(self.callbacks, "on_batch_end", self)

    def _backward(self, samples: int, share: float) -> None:
        """Add the gradients of the present batch, of so many samples, which are this share of its window's."""
        with self._autocast_context():
            self.outputs, loss = self._forward(self.model, self.batch)
        self.loss = pass_through_hooks(self.callbacks, "on_after_forward", self, self.outputs, loss)
        check_loss(self.loss, f"at step {self.step}, batch {self.batch_index} of epoch {self.epoch},")
        self._unread.append((self.step, self.batch_index, share, self.loss.detach()))
        with no_grad():
            targets = self.batch[1] if self._step is None else self.batch
            self._train_metrics.update(self.outputs, targets, samples)
        if self.device.type == "cpu" or len(self._unread) >= _UNREAD:  # to read a GPU's number is to wait for it
            self._read_losses()
        scaled = self.loss if share == 1 else self.loss * share
        (scaled if self.scaler is None else self.scaler.scale(scaled)).backward()
        call_hooks(self.callbacks, "on_after_backward", self)

    def _update(self) -> None:
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        call_hooks(self.callbacks, "on_before_optimizer_step", self)
        params = [p for group in self.optimizer.param_groups for p in group["params"]]
        if self.clip_value is not None:
            clip_grad_value_(params, self.clip_value)
        if self.clip_norm is not None:
            self._unread_norms.append(clip_grad_norm_(params, self.clip_norm))
        if self.scaler is not None:  # leaves the step out where a gradient is infinite or NaN
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.step += 1
        if self.scheduler is not None and self.scheduler_interval == "step":
            self._schedule()

    def _read_losses(self) -> None:
        """Fetch the losses that wait on the device; the first that is no number ends the run."""
        unread, self._unread = self._unread, []
        norms, self._unread_norms = self._unread_norms, []
        for (step, batch, share, _), value in zip(unread, _read_numbers([loss for _, _, _, loss in unread]), strict=True):
            if not math.isfinite(value) and (self.scaler is None or not self.scaler.is_enabled()):
                raise FloatingPointError(
                    f"Trainer.fit: the loss is {value} at step {step}, batch {batch} of epoch {self.epoch}; "
                    "lower the rate, set clip_norm, or ask tritensor.autograd.detect_anomaly() which op made it"
                )
            if step == len(self.losses):
                self.losses.append(0.0)
            self.losses[step] += share * value
        self.grad_norms += _read_numbers(norms)

    @property
    def steps_read(self) -> int:
        """The number of steps whose losses and norms the host has read."""
        losses = self._unread[0][0] if self._unread else self.step
        return losses if self.clip_norm is None else min(losses, len(self.grad_norms))

    @property
    def last_loss(self) -> float:
        """The last step's loss that the host has read: on a GPU it may be some steps old."""
        return self.losses[-1] if self.losses else math.nan

    @property
    def total_steps(self) -> int | None:
        """The number of steps of the run, where it is known beforehand."""
        count = count_batches(self._loaders[0])
        known = [] if self.steps is None else [self.steps]
        if self.epochs is not None and count is not None:
            known.append(self.epochs * -(-count // self.accumulate))
        return min(known, default=None)

    # -- between steps
    def _add_history_entry(self) -> None:
        """An entry of the history, unless there is one of this step already."""
        self._read_losses()
        if self.history and self.history[-1]["step"] == self.step:  # validate_every may have hit the epoch's last step
            return
        recent = self.losses[self._epoch_began :]  # of this epoch alone
        rate = float(read_rate(self.optimizer.param_groups[0]))
        known = {"epoch": self.epoch, "step": self.step, "loss": sum(recent) / len(recent), "lr": rate, **self._train_metrics.compute()}
        found = {}
        if self._loaders[1] is not None:
            call_hooks(self.callbacks, "on_validation_start", self)
            found = self.validate(self._loaders[1])
        self.history.append({**known, **found})
        if found:
            call_hooks(self.callbacks, "on_validation_end", self, found)
            self.history[-1] |= found  # as callbacks left it
        self._save_wanted()

    def _schedule(self) -> None:
        if not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
            return
        known = self.history[-1] if self.history else {}
        monitor = self.monitor or ("loss" if self._loaders[1] is None else "val_loss")
        if monitor not in known:
            raise KeyError(f"Trainer.fit: ReduceLROnPlateau looks at {monitor!r}, and known is {list(known)}; set monitor to one of these")
        self.scheduler.step(known[monitor])

    # -- checkpoints
    def state_dict(self) -> dict[str, Any]:
        """All that the rest of a run depends on, as it is between two steps."""
        self._read_losses()
        kept = self._stateful_parts()
        return {
            "model": self.model.state_dict(),
            **{name: part.state_dict() for name, part in kept.items()},
            "kinds": {name: type(part).__name__ for name, part in kept.items()},
            "callbacks": [(type(c).__name__, c.state_dict()) for c in self.callbacks],
            "generators": generators.get_state(),
            "run": {name: getattr(self, name) for name in _RUN_ATTRIBUTES},
            "batches": count_batches(self._loaders[0]),
            "accumulate": self.accumulate,
            "losses": Tensor.wrap(np.array(self.losses, np.float64)),
            "grad_norms": Tensor.wrap(np.array(self.grad_norms, np.float64)),
            "train_metrics": self._train_metrics.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called. Raises CheckpointError, before anything is changed, where it is of another training."""
        kept = self._stateful_parts()
        check_state(state, self.model, kept, self.callbacks, count_batches(self._loaders[0]), self.accumulate)
        self.optimizer.load_state_dict(state["optimizer"])
        self.model.load_state_dict(state["model"])
        for name in kept.keys() - {"optimizer"}:
            kept[name].load_state_dict(state[name])
        for callback, own in match_states(self.callbacks, state["callbacks"]):
            callback.load_state_dict(own)
        for name, value in state["run"].items():
            setattr(self, name, value)
        self.losses = state["losses"].tolist()
        norms = state["grad_norms"].tolist() if "grad_norms" in state else []
        self.grad_norms = [*norms, *[math.nan] * (self.step - len(norms))] if self.clip_norm is not None else []
        if "train_metrics" in state:
            self._train_metrics.load_state_dict(state["train_metrics"])
        self.optimizer._steps = self.step  # schedules warn where they are stepped before it

    def _stateful_parts(self) -> dict[str, Any]:
        """The parts with a state of their own, besides the model."""
        parts = {"optimizer": self.optimizer, "scheduler": self.scheduler, "scaler": self.scaler}
        return {name: part for name, part in parts.items() if part is not None}

    def _save(self) -> None:
        if self.checkpoint is not None and self._saved != (self.epoch, self.batch_index):
            self.save_checkpoint(self.checkpoint)
            self._saved = (self.epoch, self.batch_index)

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, which `fit(resume=path)` goes on from. Call it between steps. Raises TypeError for a state that could not be read again."""
        # before the file is touched: a state that could not be read again is found when it is saved
        check_readable(state := self.state_dict())
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        save(state, path)

    def save_after_hooks(self, path: Path, instead_of: Sequence[Path] = ()) -> None:
        """Write a checkpoint for a hook once all callbacks have had their turn, then remove the files that it replaces."""
        self._wanted.append((path, list(instead_of)))

    def _save_wanted(self) -> None:
        wanted, self._wanted = self._wanted, []
        for path, gone in wanted:
            self.save_checkpoint(path)
            for old in gone:
                old.unlink(missing_ok=True)


def _read_numbers(tensors: Sequence[Tensor]) -> list[float]:
    """The values of tensors of one number, with one wait for a GPU."""
    if len(tensors) < 2 or len({t.dtype for t in tensors}) > 1:
        return [t.item() for t in tensors]
    return public["stack"]([t.reshape(()) for t in tensors]).tolist()  # type: ignore[no-any-return]


# Attributes of a run that a checkpoint keeps; their names stand in files.
_RUN_ATTRIBUTES = ("epoch", "batch_index", "step", "history", "should_stop", "_epoch_began", "_seeds")
