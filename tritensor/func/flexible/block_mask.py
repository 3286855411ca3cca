"""BlockMask: which blocks of a mask are empty, full, or neither, as lists of each row's blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

from tritensor.func.flexible.masks import MaskMod, create_mask, noop_mask, refuse_sliced, takes_scores
from tritensor.ground.dtypes import bool_, int32, int64
from tritensor.ground.errors import AssertedError
from tritensor.ground.pytree import register_pytree_node
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor

DEFAULT_SPARSE_BLOCK_SIZE = 128
_LISTS = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
)  # fmt: skip


class BlockMask:
    """A mask (B, H, Q_LEN, KV_LEN) by blocks: row r's first kv_num_blocks[b, h, r] entries of kv_indices[b, h, r] are its partly seen blocks of keys,
    full_kv_num_blocks and full_kv_indices list those that are seen whole, q_* and full_q_* the same by columns. Inside of blocks mask_mod decides.

    Raises RuntimeError for indices of fewer than two dimensions, AssertedError for one of full_kv_num_blocks and full_kv_indices without the other.
    """

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None, q_indices: Tensor | None, full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_SPARSE_BLOCK_SIZE, DEFAULT_SPARSE_BLOCK_SIZE), mask_mod: MaskMod = noop_mask,
    ) -> None:  # fmt: skip
        if kv_indices.ndim < 2:
            raise RuntimeError(f"BlockMask: kv_indices is of shape {tuple(kv_indices.shape)}; BlockMask must have at least 2 dimensions")
        for name, a, b in (("kv", full_kv_num_blocks, full_kv_indices), ("q", full_q_num_blocks, full_q_indices)):
            if (a is None) != (b is None):
                raise AssertedError(f"BlockMask: full_{name}_num_blocks and full_{name}_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None, full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = DEFAULT_SPARSE_BLOCK_SIZE, mask_mod: MaskMod | None = None, seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:  # fmt: skip
        """The BlockMask of rows' lists (B, H, rows) and (B, H, rows, columns); the columns' lists are made of them unless compute_q_blocks is False."""
        if kv_indices.ndim < 2:
            raise RuntimeError(f"BlockMask: kv_indices is of shape {tuple(kv_indices.shape)}; BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertedError("BlockMask: full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        part: tuple[Tensor | None, Tensor | None] = (None, None)
        full: tuple[Tensor | None, Tensor | None] = (None, None)
        if compute_q_blocks:
            part = _by_columns(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full = _by_columns(full_kv_num_blocks, full_kv_indices)
        lengths = seq_lengths or (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *part, *full, size, mask_mod or noop_mask)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, Q_LEN, KV_LEN)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many places there are, seen or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many per cent of the places lie in blocks that are not computed; blocks over the edge count whole, so that it may be less than 0."""
        blocks = float(self.kv_num_blocks.sum().item())
        if self.full_kv_num_blocks is not None:
            blocks += float(self.full_kv_num_blocks.sum().item())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """(B, H, rows, columns), int32: 1 for a block that is seen, whole or in part."""
        seen = _dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return seen
        return seen | _dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Lengths, lists, block sizes and mask_mod; with flatten, lengths and sizes each by themselves. Four places of PyTorch's that order the sums of one
        kernel's gradient are None."""
        lengths, size = (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        return (*lengths, *self._lists(), None, None, None, None, *size, self.mask_mod)

    def _lists(self) -> list[Tensor | None]:
        return [getattr(self, name) for name in _LISTS]

    def __getitem__(self, index: Any) -> BlockMask:
        """The blocks of some batches, heads and rows. Its mask_mod raises, because positions would count from elsewhere."""
        given = index if isinstance(index, tuple) else (index,)
        places: list[Any] = [*given, slice(None), slice(None), slice(None)][:3]
        for at, (i, n) in enumerate(zip(places, self.kv_num_blocks.shape, strict=False)):
            if isinstance(i, int):  # the dimension stays, as in PyTorch
                places[at] = slice(i + n, i + n + 1) if -n <= i < 0 else slice(i, i + 1)
        return self._of_rows(
            [None if x is None else x[tuple(places[: self.kv_num_blocks.ndim])] for x in self._lists()[:4]], refuse_sliced, self.seq_lengths
        )

    def _of_rows(self, lists: list[Tensor | None], mask_mod: MaskMod, lengths: tuple[int, int]) -> BlockMask:
        """A mask of other rows, whose blocks are of the same size, and that has columns' lists if this has."""
        rows: dict[str, Any] = dict(zip(_LISTS, lists, strict=False))
        more: dict[str, Any] = {"BLOCK_SIZE": self.BLOCK_SIZE, "mask_mod": mask_mod, "seq_lengths": lengths}
        return BlockMask.from_kv_blocks(**rows, **more, compute_q_blocks=self.q_indices is not None)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask's upper left corner, for other lengths. PyTorch 2.13 loses blocks here, whose columns are larger than their row's count."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        lists: list[Tensor | None] = []
        for count, indices in ((self.kv_num_blocks, self.kv_indices), (self.full_kv_num_blocks, self.full_kv_indices)):
            if count is None or indices is None:
                lists += [None, None]
                continue
            lists += _ordered(_dense(count, indices, indices.shape[-1])[..., :rows, :columns])
        return self._of_rows(lists, self.mask_mod, (new_q_len, new_kv_len))

    def to(self, device: Any) -> BlockMask:
        """The same mask with its lists on a device."""
        return _from_parts([None if x is None else x.to(device) for x in self._lists()], (self.seq_lengths, self.BLOCK_SIZE, self.mask_mod))

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of each batch and head, `limit` of them, in about grid_size rows and columns: seen, seen in part, not seen."""
        dense = self.to_dense().numpy(force=True)
        rows, columns = dense.shape[-2:]
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        down, across = max(1, -(-rows // most[0])), max(1, -(-columns // most[1]))
        shown = []
        for count, place in enumerate(itertools.product(*[range(n) for n in dense.shape[:-2]])):
            if count == limit:
                shown += [
                    "...", "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]  # fmt: skip
                break
            cells = [[dense[place][r : r + down, c : c + across].mean() for c in range(0, columns, across)] for r in range(0, rows, down)]
            lines = ["".join(2 * ("█" if m == 1 else " " if m == 0 else "░") for m in row) for row in cells]
            shown.append("\n".join([str(place), *lines]) + "\n")
        return "\n".join(shown)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        lists = "".join(f"    {name}={None if x is None else x.shape},\n" for name, x in zip(_LISTS, self._lists(), strict=True))
        mod = getattr(self.mask_mod, "__name__", self.mask_mod)
        rest = f"    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n    mask_mod={mod}\n"
        return f"BlockMask(\n{lists}{rest})"


def _from_parts(lists: Iterable[Tensor | None], rest: tuple[tuple[int, int], tuple[int, int], MaskMod]) -> BlockMask:
    """The mask of all its lists, and of lengths, block size and mask_mod."""
    named: dict[str, Any] = dict(zip(_LISTS, lists, strict=True))
    return BlockMask(rest[0], **named, BLOCK_SIZE=rest[1], mask_mod=rest[2])


register_pytree_node(BlockMask, lambda m: (m._lists(), (m.seq_lengths, m.BLOCK_SIZE, m.mask_mod)), _from_parts)


def _dense(count: Tensor, indices: Tensor, columns: int) -> Tensor:
    """(..., rows, columns), int32, 1 where a row's list names the column."""
    listed = ops.arange(start=0, end=indices.shape[-1], step=1, dtype=int64.numpy, device=indices.device) < count[..., None]
    places = indices.long().where(listed, columns)  # what stands behind a list's end goes to a column of its own
    return indices.new_zeros((*indices.shape[:-1], columns + 1), dtype=int32).scatter(-1, places, 1)[..., :columns].contiguous()


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's count of blocks, and their columns before those of the others, both in order."""
    return dense.sum(-1).to(int32), dense.int().argsort(-1, descending=True, stable=True).to(int32)


def _by_columns(count: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    return _ordered(_dense(count, indices, indices.shape[-1]).transpose(-2, -1))


def create_block_mask(
    mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False, separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False, dq_kv_order: bool = True,
) -> BlockMask:  # fmt: skip
    """The BlockMask of mask_mod(b, h, q_idx, kv_idx), asked at every place of (B, H, Q_LEN, KV_LEN); None for B or H is 1, one mask for all.

    separate_full_blocks=False lists full blocks among the others.

    Raises:
        AssertedError: mask_mod takes another number of arguments than four.
        NotImplementedError: compute_dq_write_order, an order of one kernel's sums that is not here.
    """
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask: compute_dq_write_order orders the sums of a kernel that is not here; leave it out")
    if takes_scores(mask_mod):
        raise AssertedError(
            f"create_block_mask: create-block_mask requires a mask_mod function! Got {mask_mod}; it takes (b, h, q_idx, kv_idx)"
        )
    q_size, kv_size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    if mask.dtype != bool_:
        raise AssertedError(f"create_block_mask: mask_mod gave {mask.dtype}; mask.dtype must be torch.bool")
    rows, columns = -(-Q_LEN // q_size), -(-KV_LEN // kv_size)
    whole = mask.new_zeros((*mask.shape[:2], rows * q_size, columns * kv_size))
    whole[..., :Q_LEN, :KV_LEN] = mask
    seen = whole.view(*mask.shape[:2], rows, q_size, columns, kv_size).sum((3, 5))  # (B, H, rows, columns)
    full = (seen == q_size * kv_size) if separate_full_blocks else None
    part = (seen > 0) if full is None else (seen > 0) & ~full
    whole_lists: tuple[Tensor | None, Tensor | None] = (None, None) if full is None else _ordered(full)
    return BlockMask.from_kv_blocks(*_ordered(part), *whole_lists, (q_size, kv_size), mask_mod, (Q_LEN, KV_LEN))
