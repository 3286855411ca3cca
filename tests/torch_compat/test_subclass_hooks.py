"""Subclasses of modules and distributions as other libraries write them, and sizes as containers of trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import tritensor as tt
from tritensor import distributions, nn
from tritensor.utils import _pytree


class Widths(nn.Module):
    """A module with members of a kind of its own."""

    def __init__(self, width: float, *below: nn.Module) -> None:
        super().__init__()
        self.width = width
        self.below = nn.ModuleList(below)

    def named_widths(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        def of(module: nn.Module) -> Iterable[tuple[str, Any]]:
            return [("width", module.width)] if isinstance(module, Widths) else []

        return self._named_members(of, prefix=prefix, recurse=recurse)


def test_a_module_lists_members_of_a_kind_of_its_own() -> None:
    module = Widths(1.0, Widths(2.0), nn.Linear(1, 1))
    assert list(module.named_widths()) == [("width", 1.0), ("below.0.width", 2.0)]
    assert list(module.named_widths("at", recurse=False)) == [("at.width", 1.0)]
    assert [name for name, _ in module.named_parameters()] == ["below.1.weight", "below.1.bias"]


class Shared(distributions.Independent):
    """An Independent that checks its arguments as its base does: what it is told goes there."""

    @property
    def _validate_args(self) -> bool:  # type: ignore[override]
        return self.base_dist._validate_args

    @_validate_args.setter
    def _validate_args(self, value: bool) -> None:
        self.base_dist._validate_args = value


def test_an_expanded_independent_has_its_base_before_anything_is_set() -> None:
    base = distributions.Normal(tt.zeros(3), tt.ones(3))
    wide = Shared(base, 1).expand((2,))
    assert (wide.batch_shape, wide.event_shape, wide.base_dist.batch_shape) == ((2,), (3,), (2, 3))
    plain = distributions.Independent(base, 1, validate_args=False).expand((4, 2))
    assert plain.log_prob(tt.zeros(3)).shape == (4, 2)
    assert plain._validate_args is False


def test_a_size_is_a_container_of_its_numbers() -> None:
    leaves, spec = _pytree.tree_flatten({"shape": tt.Size([2, 3])})
    assert leaves == [2, 3]
    again = _pytree.tree_unflatten(leaves, spec)["shape"]
    assert type(again) is tt.Size
    assert type(_pytree.tree_map(lambda n: n + 1, tt.Size([1, 2]))) is tt.Size
