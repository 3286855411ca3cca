"""Batches of normalisations and of recurrent nets over packed rows."""

from __future__ import annotations

from typing import Any

from tritensor.func.rules.images import channels_in, channels_out, fold_examples, unfold_examples
from tritensor.func.rules.registry import Batch, loop_examples, rule_for
from tritensor.kernels.parts.formulas.named import BY_INPUT
from tritensor.kernels.parts.view_arithmetic import reshaped
from tritensor.ops.table import ops, registry


@rule_for("layer_norm rms_norm")
def _normalize_rows(b: Batch) -> Any:
    """Rows are rows; a scale and a shift of each example come after."""
    axes = b.attrs["axes"]
    if not any(b.flags[1:]):
        return b.run(*b.values)
    y = b.run(b.whole(0), *[None] * (len(b.values) - 1))  # without scale and shift, which the op takes for all rows alike
    return _apply_affine(y, b, (1,) * (b.ndim(0) - axes), ())


@rule_for("add_layer_norm add_rms_norm")
def _normalize_sums(b: Batch) -> Any:
    """The sum, and the rule of its normalisation."""
    total = ops.add(b.whole(0), b.whole(1))
    plain = registry[b.op.name.removeprefix("add_")]
    return _normalize_rows(Batch(plain, b.level, (total, *b.values[2:]), (True, *b.flags[2:]), b.attrs)), total


def _apply_affine(y: Any, b: Batch, before: tuple[int, ...], behind: tuple[int, ...]) -> Any:
    """y times the weight plus the bias, of each example or of all, in the place of sizes between ones."""
    for i, combine in ((1, ops.mul), (2, ops.add)):
        w = b.values[i] if i < len(b.values) else None
        if w is not None:
            lead = (b.size, *before) if b.flags[i] else ()
            y = combine(y, ops.reshape(w, shape=(*lead, *b.shape(i), *behind)))
    return y


@rule_for("group_norm")
def _normalize_groups(b: Batch) -> Any:
    x, weight, bias = b.values
    if not b.flags[1] and not b.flags[2]:
        return unfold_examples(b.run(fold_examples(x), weight, bias), b.size)
    y = unfold_examples(b.run(fold_examples(b.whole(0)), None, None), b.size)
    return _apply_affine(y, b, (1,), (1,) * (b.ndim(0) - 2))


@rule_for("batch_norm")
def _normalize_channels(b: Batch) -> Any:
    """Every example has statistics of its own: its channels are further channels."""
    if not b.size:
        return loop_examples(b)
    y, *kept = _to_list(b.run(channels_in(b.whole(0)), *_list_channels(b, 1)))
    found = (channels_out(y, b.size), *[ops.reshape(k, shape=(b.size, k._array.shape[0] // b.size)) for k in kept])
    return found if b.op.public > 1 else found[0]


@rule_for("batch_norm_by")
def _normalize_by_given(b: Batch) -> Any:
    if not any(b.flags[1:]):
        return unfold_examples(b.run(fold_examples(b.values[0]), *b.values[1:]), b.size)
    if not b.size:
        return loop_examples(b)
    return channels_out(b.run(channels_in(b.whole(0)), *_list_channels(b, 1)), b.size)


@rule_for("batch_norm_activation batch_norm_by_activation group_norm_activation")
def _normalize_and_activate(b: Batch) -> Any:
    """The normalisation's own rule, then what follows it, apart."""
    op, attrs = registry[b.op.name.removesuffix("_activation")], dict(b.attrs)
    named = BY_INPUT[attrs.pop("activation")]  # the plain op does not know the attribute
    n = len(op.inputs)
    found = _PLAIN[op.name](Batch(op, b.level, (b.whole(0), *b.values[1:n]), (True, *b.flags[1:n]), attrs))
    y, *kept = _to_list(found)
    if len(b.values) > n and b.values[n] is not None:
        y = ops.add(y, b.whole(n))
    y = getattr(ops, named.op)(y, **named.attrs)
    return (y, *kept) if kept else y


_PLAIN = {"batch_norm": _normalize_channels, "batch_norm_by": _normalize_by_given, "group_norm": _normalize_groups}


def _list_channels(b: Batch, first: int) -> list[Any]:
    """Numbers for each channel, those of all examples in a row."""
    found = []
    for i in range(first, len(b.values)):
        v = b.whole(i)
        found.append(None if v is None else reshaped(v, (b.size * v._array.shape[1],)))
    return found


def _to_list(y: Any) -> list[Any]:
    return list(y) if isinstance(y, tuple) else [y]


@rule_for("rnn_sequence lstm_sequence gru_sequence")
def _run_over_time(b: Batch) -> Any:
    """The examples are more sequences of the batch: at each step as many rows of each. A weight for each example: in a loop."""
    names = b.op.inputs
    weights = [i for i, name in enumerate(names) if name in _WEIGHTS]
    if any(b.flags[i] for i in weights):
        return loop_examples(b)
    given = [x if i in weights or x is None else _join_rows(b.whole(i)) for i, x in enumerate(b.values)]
    outs = b.run(*given, batch_sizes=tuple([n * b.size for n in b.attrs["batch_sizes"]]))
    made = tuple([_split_rows(y, b.size) for y in _to_list(outs)])
    return made if b.op.public > 1 else made[0]


_WEIGHTS = frozenset(["w", "weight", "bias", "b"])


def _join_rows(x: Any) -> Any:
    """(B, rows, n) as (rows * B, n), the examples of one row together."""
    size, rows, n = x._array.shape
    return reshaped(ops.permute(x, dims=(1, 0, 2)), (rows * size, n))


def _split_rows(y: Any, size: int) -> Any:
    """Back again."""
    rows, n = y._array.shape
    return ops.permute(ops.reshape(y, shape=(rows // size if size else 0, size, n)), dims=(1, 0, 2))
