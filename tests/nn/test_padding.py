"""F.pad: every mode against numpy's, its gradients to second order, what it refuses; the same on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor.ground.errors import ShapeError

NUMPY = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
MODES = list(NUMPY)
DEVICES = ["cpu", "cuda"]
rng = np.random.default_rng(3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("shape", "pad"), [((2, 5), (2, 3)), ((2, 3, 4), (0, 2)), ((2, 4, 5), (1, 2, 3, 0)), ((1, 2, 3, 4, 5), (2, 1, 0, 3, 1, 2))]
)
def test_as_numpy(shape: tuple[int, ...], pad: tuple[int, ...], mode: str, device: str) -> None:
    x = rng.standard_normal(shape)
    sides = [(0, 0)] * (len(shape) - len(pad) // 2) + [(pad[2 * k], pad[2 * k + 1]) for k in reversed(range(len(pad) // 2))]
    want: Any = np.pad(x, sides, mode=NUMPY[mode])  # type: ignore[call-overload]
    t = tt.tensor(x, device=device, requires_grad=True)
    y = F.pad(t, pad, mode)
    np.testing.assert_array_equal(y.detach().cpu().numpy(), want)
    assert y.is_contiguous()
    # sum of w y^2: the gradient is P^T (2 w y), the gradient of its square's sum P^T (2 w P P^T (2 w y) 2)
    w = np.cos(np.arange(want.size)).reshape(want.shape)
    place = np.pad(np.arange(x.size).reshape(shape), sides, mode=NUMPY[mode]).reshape(-1)  # type: ignore[call-overload]

    def gathered(g: np.ndarray) -> np.ndarray:
        return np.bincount(place, g.reshape(-1), x.size).reshape(shape)

    (g,) = tt.autograd.grad((y * y * tt.tensor(w, device=device)).sum(), t, create_graph=True)
    first = gathered(2 * w * want)
    np.testing.assert_allclose(g.detach().cpu().numpy(), first, rtol=1e-12, atol=1e-12)
    (h,) = tt.autograd.grad((g * g).sum(), t)
    np.testing.assert_allclose(
        h.cpu().numpy(), gathered(2 * w * (2 * first).reshape(-1)[place].reshape(want.shape)), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("mode", "pad", "want"),
    [
        ("reflect", (-3, 3), [3, 2, 1, 0]),
        ("reflect", (3, -1), [3, 2, 1, 0, 1, 2]),
        ("replicate", (5, -5), [0, 0, 0, 0]),
        ("replicate", (-2, 3), [2, 3, 3, 3, 3]),
        ("circular", (-1, 1), [1, 2, 3, 1]),
        ("circular", (-2, 3), [2, 3, 2, 3, 2]),
        ("circular", (4, 1), [0, 1, 2, 3, 0, 1, 2, 3, 0]),
        ("circular", (-2, -2), []),
    ],
)
def test_negative_sizes_cut_what_is_there_after_padding(mode: str, pad: tuple[int, int], want: list[int]) -> None:
    assert F.pad(tt.tensor([[0, 1, 2, 3]]), pad, mode).tolist() == [want]


@pytest.mark.parametrize("mode", MODES)
def test_without_padding_a_copy(mode: str) -> None:
    x = tt.ones(2, 3)
    y = F.pad(x, (0, 0), mode)
    assert y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr()
    assert F.pad(tt.ones(0, 3, 4), (1, 1), mode).shape == (0, 3, 6)


@pytest.mark.parametrize("mode", MODES)
def test_refusals(mode: str) -> None:
    x = tt.ones(2, 4)
    for pad in ((-3, -2), (1,)):
        with pytest.raises(ShapeError, match=r"pad: "):
            F.pad(x, pad, mode)
    with pytest.raises(ShapeError, match="pads the last 1, 2 or 3 dimensions behind"):
        F.pad(tt.ones(4), (1, 1), mode)
    with pytest.raises(ShapeError, match="pads the last 1, 2 or 3 dimensions behind"):
        F.pad(tt.ones(1, 2, 3, 4), (1, 1), mode)
    with pytest.raises(ShapeError, match=r"at dim 2 of \(2, 3, 0\)"):
        F.pad(tt.ones(2, 3, 0), (1, 1), mode)
    with pytest.raises(ValueError, match=f"mode '{mode}' takes no value, 3.0 was given"):
        F.pad(x, (1, 1), mode, 3.0)
    if mode != "replicate":
        with pytest.raises(ShapeError, match=f"pad: 5 and 1 {'reflected' if mode == 'reflect' else 'wrapped'} at dim 1"):
            F.pad(x, (5, 1), mode)
    with pytest.raises(ValueError, match="mode 'mirror' is not known"):
        F.pad(x, (1, 1), "mirror")


def test_a_reflection_needs_more_than_it_mirrors() -> None:
    with pytest.raises(ShapeError, match="4 and 1 reflected at dim 1"):
        F.pad(tt.ones(2, 4), (4, 1), "reflect")
    with pytest.raises(ShapeError, match="-2 and -2 reflected at dim 1"):
        F.pad(tt.ones(2, 4), (-2, -2), "reflect")
    with pytest.raises(ShapeError, match="-2 and -2 repeated at dim 1"):
        F.pad(tt.ones(2, 4), (-2, -2), "replicate")
