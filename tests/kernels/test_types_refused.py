"""Types that an op does not compute are refused by name, before anything runs: kinds of types that it has no meaning for, and inputs of two types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.loops import each
from tritensor.ops.table import registry
from tritensor.testing.questions.cases import samples

FLOATS_ONLY = (
    "softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm", "batch_norm_by", "group_norm", "batch_norm_activation", "batch_norm_by_activation", "group_norm_activation", "cross_entropy", "mse_loss", "dropout", "linear", "conv2d", "conv2d_input", "conv2d_weight",
    "avg_pool2d", "avg_pool2d_spread", "sgd_step", "adam_step", "adam_numbers", "var",
)  # fmt: skip
PAIRS = ("where", "linear", "conv2d", "conv2d_input", "conv2d_weight", "sgd_step", "adam_step", "index_put")  # the others promote
both_devices = pytest.mark.parametrize("on", ["cpu", "cuda"])


def called(name: str, on: str, *kinds: tt.dtype) -> Any:
    """An op on its first sample that has a floating array for each of these types; further ones are of the first type."""
    op = registry[name]
    floating = [[i for i, x in enumerate(s.inputs) if isinstance(x, np.ndarray) and x.dtype == np.float64] for s in samples(op)]
    sample, where = next((s, at) for s, at in zip(samples(op), floating, strict=True) if len(at) >= len(kinds))
    given = [tt.tensor(x).to(on) if isinstance(x, np.ndarray) else x for x in sample.inputs]
    for k, i in enumerate(where):
        given[i] = given[i].to(kinds[k] if k < len(kinds) else kinds[0])
    return getattr(tt.ops, name)(*given, **sample.attrs)


@both_devices
@each(("name", "kind"), [(name, kind) for name in FLOATS_ONLY for kind in (tt.int64, tt.bool, tt.float8_e5m2)])
def test_kinds(name: str, kind: tt.dtype, on: str) -> None:
    called(name, on, tt.float64)
    with pytest.raises(tt.DTypeError, match=rf"{name}: .*{kind.name}.*takes float"):
        called(name, on, kind)


@both_devices
@pytest.mark.parametrize("name", PAIRS)
def test_two_types(name: str, on: str) -> None:
    called(name, on, tt.float32, tt.float32)
    with pytest.raises(tt.DTypeError, match=rf"{name}: .*float32.*float64.*cast"):
        called(name, on, tt.float32, tt.float64)


@both_devices
@pytest.mark.parametrize(
    "name", ["matmul", "max_pool2d", "cumsum", "im2col", "col2im", "overlap_add", "nonzero_static", "edge_pad_adjoint"]
)
def test_types_without_arithmetic(name: str, on: str) -> None:
    with pytest.raises(tt.DTypeError, match=rf"{name}: .*float8_e4m3fn.*takes "):
        called(name, on, tt.float8_e4m3fn)


def test_wide_complex_numbers_are_chosen() -> None:
    z = tt.tensor([1 + 2j, 3 - 1j], dtype=tt.complex128)
    assert tt.where(tt.tensor([True, False]), z, 0.5).tolist() == [1 + 2j, 0.5]
    assert tt.where(tt.tensor([True, False]), 0.5, z).tolist() == [0.5, 3 - 1j]


def test_the_op_that_casts_drops_no_imaginary_part() -> None:
    """`to` does, on purpose and with a warning (tests/tensor/test_casting.py); a function that casts by mistake must not."""
    z = tt.tensor([1j, 0j, 2 + 0j])
    assert z.bool().tolist() == [True, False, True]
    for kind in (tt.float32, tt.int64, tt.float16):
        with pytest.raises(tt.DTypeError, match=rf"complex64 to {kind.name} would drop the imaginary part; use .real or .abs\(\)"):
            tt.ops.cast(z, dtype=kind.numpy)
    assert z.to(tt.complex128).tolist() == z.tolist()


def test_what_a_shape_rule_says_of_complex_numbers_is_what_comes_out() -> None:
    """Those live on the CPU alone, where the walk of the table does not go."""
    asked = []
    for name, op in registry.items():
        if len(op.inputs) == 1 and op.broadcasts and not op.attrs:
            for kind in (np.complex64, np.complex128):
                x = np.array([1 + 2j, -0.5j], kind)
                try:
                    said = op.shape(x)
                except tt.DTypeError:
                    continue
                asked.append(name)
                assert said.dtype == np.asarray(op.cpu(x)).dtype, name
    assert {"abs", "neg"} <= set(asked)


@both_devices
def test_sizes_that_no_convolution_gives(on: str) -> None:
    g, x, w = tt.ones(1, 2, 3, 3, device=on), tt.ones(1, 2, 5, 5, device=on), tt.ones(2, 2, 2, 2, device=on)
    same: dict[str, Any] = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    with pytest.raises(tt.ShapeError, match=r"conv2d_input: .*the convolution gives \(1, 2, 4, 4\), not g's shape"):
        tt.ops.conv2d_input(g, w, size=(5, 5), **same)
    with pytest.raises(tt.ShapeError, match=r"conv2d_weight: .*the convolution gives \(1, 2, 4, 4\), not g's shape"):
        tt.ops.conv2d_weight(x, g, kernel_size=(2, 2), **same)


@both_devices
@pytest.mark.parametrize("label", ["weight", "bias"])
def test_scales_of_a_layer_norm_have_the_normalised_shape(on: str, label: str) -> None:
    given = {"weight": tt.ones(4, device=on), "bias": tt.ones(4, device=on), label: tt.ones(3, device=on)}
    with pytest.raises(
        tt.ShapeError, match=rf"^layer_norm: x \(2, 4\) with {label} \(3,\): {label} must have the normalised shape \(4,\)$"
    ):
        tt.ops.layer_norm(tt.ones(2, 4, device=on), given["weight"], given["bias"])


@both_devices
def test_memory_formats_have_a_number_of_dimensions(on: str) -> None:
    with pytest.raises(tt.ShapeError, match="channels_last orders 4 dimensions"):
        tt.ops.copy(tt.ones(2, 3, 4, device=on), memory_format=tt.channels_last)
    with pytest.raises(tt.ShapeError, match="channels_last orders 4 dimensions"):
        tt.ones(2, 3, 4, device=on).clone(memory_format=tt.channels_last)


@both_devices
@pytest.mark.parametrize(("place", "label"), [(1, "targets"), (2, "input_lengths"), (3, "target_lengths")])
def test_labels_and_lengths_are_integers(place: int, label: str, on: str) -> None:
    given = [tt.tensor(x).to(on) for x in samples(registry["ctc_loss"])[0].inputs]
    given[place] = given[place].float()
    with pytest.raises(tt.DTypeError, match=f"ctc_loss: {label} is float32; it is made of integers"):
        tt.ops.ctc_loss(*given)
