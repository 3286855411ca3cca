"""One entry of PyTorch's module database walked over both libraries: built alike, loaded with PyTorch's state, called, differentiated."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.common_modules import ModuleErrorEnum

import tritensor as tt
from tests.peer.opinfo.compare import Difference, same, strides_agree, tensors, tracking_agrees
from tests.peer.opinfo.translate import Untranslatable, copied, named, translated
from tests.peer.opinfo.walk import Count, Failure, _limit, _seeded, _TooLong, _weights

FORWARD, BACKWARD = "float32", "float64"
SECONDS = 30
BUILT = 20  # times that a module is built to compare what its parameters start with
# Modules whose training output is drawn by chance: their shapes, types and gradients' presence are compared.
CHANCE = {
    "nn.Dropout", "nn.Dropout1d", "nn.Dropout2d", "nn.Dropout3d", "nn.AlphaDropout", "nn.FeatureAlphaDropout", "nn.RReLU",
}  # fmt: skip
ALWAYS_CHANCE = {"nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d"}  # in evaluation, too


@dataclass
class Found:
    """All that a walk over one entry found."""

    missing: str = ""
    counts: dict[str, Count] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    strides: Count = field(default_factory=Count)

    def tried(self, where: str, index: int, told: str, test: Callable[[], bool | None]) -> None:
        """Count one test; a Difference becomes a failure, None is no test."""
        count = self.counts.setdefault(where, Count())
        try:
            if test() is None:
                return
            count.passed += 1
        except Difference as error:
            self.failures.append(Failure(where, index, error.kind, error.detail, told))
        count.walked += 1
        count.there = count.walked


def name_of(info: Any) -> str:
    """An entry's line in the table: nn.Linear."""
    path = f"{info.module_cls.__module__}.{info.module_cls.__qualname__}".removeprefix("torch.")
    return "nn." + info.module_cls.__qualname__ if path.startswith("nn.modules.") else path


def _inputs(info: Any, kind: str, requires_grad: bool, training: bool) -> list[Any]:
    _seeded()
    return list(info.module_inputs_func(info, "cpu", getattr(torch, kind), requires_grad, training))


def _run(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Our answer; an exception becomes a Difference."""
    try:
        with _limit(SECONDS):
            return f(*args, **kwargs)
    except _TooLong as error:
        raise Difference("takes too long", f"more than {SECONDS} s") from error
    except Exception as error:
        raise Difference(f"raises {type(error).__name__}", str(error)) from error


def _ours(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return translated(value, memo)
    except Untranslatable as error:
        raise Difference("asks for what is not here", str(error)) from error


class Pair:
    """PyTorch's module and ours, built from one sample's arguments."""

    def __init__(self, info: Any, mine: Any, sample: Any, kind: str, training: bool) -> None:
        given = sample.constructor_input
        args, kwargs = copied((given.args, given.kwargs), {})
        _seeded()
        self.theirs = info.module_cls(*args, **kwargs).to(getattr(torch, kind)).train(training)
        args, kwargs = _ours((given.args, given.kwargs), {})
        self.ours = _run(mine, *args, **kwargs)
        _run(lambda: self.ours.to(getattr(tt, kind)).train(training))
        self.forward = sample.forward_input
        self.chance = name_of(info) in ALWAYS_CHANCE or (training and name_of(info) in CHANCE)

    def load(self) -> None:
        """Give ours the state of theirs."""
        state = {k: _ours(v, {}) if isinstance(v, torch.Tensor) else v for k, v in self.theirs.state_dict().items()}
        done = _run(self.ours.load_state_dict, state)
        assert not done.missing_keys, done
        assert not done.unexpected_keys, done

    def same_state(self, values: bool = True) -> None:
        """Raise Difference unless the two state dicts have the same names in the same order, shapes, types and (values) numbers."""
        theirs, ours = self.theirs.state_dict(), _run(self.ours.state_dict)
        if list(theirs) != list(ours):
            raise Difference("state_dict's keys", f"{list(theirs)} in PyTorch, {list(ours)} here")
        for key, value in theirs.items():
            try:
                same("state", value, ours[key], values)
            except Difference as error:
                raise Difference(f"state_dict's {error.kind}", f"{key}: {error.detail}") from error

    def called(self) -> tuple[Any, Any, list[torch.Tensor], list[tt.Tensor]]:
        """Both answers, and the tensors that both were given."""
        memo: dict[int, torch.Tensor] = {}
        args, kwargs = copied((self.forward.args, self.forward.kwargs), memo)
        torch.manual_seed(0)
        want = self.theirs(*args, **kwargs)
        our_memo: dict[int, tt.Tensor] = {}
        args, kwargs = _ours((self.forward.args, self.forward.kwargs), our_memo)
        tt.manual_seed(0)
        return want, _run(self.ours, *args, **kwargs), list(memo.values()), list(our_memo.values())


def _loaded(info: Any, mine: Any, sample: Any, kind: str, training: bool) -> Pair:
    """A pair with one state; a lazy one after a first call, which made its parameters."""
    pair = Pair(info, mine, sample, kind, training)
    if info.is_lazy:
        pair.called()
    pair.load()
    return pair


def _built(info: Any, mine: Any, sample: Any) -> bool:
    """Constructor, repr and state dict, before anything is loaded."""
    pair = Pair(info, mine, sample, FORWARD, True)
    if repr(pair.theirs) != repr(pair.ours):
        raise Difference("repr", f"{pair.theirs!r} in PyTorch, {pair.ours!r} here")
    if not info.is_lazy:
        pair.same_state(values=False)
        theirs, ours = ({n: p.requires_grad for n, p in m.named_parameters()} for m in (pair.theirs, pair.ours))
        if theirs != ours:
            raise Difference("parameters", f"{theirs} in PyTorch, {ours} here")
    return True


def _starts(info: Any, mine: Any, sample: Any) -> bool | None:
    """What parameters start with: constants are the same, draws have the same mean and deviation and stay within the same bounds."""
    if info.is_lazy:
        return None
    theirs: dict[str, list[torch.Tensor]] = {}
    ours: dict[str, list[torch.Tensor]] = {}
    given = sample.constructor_input
    _seeded()
    for _ in range(BUILT):
        args, kwargs = copied((given.args, given.kwargs), {})
        for k, p in info.module_cls(*args, **kwargs).named_parameters():
            theirs.setdefault(k, []).append(p.detach().reshape(-1).double())
        args, kwargs = _ours((given.args, given.kwargs), {})
        for k, p in _run(mine, *args, **kwargs).named_parameters():
            ours.setdefault(k, []).append(torch.tensor(p.detach().reshape(-1).tolist(), dtype=torch.float64))
    for key, drawn in theirs.items():
        if key not in ours:
            raise Difference("start", f"{key} is not here")
        a, b = torch.cat(drawn), torch.cat(ours[key])
        if not a.numel():
            continue
        if float(a.std(correction=0)) == 0.0:
            if not torch.equal(a, b):
                raise Difference("start", f"{key} is {a[0]} in PyTorch, {b.unique().tolist()[:3]} here")
            continue
        error = 6 / a.numel() ** 0.5  # deviations of a mean, and about as many of a deviation
        spread = float(a.std())
        if abs(float(a.mean() - b.mean())) > error * 1.5 * spread or abs(float(b.std()) / spread - 1) > error:
            raise Difference("start", f"{key}: mean {a.mean():.4f}, deviation {a.std():.4f} in PyTorch, {b.mean():.4f}, {b.std():.4f} here")
    return True


def _forward(info: Any, mine: Any, sample: Any, training: bool, found: Found) -> bool | None:
    pair = _loaded(info, mine, sample, FORWARD, training)
    if pair.forward is None:
        return None
    want, have, _, _ = pair.called()
    same(name_of(info), want, have, not pair.chance)
    pair.same_state()
    found.strides.walked += 1
    found.strides.passed += strides_agree(want, have)
    return True


def _backward(info: Any, mine: Any, sample: Any, training: bool) -> bool | None:
    """Whether the gradients of a weighted sum of all results are PyTorch's, for inputs and parameters."""
    pair = _loaded(info, mine, sample, BACKWARD, training)
    if pair.forward is None:
        return None
    want, have, given, mine_given = pair.called()
    results = [t for t in tensors(want, torch.Tensor) if t.requires_grad and t.is_floating_point()]
    leaves = [t for t in given if t.requires_grad] + list(pair.theirs.parameters())
    if not results or not leaves:
        return None
    weights = [_weights(t) for t in results]
    try:
        gradients = torch.autograd.grad(results, leaves, weights, allow_unused=True)
    except RuntimeError:  # what PyTorch cannot differentiate is no sample
        return None
    same(name_of(info), want, have, not pair.chance)
    tracking_agrees(want, have)
    outputs = [o for t, o in zip(tensors(want, torch.Tensor), tensors(have, tt.Tensor), strict=True) if any(t is r for r in results)]
    inputs = [t for t in mine_given if t.requires_grad] + list(pair.ours.parameters())
    got = _run(tt.autograd.grad, outputs, inputs, [translated(w, {}) for w in weights], allow_unused=True)
    for g, ours, leaf in zip(gradients, got, leaves, strict=True):
        g = torch.zeros_like(leaf) if g is None else g
        try:
            same(name_of(info), g, translated(torch.zeros_like(leaf), {}) if ours is None else ours, not pair.chance)
        except Difference as error:
            raise Difference(f"gradient's {error.kind}", error.detail) from error
    return True


def _refused(info: Any, mine: Any, sample: Any, found: Found, index: int) -> bool | None:
    """What PyTorch refuses we refuse."""
    given, called = sample.module_error_input.constructor_input, sample.module_error_input.forward_input

    def attempt(cls: Any, convert: Callable[[Any, dict[int, Any]], Any]) -> None:
        args, kwargs = convert((given.args, given.kwargs), {})
        module = cls(*args, **kwargs)
        if sample.error_on == ModuleErrorEnum.FORWARD_ERROR:
            args, kwargs = convert((called.args, called.kwargs), {})
            module(*args, **kwargs)

    try:
        attempt(info.module_cls, copied)
        return None
    except Exception as error:
        wanted = error
    try:
        attempt(mine, _ours)
    except Difference:
        raise
    except Exception as error:
        if not isinstance(error, type(wanted)):
            found.classes.append(f"{index}: {type(error).__name__}, in PyTorch {type(wanted).__name__}")
        return True
    raise Difference("accepted", f"PyTorch: {str(wanted).splitlines()[0][:200]}")


def _signature(info: Any, mine: Any) -> bool:
    """The constructor's parameters, in order, with their defaults."""

    def told(cls: Any) -> list[str]:
        given = list(inspect.signature(cls.__init__).parameters.values())[1:]
        named_ones = [p for p in given if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]  # Module's own (*args, **kwargs) takes none
        return [f"{p.name}={'' if p.default is p.empty else getattr(p.default, '__name__', p.default)}" for p in named_ones]

    theirs, ours = told(info.module_cls), told(mine)
    if theirs != ours[: len(theirs)]:
        raise Difference("signature", f"({', '.join(theirs)}) in PyTorch, ({', '.join(ours)}) here")
    return True


def walked(info: Any) -> Found:
    """Everything about one entry."""
    found = Found()
    name = name_of(info)
    mine = named(name)
    if mine is None:
        found.missing = f"no {name}"
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.tried("signature", 0, "", lambda: _signature(info, mine))
        for training in (True, False):
            mode = "train" if training else "eval"
            for i, sample in enumerate(_inputs(info, FORWARD, False, training)):
                told = f"{sample.desc}: {sample.constructor_input.args} {sample.constructor_input.kwargs}"
                if training:
                    found.tried("built", i, told, lambda s=sample: _built(info, mine, s))
                    if i < 3:
                        found.tried("start", i, told, lambda s=sample: _starts(info, mine, s))
                found.tried(f"forward {mode}", i, told, lambda s=sample, t=training: _forward(info, mine, s, t, found))
            for i, sample in enumerate(_inputs(info, BACKWARD, True, training)):
                told = f"{sample.desc}: {sample.constructor_input.args} {sample.constructor_input.kwargs}"
                found.tried(f"backward {mode}", i, told, lambda s=sample, t=training: _backward(info, mine, s, t))
        if info.module_error_inputs_func is not None:
            _seeded()
            for i, sample in enumerate(info.module_error_inputs_func(info, "cpu", torch.float32, False, True)):
                given = sample.module_error_input.constructor_input
                found.tried("errors", i, f"{given.args} {given.kwargs}", lambda s=sample, i=i: _refused(info, mine, s, found, i))
    return found
