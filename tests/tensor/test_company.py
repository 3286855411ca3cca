"""Tensors in other people's hands: plots, array functions, editors that ask for a picture of a value."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def test_plots_take_tensors() -> None:
    from matplotlib import pyplot as plt

    x = tt.linspace(0, 1, 20)
    figure, axes = plt.subplots(1, 4)
    (line,) = axes[0].plot(x, x.square(), label="a")
    assert np.allclose(line.get_xydata(), np.stack([x.numpy(), x.square().numpy()], 1))
    (alone,) = axes[0].plot(tt.tensor([1, 2, 3]))
    assert alone.get_ydata().tolist() == [1, 2, 3]
    image = axes[1].imshow(tt.rand(4, 5))
    assert image.get_array().shape == (4, 5)
    counts, _, _ = axes[2].hist(tt.tensor([0.0, 0.1, 0.9]), bins=2)
    assert counts.tolist() == [2, 1]
    axes[3].scatter(x, x, c=x)
    axes[3].bar(tt.arange(3), tt.tensor([1.0, 2.0, 3.0]))
    axes[3].fill_between(x, x - 1, x + 1)
    figure.canvas.draw()
    plt.close(figure)


def test_numpy_takes_tensors() -> None:
    x = tt.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert np.asarray(x) is not None
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.array(x, dtype=np.int64).dtype == np.int64
    assert np.asarray(x, copy=True).ctypes.data != x.data_ptr()
    with pytest.raises(ValueError, match="cannot become int64 without a copy"):
        np.asarray(x, dtype=np.int64, copy=False)
    assert np.allclose(np.linalg.inv(x), np.linalg.inv(x.numpy()))
    assert np.mean(x).item() == 2.5
    assert isinstance(np.ones(2) + x, tt.Tensor)
    assert np.concatenate([x, x]).shape == (4, 2)
    with pytest.raises(tt.GradError, match=r"use .detach\(\).numpy\(\)"):
        np.asarray(x.requires_grad_())


def test_a_tensor_shows_itself_in_a_notebook() -> None:
    """IPython asks for `_repr_html_` and others, and falls back to repr: none may be there by accident."""
    x = tt.ones(2)
    for name in (
        "_repr_html_",
        "_repr_png_",
        "_repr_latex_",
        "_repr_json_",
        "_repr_mimebundle_",
        "_ipython_display_",
        "_ipython_canary_method_should_not_exist_",
    ):
        assert not hasattr(x, name)
        assert not hasattr(tt.nn.Linear(1, 1), name)
    assert repr(x) == "tensor([1., 1.])"
