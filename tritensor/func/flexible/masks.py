"""Functions of positions, score_mod and mask_mod: asked at all places at once, joined by and and or."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from tritensor.func.mapping import vmap
from tritensor.ground.device import as_device
from tritensor.ground.dtypes import bool_, float32, int64
from tritensor.ground.errors import AssertedError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_Result = TypeVar("_Result")


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """True: every query sees every key."""
    return batch.new_ones((), dtype=bool_)


def refuse_sliced(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> NoReturn:
    """What stands for the mask_mod of a BlockMask that was indexed: positions count from other places there. Raises RuntimeError."""
    raise RuntimeError(
        "flex_attention: Cannot use mask_mod from a sliced BlockMask, whose positions count from elsewhere; set sliced.mask_mod to a function made of the "
        "whole BlockMask's mask_mod"
    )


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask_mod that is True where all of these are. Raises RuntimeError for one that cannot be called."""
    _require_callable("and_masks", mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        found = noop_mask(b, h, q_idx, kv_idx)
        for mod in mask_mods:
            found = found & mod(b, h, q_idx, kv_idx)
        return found

    return and_mask


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask_mod that is True where one of these is. Raises RuntimeError for one that cannot be called."""
    _require_callable("or_masks", mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        found = b.new_zeros((), dtype=bool_)
        for mod in mask_mods:
            found = found | mod(b, h, q_idx, kv_idx)
        return found

    return or_mask


def _require_callable(name: str, mods: tuple[Any, ...]) -> None:
    for i, mod in enumerate(mods):
        if not callable(mod):
            raise RuntimeError(f"{name}: argument {i} is of type {type(mod).__name__}; All inputs should be callable mask_mods")


def at_every_place(mod: Callable[..., _Result], *first: Tensor, sizes: tuple[int, int, int, int], device: Any) -> _Result:
    """A function of (batch, head, query, key), with a score before them where `first` holds (B, H, Q, K) of them, at all places: (B, H, Q, K)."""
    lead: tuple[int | None, ...] = (0,) * len(first)
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):  # the keys innermost
        mod = vmap(mod, in_dims=lead + dims)
    return mod(*first, *[ops.arange(start=0, end=n, step=1, dtype=int64.numpy, device=as_device(device)) for n in sizes])


def takes_scores(mod: Callable[..., Any]) -> bool:
    """Whether a function is a score_mod, of five arguments, and no mask_mod, of four. Raises AssertedError for another number of them."""
    # as PyTorch counts: arguments with defaults are the function's own settings
    count = sum(p.default is inspect.Parameter.empty for p in inspect.signature(mod).parameters.values())
    if count not in (4, 5):
        raise AssertedError(
            f"flex_attention: Expected 4 or 5 positional args, got {count}; give mask_mod(b, h, q, kv) or score_mod(score, b, h, q, kv)"
        )
    return count == 5


def create_mask(mod_fn: MaskMod | ScoreMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """(B, H, Q_LEN, KV_LEN), bool: where mask_mod is True, or where score_mod leaves a score that is not -inf. None for B or H is 1."""
    place = as_device(default_device() if device is None else device)
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if not takes_scores(mod_fn):
        return at_every_place(mod_fn, sizes=sizes, device=place)
    zeros = ops.full(shape=sizes, value=0.0, dtype=float32.numpy, device=place)
    return ~at_every_place(mod_fn, zeros, sizes=sizes, device=place).isneginf()


def default_device() -> str:
    """Where masks are made unless a device is given: on the GPU, if there is one, as in PyTorch."""
    from tritensor import cuda

    return "cuda" if cuda.is_available() else "cpu"
