"""Checks of a trainer: settings, loaders that cannot be iterated twice, losses, checkpoints of another training."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tritensor.ground.errors import ArgumentError, CheckpointError, GradError, MissingFileError, ShapeError
from tritensor.io import load
from tritensor.nn import Module
from tritensor.optim import LBFGS, Optimizer
from tritensor.tensor.core import Tensor
from tritensor.training.batches import count_batches, describe
from tritensor.training.callbacks import Callback
from tritensor.training.metrics import is_metric_object

_STATE = {"model", "optimizer", "kinds", "callbacks", "generators", "run", "batches", "accumulate", "losses"}  # every checkpoint has these


def check_settings(model: Any, optimizer: Any, loss: Any, step: Any, interval: str, callbacks: Sequence[Any]) -> None:
    """Refuse a model, an optimizer or callbacks that are none, and an optimizer that has nothing to do with the model."""
    if not isinstance(model, Module):
        raise TypeError(f"Trainer: model is {describe(model)}; give a tritensor.nn.Module")
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"Trainer: optimizer is {describe(optimizer)}; give one such as tritensor.optim.AdamW(model.parameters())")
    if (loss is None) == (step is None):
        both = "neither loss nor step" if loss is None else "both loss and step"
        raise ArgumentError(f"Trainer: {both} given; give loss=(outputs, targets) -> number, or step=(model, batch) -> loss")
    for name, function in (("loss", loss), ("step", step)):
        if function is not None and not callable(function):
            raise TypeError(f"Trainer: {name} is {describe(function)}; give a function")
    own = {id(p) for p in model.parameters()}  # a model rebuilt or moved after the optimizer was made trains nothing, and shows no error
    given = [p for group in optimizer.param_groups for p in group["params"]]
    if not any(id(p) in own for p in given):
        raise ArgumentError(
            f"Trainer: none of the optimizer's {len(given)} parameters is one of the model's; make it of model.parameters() of this very model"
        )
    if not any(p.requires_grad for p in given):
        raise GradError(
            f"Trainer: none of the optimizer's {len(given)} parameters requires a gradient; call requires_grad_() of those to be trained"
        )
    if isinstance(optimizer, LBFGS):  # its step wants a closure
        raise ArgumentError(
            "Trainer: optimizer is LBFGS, whose step computes the loss several times; write its loop yourself, or give another optimizer"
        )
    if interval not in ("epoch", "step"):
        raise ArgumentError(f"Trainer: scheduler_interval is {interval!r}; give 'epoch' or 'step'")
    for callback in callbacks:
        if not isinstance(callback, Callback):
            is_class = isinstance(callback, type) and issubclass(callback, Callback)
            mend = f"make one: {callback.__name__}()" if is_class else "give instances of subclasses of tritensor.training.Callback"
            raise TypeError(f"Trainer: callbacks has {describe(callback)}; {mend}")


def check_counts(counts: Mapping[str, Any], bounds: Mapping[str, Any]) -> None:
    """Refuse counts below 1, bounds that are not above 0, and a run without an end."""
    for name, given in counts.items():
        if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
            raise ArgumentError(f"Trainer: {name} is {given!r}; give an integer of at least 1")
    for name, given in bounds.items():
        if given is not None and (not isinstance(given, int | float) or not given > 0):
            raise ArgumentError(f"Trainer: {name} is {given!r}; give a number above 0, or None")
    if counts["epochs"] is None and counts["steps"] is None:
        raise ArgumentError("Trainer: neither epochs nor steps says where training ends; give one, or both")


def check_metrics(metrics: Any, train_metrics: Any) -> None:
    """Refuse metrics that are neither functions nor objects that count themselves, and one object that would count both kinds of batches."""
    objects = []
    for argument, given in (("metrics", metrics), ("train_metrics", train_metrics)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"Trainer: {argument} is {describe(given)}; give {{name: function or object}}")
        for name, metric in (given or {}).items():
            if is_metric_object(metric):
                objects.append(metric)
            elif not callable(metric):
                raise TypeError(
                    f"Trainer: {argument}[{name!r}] is {describe(metric)}; give a function (outputs, targets) -> number, or an object "
                    "with update, compute and reset"
                )
    _refuse_taken_names(metrics or {}, train_metrics or {})
    if len({id(m) for m in objects}) < len(objects):
        raise ArgumentError("Trainer: one object stands in metrics or train_metrics twice, and would count both; give one for each place")


def _refuse_taken_names(metrics: Mapping[str, Any], train_metrics: Mapping[str, Any]) -> None:
    validated = {"val_loss", *(f"val_{name}" for name in metrics)}
    reserved = {"epoch", "step", "loss", "lr"} | validated
    for argument, given, taken in (("metrics", metrics, {"loss"}), ("train_metrics", train_metrics, reserved)):
        for name in given:
            if name in taken:
                raise ArgumentError(f"Trainer: {argument} has {name!r}, which the history holds already; give it another name")


def check_loader(name: str, loader: Any, who: str = "fit") -> Any:
    """The loader. Raises TypeError for one that cannot be iterated once an epoch, ArgumentError for an empty validation loader."""
    if who != "fit" and isinstance(loader, Iterator):  # once is enough
        return loader
    if isinstance(loader, Iterator):
        raise TypeError(f"Trainer.{who}: {name} is {describe(loader)}, which is used up after one epoch; give a DataLoader or a list")
    if loader is not None and not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise TypeError(f"Trainer.{who}: {name} is {describe(loader)}; give a DataLoader, or anything else that batches can be iterated of")
    if loader is None and name != "validation_loader":
        raise TypeError(f"Trainer.{who}: {name} is None; give a DataLoader, or a list of batches")
    if name == "validation_loader" and count_batches(loader) == 0:  # raised now, and not after an epoch
        raise ArgumentError(f"Trainer.{who}: validation_loader has no batch; give one that is not empty, or None")
    return loader


def check_loss(loss: Any, at: str) -> None:
    """Refuse a loss that is no tensor of one number, or that no gradient can be had of."""
    if not isinstance(loss, Tensor):
        raise TypeError(f"Trainer.fit: {at} the loss is {describe(loss)}; give a tensor of one number, or from step a pair (loss, outputs)")
    if loss.numel() != 1:
        raise ShapeError(f"Trainer.fit: {at} the loss is {tuple(loss.shape)}, not one number; reduce it: loss.mean()")
    if not loss.requires_grad:
        raise GradError(
            f"Trainer.fit: {at} the loss does not depend on a parameter that requires a gradient; "
            "leave out detach(), item() and no_grad() on the way to it"
        )


def find_checkpoint(resume: bool | str | os.PathLike[str], checkpoint: Path | None) -> Path | None:
    """The checkpoint that `fit(resume=...)` names, None where it is to begin anew: there is none yet, or resume is False.

    Raises OSError for a folder that checkpoints cannot be written to: now, and not after an epoch.
    """
    if checkpoint is not None:
        _make_folder(checkpoint.parent)
    if not isinstance(resume, bool):
        if not os.path.exists(resume):
            raise MissingFileError(
                f"Trainer.fit: resume={os.fspath(resume)!r} is no file; give the path of a checkpoint, or True for the folder's"
            )
        return Path(resume)
    if not resume:
        return None
    if checkpoint is None:
        raise ArgumentError(
            "Trainer.fit: resume=True, and the trainer has no folder of checkpoints; give Trainer(checkpoint='out'), or a path here"
        )
    # the first start and every later one are the same command
    return checkpoint if checkpoint.exists() else None  # killed before it had saved anything


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(
            error.errno, f"Trainer.fit: no folder for checkpoints: {error.strerror}; give Trainer(checkpoint=...) another", str(folder)
        ) from None
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            errno.EACCES, "Trainer.fit: checkpoints cannot be written; give Trainer(checkpoint=...) another folder", str(folder)
        )


def match_states(callbacks: Sequence[Callback], saved: Sequence[tuple[str, Any]]) -> list[tuple[Callback, Any]]:
    """Each callback with the state that is saved for one of its class, in their order."""
    states, found = list(saved), []
    for callback in callbacks:
        mine = next((pair for pair in states if pair[0] == type(callback).__name__), None)
        if mine is not None:
            states.remove(mine)  # two callbacks of one class take two states, in order
            found.append((callback, mine[1]))
    return found


def read_state(path: Path) -> dict[str, Any]:
    """The state in a checkpoint. Raises CheckpointError for a file that a trainer has not written."""
    found = load(path)
    if not isinstance(found, dict) or not found.keys() >= _STATE:
        raise CheckpointError(
            f"Trainer.fit: {path} is no checkpoint of a Trainer; give one, or load its tensors with model.load_state_dict"
        )
    return found


def check_state(
    state: Mapping[str, Any], model: Module, kept: Mapping[str, Any], callbacks: Sequence[Callback], batches: int | None, accumulate: int
) -> None:
    """Refuse a checkpoint of another model, optimizer, scheduler, scaler or loader, or with the state of a callback that is not here."""
    if message := _describe_difference(model, state["model"]):
        raise CheckpointError(
            f"Trainer.fit: the checkpoint is of another model: {message}; give the model that it was saved with, or resume=False"
        )
    mine = {name: type(part).__name__ for name, part in kept.items()}
    for name in sorted(mine.keys() | state["kinds"].keys()):
        saved, here = state["kinds"].get(name), mine.get(name)
        if saved != here:
            raise CheckpointError(f"Trainer.fit: {name} is {here} here and {saved} in the checkpoint; give the same one, or resume=False")
    counts = {"batches an epoch": (state["batches"], batches), "batches a step (accumulate)": (state["accumulate"], accumulate)}
    for words, (before, now) in counts.items():
        if before != now:
            _refuse_other_count(words, before, now, state["run"]["epoch"], state["run"]["batch_index"])
    present = [type(c).__name__ for c in callbacks]
    for name, own in state["callbacks"]:
        if name in present:
            present.remove(name)
        elif own:
            raise CheckpointError(
                f"Trainer.fit: the checkpoint has the state of callback {name}, which is not here; give callbacks=[{name}(...)]"
            )


def _refuse_other_count(words: str, before: int | None, now: int | None, epoch: int, batch: int) -> None:
    """Refuse other batches in the middle of an epoch; warn of them between two, where training can go on."""
    message = f"Trainer.fit: the checkpoint is of batch {batch} of epoch {epoch}, with {before} {words}, and here there are {now}"
    if batch:
        raise CheckpointError(f"{message}; give the same data, batch size and accumulate, or a checkpoint of an epoch's end")
    warnings.warn(f"{message}; the losses will not be those of one run", stacklevel=5)


def _describe_difference(model: Module, saved: Mapping[str, Any]) -> str:
    mine = model.state_dict()
    shapes = [
        f"{n} is {tuple(mine[n].shape)} here and {tuple(saved[n].shape)} there"
        for n in mine
        if n in saved and hasattr(mine[n], "shape") and hasattr(saved[n], "shape") and tuple(mine[n].shape) != tuple(saved[n].shape)
    ]
    found = []
    for words, names in (("it lacks", mine.keys() - saved.keys()), ("it has besides", saved.keys() - mine.keys())):
        if names:
            found.append(f"{words} {_format_names(sorted(names))}")
    return "; ".join([*found, _format_names(shapes)] if shapes else found)


def _format_names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
