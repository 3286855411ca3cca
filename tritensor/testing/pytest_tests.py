"""ask: a test for pytest that asks a package's ops every question, an item for each op, type and device."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ops.table import Op, registry
from tritensor.ops.table.lookup import plugins_read
from tritensor.ops.table.op_selection import UnknownOpError, select_ops
from tritensor.testing.devices import emulate_without_gpu, places
from tritensor.testing.lines.authors import modules
from tritensor.testing.op_check import ask_op, check_complex_numbers, check_layouts, check_samples, select_types


def ask(
    what: str | Op | Sequence[str | Op],
    *,
    dtypes: Iterable[str] | str | None = None,
    devices: Iterable[str] | str | None = None,
    layouts: Iterable[str] | None = None,
) -> Callable[..., None]:
    """A test to be put into a test module: `test_ops = tritensor.testing.ask("my_package")`.

    Args:
        what: a module or package that registers ops when it is imported, a file ("my_ops.py"), an op's name, a pattern, a record, or several.
        dtypes, devices, layouts: as of `check`; each op is asked in those of the types that it claims.

    Its items are called `op-dtype-device`, and the first of every op also asks about its samples and complex numbers.
    Raises UnknownOpError for what names no op.
    """
    try:
        import pytest
    except ImportError:
        raise ImportError("testing.ask makes tests for pytest, which is not installed; pip install pytest, or call testing.check") from None
    emulate_without_gpu()
    given = [what] if isinstance(what, str | Op) else list(what)  # a str is a Sequence of its letters
    # Two patterns may mean one op, which is asked once.
    ops = {op.name: op for one in given for op in ([one] if isinstance(one, Op) else named(one))}
    only = check_layouts(layouts)
    items = []
    for op in ops.values():
        kinds = select_types(op, None) if dtypes is None else select_types(op, [d for d in _several(dtypes) if d in op.dtypes])
        for first, (kind, place) in enumerate((k, p) for k in kinds for p in places(devices)):
            items.append(pytest.param(op, kind, place, not first, id=f"{op.name}-{kind}-{place}"))

    @pytest.mark.parametrize(("op", "dtype", "place", "first"), items)
    def test_ops(op: Op, dtype: str, place: str, first: bool) -> None:
        __tracebackhide__ = True
        report = ask_op(op, dtype, place, only)
        if first:
            report.merge(check_samples(op))
            report.merge(check_complex_numbers(op))
        if report:
            pytest.fail("\n".join(report.lines()), pytrace=False)

    return test_ops  # type: ignore[no-any-return]


def _several(x: Iterable[str] | str) -> list[str]:
    return [x] if isinstance(x, str) else list(x)


def named(what: str) -> list[Op]:
    """The ops of a module or package, or those that a name, pattern or file means; an op's name is none of a module."""
    if what.endswith(".py") or any(c in what for c in "*?[,") or registry.known(what) is not None or not _is_module(what):
        return select_ops([what])
    module = importlib.import_module(what)
    with plugins_read():  # modules of the package that it names as entry points may not be imported with it
        ops = [op for op in list(registry.values()) if any(m == what or m.startswith(what + ".") for m in modules(op))]
        if not ops:
            raise UnknownOpError(
                f"{what} ({Path(module.__file__ or '').name}) registers no op; it calls tritensor.op(...) for each when it is imported"
            )
    return ops


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # the parent is none, or the name begins with a dot
        return False
