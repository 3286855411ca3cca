"""Embedding and EmbeddingBag: a table of rows picked by integers, one by one or folded bag by bag."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import AssertedArgumentError, AssertedError, ShapeError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.tensor.core import Tensor


class _EmbeddingTable(Module):
    """The table weight (num_embeddings, embedding_dim), which starts normal but for a row of zeros, padding_idx."""

    weight: Parameter

    def _make_weight(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, weight: Tensor | None, freeze: bool, device: Any, dtype: Any
    ) -> None:
        name = type(self).__name__
        if num_embeddings < 0 or embedding_dim < 0:
            raise ShapeError(f"{name}: num_embeddings is {num_embeddings}, embedding_dim {embedding_dim}; neither must be negative")
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertedArgumentError(
                    f"{name}: padding_idx {padding_idx} is out of range for {num_embeddings} embeddings; give one of -{num_embeddings} to {num_embeddings - 1}"
                )
            padding_idx %= num_embeddings  # from the front: the kernels compare row numbers
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        if weight is None:
            self.weight = empty_parameter(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.weight.requires_grad_(not freeze)
            self.reset_parameters()
        elif tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise AssertedError(
                f"{name}: weight {tuple(weight.shape)} is not (num_embeddings, embedding_dim), ({num_embeddings}, {embedding_dim})"
            )
        else:
            self.weight = Parameter(weight, requires_grad=not freeze)  # on the given memory, as from_pretrained says

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)  # its gradient is left out, so that it stays 0


def _check_table(cls: type, embeddings: Tensor) -> tuple[int, int]:
    if embeddings.ndim != 2:
        raise AssertedError(f"{cls.__name__}.from_pretrained: embeddings {tuple(embeddings.shape)} must be (num_embeddings, embedding_dim)")
    return embeddings.shape[0], embeddings.shape[1]


class Embedding(_EmbeddingTable):
    """Rows of weight (num_embeddings, embedding_dim) picked by integers of any shape: (...) -> (..., embedding_dim).

    weight starts normal; row padding_idx starts at 0 and gets no gradient. The other arguments are those of F.embedding.

    >>> nn.Embedding(10, 3)(tt.tensor([[1, 2], [4, 0]])).shape
    tritensor.Size([2, 2, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self._make_weight(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """An Embedding on given rows (num_embeddings, embedding_dim), whose memory it shares; freeze=True does not train them."""
        rows, features = _check_table(cls, embeddings)
        return cls(rows, features, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        shown = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            shown.append(f"padding_idx={self.padding_idx}")
        return ", ".join(shown + _show_options(self))


class EmbeddingBag(_EmbeddingTable):
    """The sum, mean or maximum of the rows of weight (num_embeddings, embedding_dim) that each bag of indices names.

    weight starts normal; row padding_idx starts at 0, counts nothing and gets no gradient. The other arguments are those of F.embedding_bag.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self.mode, self.include_last_offset = mode, include_last_offset
        self._make_weight(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        mode: str = "mean", sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> EmbeddingBag:  # fmt: skip
        """An EmbeddingBag on given rows (num_embeddings, embedding_dim), whose memory it shares; freeze=True does not train them."""
        rows, features = _check_table(cls, embeddings)
        made = cls(
            rows, features, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight=embeddings, include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )  # fmt: skip
        made.weight.requires_grad_(not freeze)  # its constructor, PyTorch's, takes no _freeze
        return made

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
            self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        shown = [
            f"{self.num_embeddings}, {self.embedding_dim}",
            *[o for o in _show_options(self) if o != "sparse=True"],  # PyTorch's repr of bags does not show it
            f"mode={self.mode!r}",
        ]
        if self.padding_idx is not None:
            shown.append(f"padding_idx={self.padding_idx}")
        return ", ".join(shown)


def _show_options(table: Any) -> list[str]:
    """What is said of the arguments that both have, where they are not the usual ones."""
    shown = [] if table.max_norm is None else [f"max_norm={table.max_norm}"]
    shown += [] if table.norm_type == 2 else [f"norm_type={table.norm_type}"]
    return shown + [f"{name}=True" for name in ("scale_grad_by_freq", "sparse") if getattr(table, name)]
