"""Losses reduced: by `reduction=`, by the two flags that older code gives, with weights for each element."""

from __future__ import annotations

import pytest

import tritensor as tt

F, nn = tt.nn.functional, tt.nn
LOSSES = {
    "mse_loss": (F.mse_loss, nn.MSELoss, lambda: (tt.tensor([1.0, 2.0, 4.0]), tt.tensor([0.0, 0.0, 1.0]))),
    "l1_loss": (F.l1_loss, nn.L1Loss, lambda: (tt.tensor([1.0, 2.0, 4.0]), tt.tensor([0.0, 0.0, 1.0]))),
    "cross_entropy": (F.cross_entropy, nn.CrossEntropyLoss, lambda: (tt.eye(3), tt.tensor([0, 1, 1]))),
    "nll_loss": (F.nll_loss, nn.NLLLoss, lambda: (tt.eye(3), tt.tensor([0, 1, 1]))),
    "bce_with_logits": (
        F.binary_cross_entropy_with_logits, nn.BCEWithLogitsLoss, lambda: (tt.tensor([1.0, 2.0, 4.0]), tt.tensor([0.0, 1.0, 1.0])),
    ),
}  # fmt: skip
FLAGS = [
    ({"size_average": True}, "mean"),
    ({"size_average": False}, "sum"),
    ({"reduce": True}, "mean"),
    ({"reduce": False}, "none"),
    ({"reduce": False, "size_average": False}, "none"),
    ({"reduce": True, "size_average": False, "reduction": "none"}, "sum"),
]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("flags", "meant"), FLAGS)
def test_the_old_flags_mean_a_reduction_and_say_which(name: str, flags: dict[str, object], meant: str) -> None:
    function, layer, inputs = LOSSES[name]
    right = function(*inputs(), reduction=meant).tolist()
    with pytest.warns(UserWarning, match=f"give reduction='{meant}' instead"):
        assert function(*inputs(), **flags).tolist() == right
    with pytest.warns(UserWarning, match=f"give reduction='{meant}' instead"):
        module = layer(**flags)
    assert module.reduction == meant
    assert module(*inputs()).tolist() == right


@pytest.mark.parametrize(("reduction", "mse", "l1"), [("none", [1.0, 8.0, 9.0], [1.0, 4.0, 3.0]), ("sum", 18.0, 8.0), ("mean", 4.5, 2.0)])
def test_weights_of_elements(reduction: str, mse: object, l1: object) -> None:
    _, _, inputs = LOSSES["mse_loss"]
    weight = tt.tensor([1.0, 2.0, 1.0])
    assert F.mse_loss(*inputs(), reduction=reduction, weight=weight).tolist() == mse
    assert F.l1_loss(*inputs(), reduction=reduction, weight=weight).tolist() == l1
    with pytest.raises(ValueError, match=r"mse_loss: weight \(2,\) and input \(3,\) must have one shape"):
        F.mse_loss(*inputs(), weight=tt.ones(2))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_reduced_mse_loss_of_transposed_inputs_is_one_number(device: str, reduction: str) -> None:
    x, y = (tt.arange(6.0, device=device).reshape(2, 3).t() * k for k in (1.0, 2.0))
    loss = F.mse_loss(x, y, reduction=reduction)
    assert loss.shape == ()
    assert loss.item() == pytest.approx({"mean": 55 / 6, "sum": 55.0}[reduction])
