"""torch._tensor_str: the text of tensors and its options, which classes that hold a tensor print themselves with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tritensor.tensor import printing
from tritensor.tensor.core import Tensor
from tritensor.tensor.printing import set_printoptions as set_printoptions


class _PrintOptions:
    """The options as attributes, to read and to set: precision, threshold, edgeitems, linewidth, sci_mode."""

    def __getattr__(self, name: str) -> Any:
        if name not in printing.options:
            raise AttributeError(f"PRINT_OPTS has no option {name!r}; they are {', '.join(printing.options)}")
        return printing.options[name]

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)
        printing.options[name] = value


PRINT_OPTS = _PrintOptions()


def get_printoptions() -> dict[str, Any]:
    """The options by name, a copy."""
    return dict(printing.options)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Within the `with` the options are those that set_printoptions takes."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        printing.options.update(before)


def _tensor_str(self: Tensor, indent: int) -> str:
    """The bracketed values; what follows the first line is indented."""
    return printing.format_values(self.resolve_conj()._array, indent)


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    """A text, what is noted behind it, and the closing bracket."""
    return printing.add_notes(tensor_str, suffixes, indent, force_newline)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """What a tensor prints, with other contents where they are given."""
    return printing.show(inp, tensor_contents)


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """What a tensor prints, with other contents where they are given."""
    return printing.show(self, tensor_contents)
