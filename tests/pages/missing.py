"""Missing by hand: what no tool can write of an op, a function, a layer or an optimizer. `python -m tests.pages.missing`, the last of `make pages`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import tritensor as tt
from tests.expressions.listed import FAMILIES
from tests.expressions.record import recorded
from tests.expressions.unasked import unasked
from tests.pages.ops_page import said
from tritensor.nn import functional as F
from tritensor.ops.table import registry
from tritensor.tensor.public_api.publish import namespaces, public
from tritensor.torch_compat import recorded_names


def ops_without_text(ops: Mapping[str, Any]) -> Iterator[str]:
    """Ops of which docs/ops.md says nothing."""
    yield from (
        f"op {name}: no text; give its reference, or its public function, a docstring" for name, op in ops.items() if not said(name, op)
    )


def functions_without_text(place: str, functions: Mapping[str, Any]) -> Iterator[str]:
    """Public functions without a docstring."""
    for name, f in functions.items():
        if inspect.isfunction(f) and not name.startswith("_") and not inspect.getdoc(f):
            yield f"{place}.{name}: no docstring"


def classes_without_example(place: str, classes: Mapping[str, Any]) -> Iterator[str]:
    """Layers and optimizers of ours alone that no example shows; those of PyTorch's names are held to what it answers."""
    theirs = recorded_names.names_of(place)
    for name, c in classes.items():
        if inspect.isclass(c) and not name.startswith("_") and name not in theirs and ">>>" not in (c.__doc__ or ""):
            yield f"{place}.{name}: no example in its docstring (>>> ...), which the site's tests would run"


def names_without_answers() -> Iterator[str]:
    """Functions that no expression asks, and expressions that PyTorch was not asked."""
    yield from (f"tt.{name}: no line in tests/expressions/listed/ asks it" for name in unasked())
    for family, expressions in FAMILIES.items():
        known = recorded(family)
        yield from (f"{e}: no answer is recorded; python -m tests.expressions.record {family}" for e in expressions if e not in known)


def missing() -> Iterator[str]:
    """A line for each thing."""
    yield from ops_without_text({name: registry[name] for name in registry.everything()})
    for place, functions in (("tt", public), ("F", vars(F)), *((f"tt.{n}", found) for n, found in namespaces.items())):
        yield from functions_without_text(place, functions)
    yield from classes_without_example("nn", vars(tt.nn))
    yield from classes_without_example("optim", vars(tt.optim))
    yield from names_without_answers()


if __name__ == "__main__":
    lines = list(missing())
    print("\n".join(["missing, to be written by hand:", *lines] if lines else ["nothing is missing"]))
