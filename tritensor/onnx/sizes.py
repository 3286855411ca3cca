"""Numbers that vary with the sizes of the inputs: one value for each of the traced runs; and the search for them among the sizes that a graph has."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from tritensor.onnx.errors import DynamicAxisError


def _run_by_run(f: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    """The operator of two varying integers, or of one and a number."""

    def combine(self: Varying, other: Any) -> Any:
        if isinstance(other, Varying):
            return merge_runs([f(a, b) for a, b in zip(self.runs, other.runs, strict=True)])
        if isinstance(other, int):
            return merge_runs([f(a, other) for a in self.runs])
        return NotImplemented

    return combine


def _order_of_runs(f: Callable[[int, int], bool]) -> Callable[[Any, Any], bool]:
    """The comparison, which must come out alike in every run: the branch that follows is not in the graph."""

    def compare(self: Varying, other: Any) -> bool:
        others = other.runs if isinstance(other, Varying) else (other,) * len(self.runs)
        return self._require_agreement([f(a, b) for a, b in zip(self.runs, others, strict=True)])

    return compare


class Varying:
    """An integer with a value for each traced run. Arithmetic goes run by run, and gives an int where all runs agree."""

    __slots__ = ("runs",)

    def __init__(self, runs: tuple[int, ...]) -> None:
        self.runs = runs

    __add__ = __radd__ = _run_by_run(operator.add)
    __sub__, __rsub__ = _run_by_run(operator.sub), _run_by_run(lambda a, b: b - a)
    __mul__ = __rmul__ = _run_by_run(operator.mul)
    __floordiv__, __rfloordiv__ = _run_by_run(operator.floordiv), _run_by_run(lambda a, b: b // a)
    __mod__ = _run_by_run(operator.mod)

    def __neg__(self) -> Any:
        return merge_runs([-a for a in self.runs])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Varying) and self.runs == other.runs

    def __hash__(self) -> int:
        return hash(self.runs)

    def _require_agreement(self, found: list[bool]) -> bool:
        if len(set(found)) > 1:
            raise self.fixed_size_error("is compared with a number, and the outcome differs")
        return found[0]

    __lt__, __le__ = _order_of_runs(operator.lt), _order_of_runs(operator.le)
    __gt__, __ge__ = _order_of_runs(operator.gt), _order_of_runs(operator.ge)

    def __bool__(self) -> bool:
        return self._require_agreement([bool(a) for a in self.runs])

    def fixed_size_error(self, what: str) -> DynamicAxisError:
        """The error of a place where a number is needed."""
        return DynamicAxisError(f"a size that varies with the inputs ({', '.join(map(str, self.runs))} in the traced runs) {what}")

    def __index__(self) -> NoReturn:
        raise self.fixed_size_error("is needed as a number there")

    __int__ = __index__

    def __repr__(self) -> str:
        return f"Varying{self.runs}"


class VaryingFloat:
    """A float with a value for each traced run."""

    __slots__ = ("runs",)

    def __init__(self, runs: tuple[float, ...]) -> None:
        self.runs = runs

    def __float__(self) -> NoReturn:
        raise DynamicAxisError(
            f"a number that varies with the sizes of the inputs ({', '.join(map(str, self.runs))} in the traced runs) is needed as a constant there"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VaryingFloat) and self.runs == other.runs

    def __hash__(self) -> int:
        return hash(self.runs)

    def __repr__(self) -> str:
        return f"VaryingFloat{self.runs}"


class Repeated:
    """A tuple of one number, as long as a size says: the rows of each time step of a recurrent net."""

    __slots__ = ("count", "value")

    def __init__(self, value: Any, count: Varying) -> None:
        self.value, self.count = value, count

    def __repr__(self) -> str:
        return f"Repeated({self.value}, {self.count})"


def merge_runs(runs: list[int]) -> Any:
    """An int where all runs agree, else a Varying."""
    return runs[0] if all(r == runs[0] for r in runs) else Varying(tuple(runs))


def varies(x: Any) -> bool:
    """Whether an attribute holds anything that varies."""
    if isinstance(x, tuple | list):
        return any(varies(y) for y in x)
    if isinstance(x, dict):
        return any(varies(y) for y in x.values())
    if isinstance(x, slice):
        return varies((x.start, x.stop, x.step))
    return isinstance(x, Varying | VaryingFloat | Repeated)


def is_static_shape(shape: tuple[Any, ...]) -> bool:
    """Whether all sizes of a shape are numbers."""
    return all(type(n) is int for n in shape)


class Sizes:
    """The axes of a graph's values whose sizes vary, the inputs' first, and the values that were computed of them."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.axes: dict[Varying, tuple[Any, int]] = {}  # the first value that has a size, and the axis
        self.found: dict[Varying, Any] = {}

    def learn(self, value: Any) -> None:
        """Take up the sizes of a value of the graph."""
        for axis, n in enumerate(value.shape or ()):
            if isinstance(n, Varying):
                self.axes.setdefault(n, (value, axis))

    def vector(self, n: Varying) -> Any:
        """A size as an int64 vector of one element. Raises DynamicAxisError where it follows from no size that there is."""
        made = self.found.get(n)
        if made is None:
            made = self.found[n] = self._read_axis(n) or self._from_one_size(n) or self._from_quotient(n) or self._from_product(n)
        if made is None:
            raise DynamicAxisError(
                f"a size of {', '.join(map(str, n.runs))} in the traced runs follows from no size of the inputs or of what is computed before"
            )
        return made

    def _read_axis(self, n: Varying) -> Any:
        if n not in self.axes:
            return None
        g, (value, axis) = self.graph, self.axes[n]
        # Shape takes start and end from opset 15 on
        if g.opset >= 15:
            return g.op("Shape", value, start=axis, end=axis + 1, dtype=np.int64, shape=(1,))
        whole = g.op("Shape", value, dtype=np.int64, shape=(value.ndim,))
        return g.op("Gather", whole, [axis], axis=0, dtype=np.int64, shape=(1,))

    def _from_one_size(self, n: Varying) -> Any:
        """scale * size + shift, or size // scale + shift, the simplest first."""
        options = [(o, atom) for atom in self.axes if (o := _fit_line(atom.runs, n.runs)) is not None]
        if not options:
            return None
        (scale, shift), atom = min(options, key=lambda o: (o[0][1] != 0, o[0][0] != 1, abs(o[0][0].numerator) + o[0][0].denominator))
        return self._scale(self.vector(atom), scale, shift)

    def _from_quotient(self, n: Varying) -> Any:
        """(size + b) // d + c, with the smallest d and b."""
        # by what strides and pools divide; with all numbers tried, one would fit by chance
        for d in (2, 3, 4, 5, 6, 7, 8, 16, 32):
            for b in range(d):
                for atom in self.axes:
                    part = [(x + b) // d for x in atom.runs]
                    c = n.runs[0] - part[0]
                    if len(set(part)) > 1 and all(p + c == y for p, y in zip(part, n.runs, strict=True)):
                        floor = self.graph.op("Div", self._scale(self.vector(atom), Fraction(1), Fraction(b)), [d], shape=(1,))
                        return self._scale(floor, Fraction(1), Fraction(c))
        return None

    def _scale(self, x: Any, scale: Fraction, shift: Fraction) -> Any:
        """(x * numerator + shift) / denominator in integers."""
        g, d = self.graph, math.lcm(scale.denominator, shift.denominator)
        a, b = int(scale * d), int(shift * d)
        x = x if a == 1 else g.op("Mul", x, [a], shape=(1,))
        x = x if b == 0 else g.op("Add", x, [b], shape=(1,))
        return x if d == 1 else g.op("Div", x, [d], shape=(1,))

    def _from_product(self, n: Varying) -> Any:
        """A multiple of the product, the sum or the difference of two sizes, shifted."""
        g, atoms = self.graph, list(self.axes)
        for kind, f in (("Mul", lambda a, b: a * b), ("Add", lambda a, b: a + b), ("Sub", lambda a, b: a - b)):
            for i, a in enumerate(atoms):
                for b in atoms[i if kind == "Mul" else i + 1 :] if kind != "Sub" else atoms:
                    both = [f(p, q) for p, q in zip(a.runs, b.runs, strict=True)]
                    found = _fit_line(tuple(both), n.runs)
                    if found is not None and len(set(both)) > 1:
                        return self._scale(g.op(kind, self.vector(a), self.vector(b), shape=(1,)), *found)
        for i, a in enumerate(atoms):  # of three
            for j in range(i, len(atoms)):
                for c in atoms[j:]:
                    product = tuple([p * q * r for p, q, r in zip(a.runs, atoms[j].runs, c.runs, strict=True)])
                    if (found := _fit_line(product, n.runs)) is not None and found[1] == 0:
                        two = g.op("Mul", self.vector(a), self.vector(atoms[j]), shape=(1,))
                        return self._scale(g.op("Mul", two, self.vector(c), shape=(1,)), *found)
        return None

    def float_scalar(self, n: VaryingFloat) -> Any:
        """A float that varies, as a float64 scalar: a size, its root, or what is divided by these, times a number."""
        g = self.graph
        for atom in self.axes:
            for name, f in _FLOAT_FORMS.items():
                factors = [v / f(a) if a > 0 else math.nan for v, a in zip(n.runs, atom.runs, strict=True)]
                if all(abs(k - factors[0]) <= 1e-12 * abs(factors[0]) for k in factors):
                    x = g.cast(g.squeeze(self.vector(atom), [0]), np.float64)
                    x = x if name in ("size", "inverse") else g.op("Sqrt", x, shape=())
                    return g.op("Mul", x, factors[0]) if name in ("size", "root") else g.op("Div", g.const(np.float64(factors[0])), x)
        for atom in self.axes:  # scale * size + shift
            a, b = atom.runs, n.runs
            slope = (b[1] - b[0]) / (a[1] - a[0]) if a[1] != a[0] else 0.0
            shift = b[0] - slope * a[0]
            if slope and all(abs(slope * p + shift - q) <= 1e-12 * max(abs(q), 1) for p, q in zip(a, b, strict=True)):
                x = g.cast(g.squeeze(self.vector(atom), [0]), np.float64)
                return g.op("Add", g.op("Mul", x, slope), shift)
        raise DynamicAxisError(f"a number of {', '.join(map(str, n.runs))} in the traced runs follows from no size by a rule that is known")


_FLOAT_FORMS = {"size": lambda a: a, "inverse": lambda a: 1 / a, "root": math.sqrt, "inverse root": lambda a: 1 / math.sqrt(a)}


def _fit_line(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[Fraction, Fraction] | None:
    """(scale, shift) with y = scale * x + shift in every run; None where there is none, or only one with large parts."""
    k = next((i for i in range(1, len(x)) if x[i] != x[0]), None)
    if k is None:
        return None
    scale = Fraction(y[k] - y[0], x[k] - x[0])
    shift = y[0] - scale * x[0]
    # a fraction with large parts fits four runs by chance
    if scale == 0 or scale.denominator > 64 or any(scale * a + shift != b for a, b in zip(x, y, strict=True)):
        return None
    return scale, shift
