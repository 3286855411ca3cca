"""torch._jit_internal: decorators and types that told PyTorch's compiler of Python; functions stay as they are."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any

List, Tuple, Dict, Optional, Union, Final = typing.List, typing.Tuple, typing.Dict, typing.Optional, typing.Union, typing.Final  # noqa: UP006


class _Broadcasting:
    """`BroadcastingList2[int]`: one value, or as many in a list."""

    def __getitem__(self, kind: Any) -> Any:
        return list[kind]


BroadcastingList1, BroadcastingList2, BroadcastingList3 = _Broadcasting(), _Broadcasting(), _Broadcasting()


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any], if_false: Callable[..., Any], module_name: str, func_name: str,
) -> Callable[..., Any]:  # fmt: skip
    """One function for two: the argument of that name or place says which is called."""

    @functools.wraps(if_true)
    def call(*args: Any, **kwargs: Any) -> Any:
        # By name, by place, or not at all.
        chosen = kwargs[arg_name] if arg_name in kwargs else args[arg_index] if arg_index < len(args) else default
        return if_true(*args, **kwargs) if chosen else if_false(*args, **kwargs)

    call.__name__, call.__module__ = func_name or call.__name__, module_name or call.__module__
    return call


def _as_it_is(fn: Any) -> Any:
    """The function itself."""
    return fn


_overload = _overload_method = _copy_to_script_wrapper = export = unused = ignore = _as_it_is


def is_scripting() -> bool:
    """False."""
    return False
