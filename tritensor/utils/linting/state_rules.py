"""Rules on a model's state: modules and tensors that are not registered; parameters shared, alike, of several types; wrong modes; the optimizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, is_lazy
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public
from tritensor.utils.linting.report import Slip, child_path, is_kind


def check_registration(path: str, module: Module) -> Iterator[Slip]:
    for name, value in vars(module).items():
        if name.startswith("_") and name in ("_parameters", "_buffers", "_modules", "_hooks", "_non_persistent_buffers_set"):
            continue
        held = _flatten_containers(value)
        for kind, container in ((Module, "nn.ModuleDict" if isinstance(value, dict) else "nn.ModuleList"),
                                (Parameter, "nn.ParameterDict" if isinstance(value, dict) else "nn.ParameterList")):  # fmt: skip
            if n := sum(isinstance(x, kind) for x in held):
                what = f"a plain {type(value).__name__} of {n} {kind.__name__}(s), which parameters(), to() and state_dict() do not see"
                yield Slip("not-registered", child_path(path, name), what, f"use {container}")
        if isinstance(value, Tensor) and not isinstance(value, Parameter) and value.grad_fn is None:  # else computed, as pruning does
            what, mend = "a tensor that to() does not move and state_dict() does not keep", "use register_buffer"
            if value.requires_grad:
                what, mend = "a tensor that requires grad and is no Parameter: no optimizer sees it", "make it an nn.Parameter"
            yield Slip("plain-tensor", child_path(path, name), what, mend)


def _flatten_containers(value: Any, deep: int = 3) -> list[Any]:
    """The members of plain containers, and of those in them."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list | tuple | set) or not deep:  # three levels: a list may hold itself
        return []
    return [
        x for item in value for x in ([item] if not isinstance(item, dict | list | tuple | set) else _flatten_containers(item, deep - 1))
    ]


def check_modes(path: str, module: Module) -> Iterator[Slip]:
    """A layer in the other mode than what it belongs to; statistics that go on moving though the layer is frozen."""
    for name, child in module.named_children():
        if module.training and not child.training and is_kind(child, "Dropout"):
            what = f"{type(child).__name__} is in eval mode and drops nothing, inside of what trains"
            yield Slip("left-in-eval", child_path(path, name), what, "call train() of the model")
    own = [p for p in module._parameters.values() if p is not None]
    moves = is_kind(module, "BatchNorm") and module.training and getattr(module, "track_running_stats", False)
    if moves and own and not any(p.requires_grad for p in own):
        what = "its weights are frozen, and its running statistics go on moving in training mode"
        yield Slip("frozen-norm", path, what, "call its eval() after each train()")
    for name, buffer in module._buffers.items():
        if buffer is not None and not is_lazy(buffer) and buffer.requires_grad and buffer.grad_fn is None:
            what = "a buffer that requires grad: no optimizer sees it"
            yield Slip("buffer-with-gradient", child_path(path, name), what, "make it an nn.Parameter")


def check_shared(model: Module) -> Iterator[Slip]:
    """One parameter in several places, but for an embedding that is the last layer's weight as well, which is tied on purpose."""
    owners: dict[int, list[tuple[str, str]]] = {}
    for path, module in model.named_modules(remove_duplicate=False):  # a module in two places shares its parameters too
        for name, p in module._parameters.items():
            if p is not None:
                owners.setdefault(id(p), []).append((child_path(path, name), type(module).__name__))
    for found in owners.values():
        kinds = [kind for _, kind in found]
        if len(found) > 1 and not any(k.startswith("Embedding") for k in kinds):  # tied to the output layer on purpose
            what = f"one parameter under {len(found)} names: {', '.join(path for path, _ in found)}"
            yield Slip("shared", found[0][0], what, "if it is not tied on purpose, make a module of its own for each place")


def check_values(model: Module) -> Iterator[Slip]:
    """Parameters with NaN, and weights that are all 0 or all alike."""
    params = [(name, p) for name, p in model.named_parameters() if not is_lazy(p)]
    zero_before = ""
    for name, p in params:
        if not p.numel() or p.is_meta or not (p.is_floating_point() or p.is_complex()):
            continue
        found = p.detach()
        first = found.reshape(-1)[0]
        if not bool(public["isfinite"](found).all()):
            yield Slip("not-finite", name, "it holds NaN or infinite values", "initialise it anew, or load a sound checkpoint")
        elif p.ndim > 1:
            alike = min(p.shape[:2]) > 1 and bool((found == first).all())  # a single unit has none to differ from
            zero = alike and first.item() == 0
            if zero and zero_before:
                yield Slip(
                    "all-zero", name, f"all its weights are 0, and so are those of {zero_before} before it: no gradient reaches either",
                    "initialise one of them, as with nn.init.kaiming_uniform_",
                )  # fmt: skip
            elif alike and not zero:
                what = f"all its weights are {first.item():g}, so that its units stay alike"
                yield Slip("all-alike", name, what, "initialise it, as with nn.init.kaiming_uniform_")
            zero_before = name if zero else ""  # one zero layer alone still learns, as in a residual branch


def check_frozen(model: Module) -> Iterator[Slip]:
    """A model that is to learn, and cannot."""
    params = list(model.parameters())
    if params and not any(p.requires_grad for p in params):
        yield Slip("all-frozen", "", "none of its parameters requires grad: nothing is learned", "call requires_grad_() on those to learn")


def check_mixed(model: Module) -> Iterator[Slip]:
    """Parameters of float64 among others, and parameters and buffers on several devices."""
    params = [(name, p) for name, p in model.named_parameters() if not is_lazy(p)]
    kinds = Counter(p.dtype.name for _, p in params if p.is_floating_point())
    if len(kinds) > 1 and "float64" in kinds:
        odd = "float64" if kinds["float64"] * 2 <= kinds.total() else kinds.most_common()[-1][0]  # the fewer are the mistake
        names = [name for name, p in params if p.dtype.name == odd]
        what = f"{kinds.total()} parameters are of {_format_counts(kinds)}: {_format_names(names)}"
        yield Slip("mixed-types", names[0], what, "call model.float() or model.double()")
    held = [*params, *[(name, b) for name, b in model.named_buffers() if not is_lazy(b)]]
    devices = Counter(str(t.device) for _, t in held)
    if len(devices) > 1:
        least = devices.most_common()[-1][0]  # most often one layer that was made after model.to(device)
        names = [name for name, t in held if str(t.device) == least]
        what = f"parameters and buffers are on {_format_counts(devices)}: {_format_names(names)} on {least}"
        yield Slip("mixed-devices", names[0], what, "call model.to(device) once all is made")


def _format_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} ({n})" for kind, n in counts.most_common())


def _format_names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def check_optimizer(model: Module, optimizer: Any) -> Iterator[Slip]:
    """Parameters that an optimizer does not move, or that are another model's; rates of 0; a model that is not in training mode."""
    groups = optimizer.param_groups
    given = {id(p) for group in groups for p in group["params"]}
    params = list(model.named_parameters())
    strangers = len(given - {id(p) for _, p in params})
    if strangers:
        yield Slip(
            "not-of-the-model", "", f"{strangers} of the optimizer's {len(given)} parameters are not the model's",
            "make the optimizer of model.parameters(), once the model is whole and on its device",
        )  # fmt: skip
    for name, p in params:
        if p.requires_grad and id(p) not in given:  # a frozen one is left out on purpose
            yield Slip("not-optimized", name, "the optimizer does not have it", "give it to the optimizer, or call requires_grad_(False)")
    for i, group in enumerate(groups):
        if float(group.get("lr", 1.0)) == 0:
            yield Slip("rate-of-0", "", f"param_groups[{i}] of the optimizer has lr=0", "give a rate, unless a schedule raises it")
    if not model.training:
        yield Slip("not-training", "", "the model is in eval mode, and an optimizer is to train it", "call model.train()")
