"""Validation of a public function's arguments: other libraries' names of parameters, the public signature, one-line errors.

A call under the function's own names pays for a `try` and no more: all of this runs after it has failed.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter
from typing import Any, NoReturn

import numpy as np

from tritensor.ground import call_site, errors
from tritensor.ground.call_site import warn
from tritensor.ground.errors import ArgumentError
from tritensor.ops.table import registry
from tritensor.random import Generator
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.parsing.data import parse_values

# What annotations say to `explain_error`; to a type checker both are anything, because arrays and lists are taken in many places.
Operand = Any  # a tensor, or a number
Tensors = Any  # a sequence of tensors

# A parameter and the names it goes by elsewhere: in numpy, the array API, and PyTorch's own numpy forms. `input` is the first
# parameter of every function on tensors, whatever its body calls it.
ALIASES: dict[str, tuple[str, ...]] = {
    "input": ("self", "x", "a", "x1"),
    "other": ("x2",),
    "dim": ("axis", "dims", "axes"),
    "dims": ("axis", "axes", "dim"),
    "keepdim": ("keepdims",),
    "shape": ("size",),
    "size": ("shape",),
}  # fmt: skip
# PyTorch's functions that take a number as their input beside a number: mul(5, 4) is tensor(20).
_OF_NUMBERS = ("add", "sub", "mul", "div", "true_divide", "floor_divide", "multiply", "subtract", "divide")
_KEYWORD = Parameter.KEYWORD_ONLY
_OUT = Parameter("out", _KEYWORD, default=None, annotation="Tensor | None")
_OPTIONS = (
    Parameter("layout", _KEYWORD, default=None, annotation="layout | None"),
    Parameter("pin_memory", _KEYWORD, default=False, annotation="bool"),
    Parameter("requires_grad", _KEYWORD, default=False, annotation="bool"),
)


@functools.cache
def parameters(f: Callable[..., Any]) -> dict[str, Parameter]:
    """A function's own parameters, by name."""
    return dict(inspect.signature(f).parameters)


def _first_parameter(f: Callable[..., Any]) -> str:
    return next(iter(parameters(f)), "")


def public_name(f: Callable[..., Any], name: str) -> str:
    """What callers call a parameter: the first one is `input` where the body says x."""
    return "input" if name == "x" and name == _first_parameter(f) else name


class PublicSignature(inspect.Signature):
    """The signature that callers see, made when someone asks for it: hundreds of functions are published at import."""

    __slots__ = ("_added", "_body")

    def __init__(self, f: Callable[..., Any], out: bool, maker: bool = False) -> None:
        self._body, self._added = f, (_OUT,) * out + _OPTIONS * maker

    @property
    def parameters(self) -> Any:
        """The parameters by public name."""
        found = [p.replace(name=public_name(self._body, p.name)) for p in parameters(self._body).values()]
        at = len(found) - (bool(found) and found[-1].kind is Parameter.VAR_KEYWORD)
        found[at:at] = [p for p in self._added if p.name not in parameters(self._body)]
        return {p.name: p for p in found}

    @property
    def return_annotation(self) -> Any:
        """What the function says that it returns."""
        return inspect.signature(self._body).return_annotation

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        """An ordinary signature with some parts changed."""
        given = {"parameters": list(self.parameters.values()), "return_annotation": self.return_annotation, **changes}
        return inspect.Signature(list(given["parameters"]), return_annotation=given["return_annotation"])


def repair_arguments(
    f: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a failed call of f, under f's own names. Raises where the names were not what was wrong.

    Raises:
        TypeError: arguments that fit no parameter, with the nearest name; something else where a tensor belongs.
        Exception: otherwise the error itself.
    """
    assert error.__traceback__ is not None
    if getattr(error, "ran_late", False):  # of another call, which had waited
        raise error
    if name in _OF_NUMBERS and args and isinstance(args[0], int | float | complex):
        return (new_tensor(parse_values(name, args[0], None)), *args[1:]), dict(kwargs)
    if awaken(args, kwargs):
        return args, dict(kwargs)
    if args and _is_attribute(f, args[0]):
        return args[1:], dict(kwargs)
    # Python itself refused the call: no frame of f was entered, so names or counts were wrong.
    if type(error) is TypeError and not call_site.was_raised_inside(error.__traceback__):
        found = _rename_keywords(f, name, args, kwargs) or _reorder_legacy(name, args, kwargs) or _gather_dims(name, args, kwargs)
        return found if found is not None else _refuse_signature(f, name, args, kwargs)
    wrong = explain_error(f, name, args, kwargs, error)
    if wrong is None:
        if not any(map(inspect.isroutine, args)):  # a user's callback may have raised: its error is not about this call
            _use_public_names(f, name, error)
        raise error
    raise wrong from None


def _is_attribute(f: Callable[..., Any], owner: Any) -> bool:
    """Whether f was called as an attribute of an object's class, `activation = torch.tanh`: PyTorch's functions, which are no Python, do not bind to it."""
    if isinstance(owner, Tensor):  # whose methods these functions are
        return False
    body = inspect.unwrap(f)  # a mode or a class may have put itself around it
    held = [value for kind in type(owner).__mro__ for value in tuple(vars(kind).values()) if hasattr(value, "__wrapped__")]
    return any(inspect.unwrap(value) is body for value in held)


def awaken(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a class takes the call over of which nobody knew. Put here by tritensor.tensor.overriding."""
    raise RuntimeError("overriding is not loaded; import tritensor")


def pop_first_argument(f: Callable[..., Any], name: str, kwargs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The first argument of f and the others, of a call without arguments by place. Raises TypeError where it is not among them."""
    given = (_rename_keywords(f, name, (), kwargs) or ((), dict(kwargs)))[1]
    first = _first_parameter(f)
    if first not in given:
        _refuse_signature(f, name, (), given)
    return given.pop(first), given


def _use_public_names(f: Callable[..., Any], name: str, error: Exception) -> None:
    """Put what an op has said of its own name and inputs into the name that was called and that function's parameters."""
    own, _, text = str(error).partition(": ")
    if text.endswith("waited for)"):  # an error of an earlier call, which only the GPU has seen
        return
    # Only errors of this library's form begin with an op's name that may be replaced.
    if type(error).__module__ != errors.HOME and not (
        type(error) in (TypeError, IndexError) and (hasattr(Tensor, own) or registry.known(own))
    ):
        return
    if re.fullmatch(r"cuda(:\d+)?", own):  # which says where
        error.args = (f"{name}: {own}: {text}",)
    if not re.fullmatch(r"[A-Za-z_][\w./]*", own) or own == "cuda" or own.startswith(name + ".") or own.endswith("." + name):
        return
    tensors = [
        public_name(f, n) for n, p in parameters(f).items() if set(str(p.annotation).split(" | ")) & {"Tensor", "Operand", "Tensors"}
    ]
    op = registry.known(own)
    letters = op.inputs if op is not None and own == name.removesuffix("_") else ("x",)
    if own == "matmul":  # of mm, bmm, mv, addmm, ...: the last two
        letters, tensors = ("a", "b"), tensors[-2:]
    for letter, public in zip(letters, tensors, strict=False):
        if letter in ("a", "b", "x", "xs") and letter not in tensors:
            text = re.sub((_BEFORE_LETTER_A if letter == "a" else _BEFORE_OTHERS) + _LABEL.format(letter), public, text)
    error.args = (f"{name}: " + text.replace(f" {own} takes ", f" {name} takes "),)


# A letter where it stands for an array: before its shape, type or place. `a` is a word, too, but not behind these. PyTorch's "The size of tensor b (3)" stays.
_LABEL = r"\b{}\b(?= \((?:\d|\))|'s\b| is | has | holds | on |\[\d+\] on |$)"
_BEFORE_LETTER_A = r"(?:^|(?<=[,:@] )|(?<=\bnot )|(?<=\band )|(?<=\bof )|(?<=\bfor )|(?<=\bto ))"
_BEFORE_OTHERS = r"(?<![\w.])(?<!size of tensor )"


def _rename_keywords(
    f: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Arguments with other libraries' names replaced by f's; None where no name was."""
    own, given = parameters(f), dict(kwargs)
    # permute(x, dims=...) names a *parameter, which Python cannot pass by name.
    star = next((p.name for p in own.values() if p.kind is Parameter.VAR_POSITIONAL), None)
    changed = False
    for k in [k for k in kwargs if k not in own or k == star]:
        target = _find_parameter(f, k)
        if target is None:
            continue
        if target in given and target != k:
            raise TypeError(f"{name}: {public_name(f, target)} and {k} are two names for one argument; give one")
        given[target] = given.pop(k)
        changed = True
    if star is not None and star in given:  # `permute(x, dims=(1, 0))`: what stands before it has to be given by place, too
        lead = [p.name for p in own.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
        args = (*args, *(given.pop(k) for k in lead[len(args) :] if k in given), given.pop(star))
        changed = True
    return (args, given) if changed else None


# PyTorch's first order of arguments, which it still takes: numbers before the tensors that they multiply. Names of the numbers, and the orders in
# which (n)umbers and (t)ensors were given, those with the first tensor in front as methods.
_LEGACY_ORDERS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    **dict.fromkeys(("add", "sub"), (("alpha",), {"tnt"})),
    **dict.fromkeys(("addcmul", "addcdiv"), (("value",), {"tntt"})),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), (("beta", "alpha"), {"ntntt", "nttt", "tnntt", "tntt"})),
}


def _gather_dims(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Dims by place, `x.squeeze(0, 1)`, as one tuple; None for what takes one dim alone."""
    if name.removesuffix("_") == "squeeze" and len(args) > 2 and not kwargs and all(type(d) is int for d in args[1:]):
        return (args[0], args[1:]), {}
    return None


def _reorder_legacy(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Arguments in PyTorch's first order as today's, with a warning; None where they are not in that order."""
    names, orders = _LEGACY_ORDERS.get(name.removesuffix("_"), ((), set()))
    # Only an exact pattern of the old overloads is accepted: anything else is a mistake.
    order = "".join("t" if isinstance(a, Tensor) else "n" if isinstance(a, int | float | complex | np.number) else "?" for a in args)
    if order not in orders:
        return None
    numbers = dict(zip(names, [a for a in args if not isinstance(a, Tensor)], strict=False))
    if numbers.keys() & kwargs.keys():
        return None
    warn(
        f"{name}: a number before the tensors that it multiplies is PyTorch's old order of arguments; give it by name, "
        f"as {' and '.join(f'{k}=...' for k in numbers)}",  # without its value: each line that calls warns once
    )
    return tuple(a for a in args if isinstance(a, Tensor)), {**kwargs, **numbers}


def _find_parameter(f: Callable[..., Any], k: str) -> str | None:
    """The parameter of f that goes by the name k elsewhere."""
    if k in getattr(f, "also", ()):
        return f.also[k]  # type: ignore[attr-defined]
    for own in parameters(f):
        if k == own or k in ALIASES.get(own, ()):
            return own
    first = _first_parameter(f)
    return first if first == "x" and (k == "input" or k in ALIASES["input"]) else None


def _refuse_signature(f: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NoReturn:
    """Raise what is to be said about arguments that do not fit f's parameters."""
    own = parameters(f)
    takes = f"{name} takes ({', '.join(_parameters_text(f, own))})"
    known = [public_name(f, p.name) for p in own.values() if p.kind is not Parameter.VAR_KEYWORD]
    for k in kwargs:
        if k not in own:
            near = difflib.get_close_matches(k, known, 1, 0.5)
            raise TypeError(f"{name}: no keyword {k!r}" + (f", did you mean {near[0]!r}?" if near else ";") + f" {takes}") from None
    by_place = [p.name for p in own.values() if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.POSITIONAL_ONLY)]
    for p in by_place[: len(args)]:
        if p in kwargs:
            raise TypeError(f"{name}: {public_name(f, p)} is given twice, by place and by name; {takes}") from None
    if len(args) > len(by_place):
        raise TypeError(f"{name}: {len(args)} arguments by place; {takes}") from None
    needed = [p for p in own.values() if p.default is Parameter.empty and p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]
    missing = [public_name(f, p.name) for p in needed if p.name not in by_place[: len(args)] and p.name not in kwargs]
    raise TypeError(f"{name}: {' and '.join(missing)} missing; {takes}") from None


def _parameters_text(f: Callable[..., Any], own: Mapping[str, Parameter]) -> list[str]:
    """The parameters, with the star before those that are given by name alone."""
    found = [_parameter_text(f, p) for p in own.values()]
    by_kind = [p.kind for p in own.values()]
    if _KEYWORD in by_kind and Parameter.VAR_POSITIONAL not in by_kind:
        found.insert(by_kind.index(_KEYWORD), "*")
    return found


def _parameter_text(f: Callable[..., Any], p: Parameter) -> str:
    """A parameter as a signature spells it, without its type."""
    return str(p.replace(name=public_name(f, p.name), annotation=Parameter.empty))


def explain_error(f: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> TypeError | None:
    """The error to raise instead of one that an argument of a wrong type has led to; None where all are of their type."""
    numpys = isinstance(error, TypeError) and type(error).__module__.startswith("numpy")
    if numpys or type(error) in (TypeError, AttributeError, ValueError, ArgumentError):  # not one of our own, which know better
        # Looked for only after a failure: checking annotations at each call would cost more than small ops.
        wrong = _find_wrong_argument(f, args, kwargs)
        own_words = str(error).startswith(f"{name}: ")  # which say more, but not about a tensor that is none
        if wrong is not None and not (own_words and "tensor" not in wrong[2]):
            return TypeError(f"{name}: {wrong[0]} is {_describe_type(wrong[1])}; {wrong[2]}")
        if type(error) is TypeError and not re.match(r"\w+: ", str(error)):  # Python's own words, which do not say where
            return TypeError(f"{name}: {error}")
    return None


def bool_parameters(f: Callable[..., Any]) -> tuple[tuple[int, str], ...]:
    """(place, name) of f's parameters that are True or False and nothing else."""
    code = getattr(f, "__code__", None)
    if code is None:
        return ()
    given = f.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple((i if i < code.co_argcount else sys.maxsize, n) for i, n in enumerate(names) if given.get(n) in ("bool", bool))


def require_bools(
    f: Callable[..., Any], name: str, found: tuple[tuple[int, str], ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Raise TypeError where a number stands for True or False: `x.sum(0, 1)` means two dims, and would keep one."""
    for place, own in found:
        value = args[place] if place < len(args) else kwargs.get(own, True)
        # Tensors and strings are left to the function, which says more about them.
        if type(value) is not bool and isinstance(value, int | float | np.number):
            raise TypeError(f"{name}: {public_name(f, own)} is {value}, {_describe_type(value)}; give True or False")


def public_error(f: Callable[..., Any], args: tuple[Any, ...], error: Exception) -> Exception:
    """The error for users instead of one that a call of f has led to; for functions that are not wrapped by `checked`."""
    better = explain_error(f, f.__name__, args, {}, error)
    if better is None:
        _use_public_names(f, f.__name__, error)
    return better or error


def _find_wrong_argument(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, Any, str] | None:
    """An argument of a wrong type: its name, itself, what to give. Of several, one that no list or array would stand for."""
    found = [w for n, annotation, value in _bind_arguments(f, args, kwargs) for w in _check_annotation(n, annotation, value)]
    found.sort(key=lambda w: isinstance(w[1], list | tuple | np.ndarray))
    return found[0] if found else None


def _bind_arguments(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """(public name, annotation, value) of each argument given; not those that are None where that is the default."""
    out, rest = [], list(args)
    for p in parameters(f).values():
        annotation, name = str(p.annotation), public_name(f, p.name)
        if p.kind is Parameter.VAR_POSITIONAL:
            # f(a, b) and f([a, b]) are one call of a *tensors function.
            several = annotation == "Tensor" and len(rest) == 1 and isinstance(rest[0], list | tuple)
            out += [(name, "Tensors", rest[0])] if several else [(f"{name}[{i}]", annotation, v) for i, v in enumerate(rest)]
            rest = []
        elif p.kind is not Parameter.KEYWORD_ONLY and rest:
            out.append((name, annotation, rest.pop(0)))
        elif p.name in kwargs or name in kwargs:
            out.append((name, annotation, kwargs[p.name if p.name in kwargs else name]))
        else:
            continue
        if out and out[-1][2] is None and p.default is None:
            out.pop()
    return out


def _check_annotation(name: str, annotation: str, value: Any) -> list[tuple[str, Any, str]]:
    """What is not of the type that its annotation declares, where that is one of those below."""
    annotations = set(annotation.split(" | "))
    if annotations & _SEQUENCES_OF_TENSORS:
        if not isinstance(value, list | tuple):
            listed = isinstance(value, Tensor) or (annotations != {"Tensors"} and isinstance(value, Iterator))  # which is used up
            return [] if listed else [(name, value, "give a list or tuple of tensors")]
        return [(f"{name}[{i}]", v, _advice(v, {"Tensor"})) for i, v in enumerate(value) if not isinstance(v, Tensor)]
    if isinstance(value, Tensor) and "Generator" not in annotations:
        return []  # a tensor of one element stands for a number
    if not annotations <= _CHECKABLE or (value is None and "None" in annotations):
        return []
    if isinstance(value, tuple(t for k in annotations & _ACCEPTED.keys() for t in _ACCEPTED[k])):
        return []
    return [(name, value, _advice(value, annotations))]


_NUMBERS = (bool, int, float, complex, np.generic)
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "Operand": _NUMBERS, "float": _NUMBERS, "int": (bool, int, np.integer), "str": (str,), "Dims": (int, np.integer, list, tuple),
    "Generator": (Generator,), "Sequence[int]": (list, tuple),
}  # fmt: skip
_SEQUENCES_OF_TENSORS = {"Tensors", "Iterable[Tensor]", "Sequence[Tensor]"}
_CHECKABLE = {"Tensor", "None", *_ACCEPTED}
_WORDS = {
    "Operand": "a number",
    "float": "a number",
    "int": "an int",
    "str": "a str",
    "Dims": "an int or a tuple of them",
    "Sequence[int]": "a tuple of ints",
    "Generator": "a tritensor.Generator",
}


def _advice(value: Any, annotations: set[str]) -> str:
    tensor = bool(annotations & {"Tensor", "Operand"})
    names = ["a tensor"] * tensor + sorted({_WORDS[k] for k in annotations & _WORDS.keys()})
    made = f" (tritensor.{'from_numpy' if isinstance(value, np.ndarray) else 'tensor'}(...))" if tensor else ""
    return f"give {' or '.join(names)}{made}"


def _describe_type(value: Any) -> str:
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
