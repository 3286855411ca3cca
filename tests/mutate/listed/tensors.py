"""Faults that change no answer in autograd, dispatch and the tensor's rooms."""

from __future__ import annotations

TENSORS: dict[str, dict[tuple[str, str, str], str]] = {
    "autograd/walk.py": {
        (
            "_add_to_edges",
            'and getattr(x, "storage", 0) is not getattr(g, "storage", 1)',
            'and getattr(x, "storage", 0) is not getattr(g, "storage", 2)',
        ): "any two defaults that differ",
        (
            "_pull_each",
            "elif place >= 0 and intact:",
            "elif place >= 1 and intact:",
        ): "the first input goes the general way then, which is only slower",
    },
    "tritensor/dispatch/dispatcher.py": {
        (
            "fill_inputs",
            "if len(inputs) > len(op.inputs):",
            "if (len(inputs) >= len(op.inputs)):",
        ): "it is called where the two differ",
    },
    "tritensor/tensor/aliasing/basic_indexing.py": {
        (
            "getitem",
            "if views is not None and ((n := len(fresh := views.fresh)) < 31 or n & (n + 1)):",
            "if views is not None and ((n := len(fresh := views.fresh)) < 32 or n & (n + 1)):",
        ): "the dead ones are swept one doubling later",
        (
            "getitem",
            "if recording and extra is not None and (above is None or x._extra is None):",
            "if False:",
        ): "_record_view_of does it",
    },
    "tritensor/tensor/aliasing/views.py": {
        (
            "_like_base",
            "laid = as_strided(empty((max(high - low + 1, 0),), g.dtype, device_of(g)), shape, self.strides, -low)",
            "laid = as_strided(empty((max(high - low + 1, 1),), g.dtype, device_of(g)), shape, self.strides, -low)",
        ): "of a base without elements no memory is looked at",
    },
    "tritensor/tensor/core.py": {
        (
            "_record_view_of",
            "if (n := len(fresh)) >= 32 and n & (n - 1) == 0:  # forget the dead at each doubling",
            "if (n := len(fresh)) >= 32 and (n & n - 1 != 0):  # forget the dead at each doubling",
        ): "how often the dead are forgotten changes the speed alone",
        (
            "_record_view_of",
            "if (n := len(fresh)) >= 32 and n & (n - 1) == 0:  # forget the dead at each doubling",
            "if (n := len(fresh)) >= 32 and n & (n - 1) == 1:  # forget the dead at each doubling",
        ): "a dead view's entry is a few bytes that the next view at its address takes over",
    },
    "tritensor/tensor/functions/indexing/picking.py": {
        (
            "_is_plain_index",
            "return kind is np.ndarray or index.device == x.device",
            "return None",
        ): "the general way finds the same, only slower",
        (
            "setitem",
            "if all(map(is_basic, entries)):",
            "if False:",
        ): "the general way writes them as well, only slower",
    },
    "tritensor/tensor/functions/linear/products.py": {
        (
            "nuclear_norm",
            "if m.shape[-1] > m.shape[-2]:  # the smaller product x^T x",
            "if False:  # the smaller product x^T x",
        ): "the larger product has the same factor, only slower",
        (
            "nuclear_norm",
            "if m.shape[-1] > m.shape[-2]:  # the smaller product x^T x",
            "if m.shape[-2] > m.shape[-2]:  # the smaller product x^T x",
        ): "the larger product has the same factor, only slower",
    },
    "tritensor/tensor/parsing/index.py": {
        (
            "advanced_index",
            "d, at, left = d + left, at + left, 0",
            "d, at, left = d + left, at + left, 1",
        ): "a second Ellipsis is refused before",
    },
    "tritensor/tensor/functions/factorizations/powers.py": {
        (
            "matrix_power",
            'square, left = (x, int(n)) if n > 0 else (invert("matrix_power", x), -int(n))',
            'square, left = (x, int(n)) if (n >= 0) else (invert("matrix_power", x), -int(n))',
        ): "power 0 is answered above",
    },
    "tritensor/tensor/functions/reductions/normalized.py": {
        (
            "_reduce_by_xor",
            "rows = ops.cat(low, rows[..., 2 * half :], dim=low.ndim - 1) if n % 2 else low",
            "rows = (ops.cat(rows[..., 2 * half:], low, dim=low.ndim - 1)) if n % 2 else low",
        ): "exclusive or does not ask for an order",
    },
    "tritensor/tensor/functions/shaping/reshaping.py": {
        (
            "expand",
            "if min(want, default=0) < 0:",
            "if min(want, default=0) < 1:",
        ): "a list without -1 passes the look as well",
    },
    "tritensor/tensor/public_api/publish.py": {
        (
            "long",
            "if flags and (kwargs or len(args) > first):",
            "if (flags or (kwargs or len(args) > first)):",
        ): "there is no flag to look at, or none given",
    },
    "tritensor/tensor/functions/creation/sequences.py": {
        (
            "triu_indices",
            "first = np.clip(np.arange(offset, offset + row), 0, col)",
            "first = (np.clip(0, np.arange(offset, offset + row), col))",
        ): "the larger of two, and the smaller of that and the columns, either way",
    },
}
