"""The walk: what differs between an optimizer of ours and PyTorch's on one input of its database, in words; "" where nothing does."""

from __future__ import annotations

import re
import warnings
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import tritensor as tt

STEPS = 50
BOUNDS = {"float32": 1e-5, "float64": 1e-10}
INFOS = {info.name: info for info in optim_db}
# Why an optimizer is not walked, or not so far.
ABSENT = {"SparseAdam": "it takes sparse gradients alone, which are not here; its refusal of dense ones is asked"}
# Where the two libraries round in another order: (optimizer, type, way) with any of them None, and how far that leads.
COARSE = {
    ("Muon", None, None): 3e-4,  # matrices in bfloat16, whose last bit is a hundredth of a step
    # Where a search ends the last rounding of the loss decides: PyTorch's own results with one parameter an ulp off are 3.8e-4 apart.
    ("LBFGS", "float32", None): 5e-4,
    (
        "ASGD",
        "float64",
        "foreach",
    ): 1e-8,  # torch's own two ways differ: one keeps eta in float32 between steps, the other computes with it there
}
SHAPES = [(4, 3), (2, 5), (3,), (), (2, 3, 4)]


def translated(value: Any) -> Any:
    """Torch's tensors in settings as ours."""
    if isinstance(value, torch.Tensor):
        return tt.tensor(value.tolist(), dtype=getattr(tt, str(value.dtype).removeprefix("torch.")))
    if isinstance(value, dict):
        return {k: translated(v) for k, v in value.items()}
    return type(value)(translated(v) for v in value) if isinstance(value, list | tuple) else value


def back(value: Any) -> Any:
    """Our tensors in a state as torch's."""
    if isinstance(value, tt.Tensor):
        return torch.from_numpy(np.array(value.detach().numpy()))
    if isinstance(value, dict):
        return {k: back(v) for k, v in value.items()}
    return type(value)(back(v) for v in value) if isinstance(value, list | tuple) else value


def outline(state: Any) -> Any:
    """A state with its tensors as types and shapes, its numbers as their types."""
    if isinstance(state, torch.Tensor | tt.Tensor):
        return str(state.dtype).split(".")[-1], tuple(state.shape)
    if isinstance(state, dict):
        return {k: outline(v) for k, v in state.items()}
    if isinstance(state, list | tuple):  # of LBFGS: how many steps are kept near the end the last rounding decides
        return {str(outline(v)) for v in state}
    return type(state).__name__


class Run:
    """One library's parameters and optimizer, and the problem they solve."""

    def __init__(self, library: Any, name: str, settings: dict[str, Any], dtype: str) -> None:
        rng = np.random.default_rng(0)
        shapes = SHAPES[:2] if name == "Muon" else SHAPES
        self.framework, self.name, self.dtype = library, name, dtype
        self.targets = [rng.standard_normal(s) for s in shapes]
        self.params = [library.nn.Parameter(self.tensor(rng.standard_normal(s))) for s in shapes]
        self.optimizer = getattr(library.optim, name)(self.params, **settings)

    def tensor(self, x: Any) -> Any:
        return self.framework.tensor(np.asarray(x).tolist(), dtype=getattr(self.framework, self.dtype))

    def closure(self) -> Any:
        """A valley with walls of different steepness."""
        self.optimizer.zero_grad()
        loss = sum(
            (
                ((p - self.tensor(t)) ** 2 * (k + 1)).sum() + (p * p * p * p).sum() * 0.1
                for k, (p, t) in enumerate(zip(self.params, self.targets, strict=True))
            )
        )
        loss.backward()
        return loss

    def step(self, t: int) -> list[np.ndarray]:
        if self.name == "LBFGS":
            self.optimizer.step(self.closure)
        else:
            rng = np.random.default_rng(t)
            for p in self.params:
                noise = rng.standard_normal(tuple(p.shape))
                p.grad = None if t % 7 == 3 and p.ndim == 1 else self.tensor(noise + 0.3 * np.sin(t))
            self.optimizer.step()
        return [np.array(p.detach().numpy(), np.float64) for p in self.params]


def differs(name: str, settings: dict[str, Any], dtype: str, exchange: bool = False) -> str:
    """What differs in STEPS steps; with `exchange` each library loads the other's state halfway."""
    theirs, ours = Run(torch, name, deepcopy(settings), dtype), Run(tt, name, translated(settings), dtype)
    way = next((w for w in ("foreach", "fused") if settings.get(w)), None)
    bound = next((b for (n, t, w), b in COARSE.items() if n == name and t in (None, dtype) and w in (None, way)), BOUNDS[dtype])
    for t in range(STEPS if name != "LBFGS" else 5):
        found = [run.step(t) for run in (ours, theirs)]
        for k, (x, y) in enumerate(zip(*found, strict=True)):
            worst = float(np.max(np.abs(x - y) / np.maximum(1.0, np.abs(y)), initial=0.0))
            if not worst <= bound:
                return f"parameter {k} is {worst:.1e} away after step {t + 1}"
        if t == 0 or t == STEPS - 1:
            mine, other = ours.optimizer.state_dict(), theirs.optimizer.state_dict()
            if outline(mine["state"]) != outline(other["state"]):
                return f"states after step {t + 1}: {outline(mine['state'])}, torch {outline(other['state'])}"
            if [sorted(g) for g in mine["param_groups"]] != [sorted(g) for g in other["param_groups"]]:
                return f"groups: {mine['param_groups']}, torch {other['param_groups']}"
        if exchange and t == 2:
            mine, other = deepcopy(ours.optimizer.state_dict()), deepcopy(theirs.optimizer.state_dict())
            ours.optimizer.load_state_dict(translated(other))
            if dtype == "float32":  # torch casts numbers of a state, too, to a parameter of float64
                theirs.optimizer.load_state_dict(back(mine))
    return ""


def inputs_of(name: str) -> list[tuple[str, dict[str, Any]]]:
    """(description, settings) of an optimizer's inputs, each of PyTorch's ways of stepping on the CPU among them."""
    info = INFOS[name]
    found = [(i.desc, i.kwargs) for i in info.optim_inputs_func("cpu")]
    ways = [w for w in ("foreach", "fused") if w in info.supported_impls and (w != "fused" or "cpu" in info.supports_fused_on)]
    return found + [(w, {**found[0][1], w: True}) for w in ways]


def accepted(name: str) -> list[str]:
    """What of an optimizer's bad inputs is not refused as PyTorch does."""
    found: list[str] = []
    if name in ABSENT:
        return found
    for error in INFOS[name].optim_error_inputs_func("cpu", torch.float32):
        given, library = error.optimizer_error_input, tt
        params = parameters(given.params)
        said = ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                optimizer = getattr(library.optim, name)(params, **translated(given.kwargs))
                if error.error_on == OptimizerErrorEnum.STEP_ERROR:
                    for p in optimizer.param_groups[0]["params"]:
                        p.grad = tt.ones_like(p)
                    optimizer.step()
        except Exception as e:
            said = str(e)
            if not isinstance(e, error.error_type) and error.error_type is not UserWarning:  # of what torch warns, it is refused here
                found.append(f"{given.desc}: {type(e).__name__}, torch {error.error_type.__name__}")
            elif not re.search(error.error_regex, said) and error.error_type is not UserWarning:
                found.append(f"{given.desc}: {said!r}, torch {error.error_regex!r}")
        if not said:
            found.append(f"{given.desc}: accepted")
    return found


def parameters(given: Any) -> Any:
    """The parameters of a bad input as ours, the same tensor for the same tensor."""
    known: dict[int, Any] = {}

    def ours(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return known.setdefault(id(x), tt.nn.Parameter(tt.tensor(x.tolist())))
        if isinstance(x, dict):
            return {k: ours(v) for k, v in x.items()}
        return type(x)(ours(v) for v in x) if isinstance(x, list | tuple) else x

    return [tt.nn.Parameter(tt.ones(2, 2))] if given is None else ours(given)
