"""Writing a program at random: statements are run as they are drawn, so that the next one knows shapes and types."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import tritensor
from tests.fuzz.program import Program, facts
from tests.fuzz.running import compiled, names_of, readable

FLOATS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int64", "int32", "uint8", "int8", "int16")
SPECIAL = ("inf", "-inf", "nan", "-0.0", "1e30", "1e-30", "6e4", "-1e30")


class Writer:
    """Statements and the values that they have so far. `errors` is the share of statements that raise and stay in the program."""

    def __init__(self, rng: random.Random, errors: float = 0.15, prefix: str = "v") -> None:
        self.rng, self.errors, self.prefix = rng, errors, prefix
        self.statements: list[str] = []
        self.scope: dict[str, Any] = names_of(tritensor)
        self.count = 0

    def fresh(self) -> str:
        """A name that nothing has yet."""
        self.count += 1
        return f"{self.prefix}{self.count - 1}"

    def add(self, code: str) -> bool:
        """Run a statement and keep it, if it raises only sometimes. Whether it ran."""
        try:
            exec(compiled(code), self.scope)
        except Exception:
            if self.rng.random() < self.errors:
                self.statements.append(code)
            for name in facts(code).sets:
                self.scope.pop(name, None)
            return False
        self.statements.append(code)
        return True

    def put(self, expression: str) -> str | None:
        """A new name for an expression's value, or None where it raised."""
        name = self.fresh()
        return name if self.add(f"{name} = {expression}") else None

    def tensors(self, fits: Callable[[Any], bool] = lambda x: True) -> list[str]:
        """Names of the tensors so far that fit."""
        return [n for n, x in self.scope.items() if isinstance(x, tritensor.Tensor) and readable(x) and fits(x)]

    def any(self, fits: Callable[[Any], bool] = lambda x: True) -> str | None:
        """One of them, a younger one more often."""
        found = self.tensors(fits)
        if not found:
            return None
        return self.rng.choice(found[-3:] if self.rng.random() < 0.5 else found)

    def program(self) -> Program:
        return Program(tuple(self.statements))


def shape(rng: random.Random, least: int = 0, most: int = 4) -> tuple[int, ...]:
    """Sizes of 1 to 4, now and then a 0."""
    return tuple(
        rng.choice((1, 2, 2, 3, 3, 4) if rng.random() < 0.96 else (0,))
        for _ in range(rng.choice([least, *range(least, most + 1), min(2, most)]))
    )


def number(rng: random.Random, dtype: str, special: bool = False) -> str:
    """A number as text: quarters, which no type rounds, unless special ones are wanted."""
    if dtype == "bool":
        return str(rng.random() < 0.5)
    if dtype.startswith("complex"):
        return f"{rng.randint(-8, 8) / 4}{rng.randint(-8, 8) / 4:+}j"
    if dtype.startswith("uint"):
        return str(rng.randint(0, 6))
    if dtype.startswith("int"):
        return str(rng.randint(-4, 6))
    if special and rng.random() < 0.25:
        return rng.choice(SPECIAL)
    return str(rng.randint(-12, 12) / 4)


def array(rng: random.Random, sizes: tuple[int, ...], draw: Callable[[], str]) -> str:
    """Nested lists as text."""
    if not sizes:
        return draw()
    return "[" + ", ".join(array(rng, sizes[1:], draw) for _ in range(sizes[0])) + "]"


def literal(
    rng: random.Random,
    sizes: tuple[int, ...],
    dtype: str = "float32",
    grad: bool = False,
    special: bool = False,
    draw: Callable[[], str] | None = None,
) -> str:
    """An expression that makes a tensor of these sizes."""
    tail = f"dtype=tt.{dtype}, device=dev" + (", requires_grad=True" if grad else "")
    if 0 in sizes:
        return f"tt.zeros({sizes}, {tail})"
    return f"tt.tensor({array(rng, sizes, draw or (lambda: number(rng, dtype, special)))}, {tail})"


def dim(rng: random.Random, ndim: int) -> int:
    """A dimension counted from either end; rarely one that is not there."""
    if not ndim or rng.random() < 0.01:
        return rng.choice((-1, 0, 2, -3))
    return rng.randrange(-ndim, ndim)


def part(rng: random.Random, n: int, backwards: bool = False) -> str:
    """A slice of a dimension of n."""
    start, stop = sorted((rng.randint(0, n), rng.randint(0, n)))
    if start == stop and rng.random() < 0.8:
        start, stop = 0, n
    pick = rng.random()
    if backwards and pick < 0.1:
        return "::-1"
    if pick < 0.25:
        return ":"
    if pick < 0.5:
        return f"{start}:{stop}"
    if pick < 0.6:
        return f"{start - n or ''}:"
    return f"{start}:{stop}:{rng.choice((1, 2))}"


def index(rng: random.Random, sizes: tuple[int, ...], basic: bool = False, backwards: bool = False) -> str:
    """What stands between the brackets of x[...]: numbers, slices, None, ..., and if not `basic` lists, masks of a dimension."""
    if not sizes:
        return rng.choice(("...", "None", "()"))
    parts: list[str] = []
    for n in sizes[: rng.randint(1, len(sizes))]:
        pick = rng.random()
        if pick < 0.3 and n:
            parts.append(str(rng.randrange(-n, n)))
        elif not basic and pick < 0.42 and n:
            parts.append(str([rng.randrange(-n, n) for _ in range(rng.randint(1, 3))]))
        elif not basic and pick < 0.48 and n:
            parts.append(f"tt.tensor({[rng.randrange(n) for _ in range(2)]}, device=dev)")
        elif not basic and pick < 0.52 and n:
            parts.append(f"tt.tensor({[rng.random() < 0.6 for _ in range(n)]}, device=dev)")
        else:
            parts.append(part(rng, n, backwards))
        if rng.random() < 0.08:
            parts.append("None")
    if rng.random() < 0.12:
        parts.insert(rng.randint(0, len(parts)), "...")
        if len(parts) > len(sizes) + 1:
            parts = parts[-1:]
    return ", ".join(parts)


def view(rng: random.Random, x: Any, name: str, backwards: bool = False, strided: bool = True) -> str:
    """An expression of a view of x. `strided`: also as_strided, which under vmap sees the batch."""
    sizes, n = tuple(x.shape), x.ndim
    d, e = dim(rng, n), dim(rng, n)
    options = [
        f"{name}[{index(rng, sizes, basic=True, backwards=backwards)}]", f"{name}[{index(rng, sizes, basic=True)}]", f"{name}.transpose({d}, {e})",
        f"{name}.permute({rng.sample(range(n), n)})", f"{name}.mT" if n > 1 else f"{name}.view(1)" if x.numel() == 1 else f"{name}[:]", f"{name}.unsqueeze({rng.randint(-n - 1, n)})",
        f"{name}.squeeze()", f"{name}.squeeze({d})" if n else f"{name}.squeeze()", f"{name}.reshape(-1)", f"{name}.view(-1)", f"{name}.flatten()", f"{name}.movedim({d}, {e})" if n else f"{name}.view(())",
        f"{name}.expand({', '.join(str(s) for s in (2, *sizes))})", f"{name}.expand({(*(3 if s == 1 else s for s in sizes),)})", f"{name}.detach()", f"{name}.view_as({name})",
    ]  # fmt: skip
    if n:
        size = sizes[d] if -n <= d < n else 1
        start = rng.randint(0, size)
        options += [
            f"{name}.narrow({d}, {start}, {rng.randint(0, size - start)})", f"{name}.select({d}, {rng.randrange(-size, size) if size else 0})",
            f"{name}.split({rng.randint(1, 3)}, {d})[0]", f"{name}.chunk(2, {d})[-1]", f"{name}.unbind({d})[0]", f"{name}.unfold({d}, {rng.randint(1, max(size, 1))}, {rng.randint(1, 2)})",
            f"{name}.tensor_split(2, {d})[0]", f"{name}.unflatten({d}, ({size}, 1))", f"{name}.swapaxes({d}, {e})",
        ]  # fmt: skip
    if n >= 2:
        options += [f"{name}.diagonal({rng.randint(-1, 1)})", f"{name}.flatten(0, 1)", f"{name}.T" if n == 2 else f"{name}.mT"]
    if x.numel() and strided:
        options += [_strided(rng, x, name)]
    return rng.choice(options)


def _strided(rng: random.Random, x: Any, name: str) -> str:
    """as_strided inside of x's own elements."""
    room = 1 + sum((s - 1) * t for s, t in zip(x.shape, x.stride(), strict=True))
    rows = rng.randint(1, 3)
    step = rng.randint(1, 3)
    if (rows - 1) * step >= room:
        return f"{name}.as_strided((1,), (1,))"
    return f"{name}.as_strided(({rows},), ({step},))"
