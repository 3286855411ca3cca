"""The record of an op with its corners, and what tests and benchmarks need of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tritensor.ops.table.owner import Owner

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("uint8", "int8", "int16", "int32", "int64")


class Spec(NamedTuple):
    """Shape and numpy dtype of an array that does not exist yet: what a shape rule returns."""

    shape: tuple[int, ...]
    dtype: np.dtype


class Work(NamedTuple):
    """The work that one call must do at least: floating point operations, and bytes read plus written."""

    flops: int
    bytes: int


class Sample:
    """One call of an op for tests or benchmarks: positional inputs (numpy arrays, Python scalars, None) and attributes.

    Floating arrays are drawn in float64; the questions cast them to the type under test. `smooth=False` marks a
    point where finite differences do not exist (a kink, a tie): values are compared there, derivatives are not.
    `in_c_order=True`: a view that other strides do not allow; it is asked of C-ordered inputs only.
    """

    __slots__ = ("attrs", "in_c_order", "inputs", "smooth")

    def __init__(self, *inputs: Any, smooth: bool = True, in_c_order: bool = False, **attrs: Any) -> None:
        self.inputs = inputs
        self.attrs = attrs
        self.smooth = smooth
        self.in_c_order = in_c_order

    def __repr__(self) -> str:
        shown = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in self.inputs]
        return f"Sample({', '.join(shown + [f'{k}={v!r}' for k, v in self.attrs.items()])})"


class Partials(NamedTuple):
    """A gradient corner in normal form: one joint function, or one function per input, each with the names it asks for.

    `fetches` says for every name where a node holds it: ("input", 0), ("output", 1), ("attr", "dim"), ("shape", 0),
    ("dtype", 0), ("inputs" | "shapes" | "dtypes", first of the variadic ones), ("needs", None).
    `steps` joins per function: its place among the inputs, the function, its fetches, and for the engine's short cut
    the place of the one input that it names (-1 when it names nothing, -2 when there is more to fetch).
    """

    functions: tuple[Callable[..., Any] | None, ...]
    names: tuple[tuple[str, ...], ...]
    joint: bool
    fetches: tuple[tuple[tuple[str, Any], ...], ...] = ()
    steps: tuple[tuple[int, Any, tuple[tuple[str, Any], ...], int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Op:
    """One op: {forward, backward} x {Triton kernel, the CPU, plain mathematics}, and what tests and benchmarks need of it.

    Built by `op(...)`, which documents the fields. `inputs`, `attrs`, `required`, `variadic` are read off the
    signature of `reference`; the `Partials` are the gradient corners in normal form.
    """

    name: str
    reference: Callable[..., Any]
    shape: Callable[..., Any]
    forward: Callable[..., Any] | None
    rule: Partials | None
    backward: Partials | None
    cpu: Callable[..., Any]  # what the CPU runs: the author's, or reference as plain_cpu.py makes it serve
    cpu_backward: Partials | None
    outputs: tuple[str, ...]
    residuals: tuple[str, ...]
    mutates: tuple[str, ...]
    borrows: tuple[int, ...]  # places of inputs, ~places of outputs
    view: bool
    layout: str
    broadcasts: bool
    promote: str | None
    into: bool
    reports: bool
    holomorphic: bool
    autocast: str | dict[str, str] | None
    host: Callable[..., Any] | None
    dtypes: tuple[str, ...]
    samples: Callable[[np.random.Generator], Sequence[Sample]]
    sizes: Callable[[np.random.Generator], Sequence[Sample]] | None
    work: Callable[..., Work] | None
    configs: Callable[[tuple[Any, ...]], Sequence[Any]] | None
    tolerance: dict[str, tuple[float, str]]
    condition: tuple[Callable[..., Any] | str, ...]
    inputs: tuple[str, ...]
    required: int
    variadic: bool
    attrs: dict[str, Any]
    doc: str
    module: str
    owner: Owner
    forms: tuple[str, ...]  # public ones that are made of the record: see tensor/public_api/op_forms.py
    public: int  # how many outputs the caller sees
    keep_cache: dict[tuple[bool, ...], tuple[tuple[bool, ...], tuple[bool, ...], bool]] = field(default_factory=dict)

    @property
    def differentiable(self) -> bool:
        """True where the op has a gradient."""
        return self.rule is not None

    @property
    def rule_names(self) -> set[str]:
        """All that the rules of the inputs' gradients name, taken together."""
        return set() if self.rule is None else {n for names in self.rule.names for n in names}

    def keep(self, needs: tuple[bool, ...]) -> tuple[tuple[bool, ...], tuple[bool, ...], bool]:
        """The inputs and outputs that a node must hold when the inputs flagged in `needs` want gradients.

        Returns a flag per input (a variadic input has one), a flag per output, and whether shapes are asked for.
        """
        # asked at each recorded call, and there are few patterns of needs
        found = self.keep_cache.get(needs)
        if found is None:
            asked: set[str] = set()
            for corner in (self.rule, self.backward, self.cpu_backward):
                if corner is None:
                    continue
                for i, names in enumerate(corner.names):
                    # a joint corner beside rules for each gradient: which inputs it takes, the rules say
                    if corner.joint and self.rule is not None and not self.rule.joint:
                        asked.update(n for n in names if n not in self.rule_names or n.endswith(("_shape", "_dtype")))
                    elif corner.joint or (i < len(needs) and needs[i]):
                        asked.update(names)
            shapes = self.broadcasts or any(n.endswith(("_shape", "_dtype")) and n not in self.attrs for n in asked)
            found = (tuple(n in asked for n in self.inputs), tuple(n in asked for n in self.outputs), shapes)
            self.keep_cache[needs] = found
        return found
