"""Kernels in the form that they take for arrays of more than 2^31 elements, run on small ones: the numbers are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.kernels  # fills the table
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.kernels.convolution.gpu import depthwise, gathered
from tritensor.kernels.images import adaptive_max, axis_kernel, patches
from tritensor.kernels.images.grid_sampling import gpu as grid_sampling
from tritensor.kernels.losses.ctc import op as ctc
from tritensor.kernels.parts import reduction
from tritensor.kernels.parts.tapes import pointwise
from tritensor.kernels.pooling import average_pooling, max_pooling
from tritensor.ops.replay.corner import forget
from tritensor.ops.table import registry
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case, samples
from tritensor.testing.questions.forward import forward

GPU = device("cuda", 0)
PLACES: dict[str, tuple[Any, str, tuple[str, ...]]] = {  # where it is decided, by which function, and for which ops
    "max pooling": (max_pooling, "long_offsets", ("max_pool2d", "max_pool2d_scatter", "max_pool2d_gather")),
    "average pooling": (average_pooling, "long_offsets", ("avg_pool2d", "avg_pool2d_spread")),
    "maps of axes": (axis_kernel, "long_offsets", ("resample", "edge_pad", "edge_pad_adjoint")),
    "adaptive max pooling": (adaptive_max, "long_offsets", ("adaptive_max_pool",)),
    "grid sampling": (grid_sampling, "long_offsets", ("grid_sample",)),
    "patches": (patches, "long_offsets", ("im2col", "col2im")),
    "convolution": (gathered, "long_offsets", ("conv2d", "conv2d_input", "conv2d_weight")),
    "depthwise convolution": (depthwise, "long_offsets", ("conv2d", "conv2d_input", "conv2d_weight")),
    "pointwise tapes": (pointwise, "_plan", ("add", "where", "clamp")),
    "reduction": (reduction, "layout", ("sum", "max_dim", "prod")),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    module, decides, names = PLACES[place]
    rule: Callable[..., Any] = getattr(module, decides)
    asked = []

    def long(*args: Any, **given: Any) -> Any:
        asked.append(found := rule(*args, **given))
        return True if isinstance(found, bool) else found._replace(long_offsets=True)

    monkeypatch.setattr(module, decides, long)
    forget()
    found = []
    for name in names:
        op = registry[name]
        for index, sample in enumerate(samples(op)):
            if all(x.dtype != np.float64 for x in sample.inputs if isinstance(x, np.ndarray)):
                continue
            case = Case(op, index, sample, "float32", "plain", GPU)
            found += forward(case) + backward_is_rule(case)
    assert found == []
    assert asked


def test_times_of_ctc_that_lie_billions_of_elements_apart() -> None:
    """Rows of a batch so large that the next time's begin behind 2^31 elements: the address is where they are, not what is left of it in 32 bits."""
    p, states, losses = (tt.zeros(*shape, device="cuda")._array for shape in ((2, 3), (2, 3), (1,)))
    targets, one, two, errors = (tt.tensor(n, device="cuda")._array for n in ([[1]], [1], [2], [0] * 4))
    batch, sizes = 1 << 30, (1, 3, 3, np.int64(0))
    with pytest.raises(SanitizerError, match=r"store of alpha\[1073741824, 2\]"):
        launch(ctc._forward_kernel, (1,), p, targets, one, one, losses, states, 2, batch, *sizes, errors, np.int64(1), STATES=4)
    with pytest.raises(SanitizerError, match=r"load of alpha\[1073741824, 2\]"):
        launch(ctc._passing_kernel, (1,), losses, p, targets, two, one, states, states, states, 2, batch, *sizes, STATES=4)
