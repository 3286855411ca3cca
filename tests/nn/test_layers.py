"""Layers: shapes of parameters, start values, reprs, refusals, and that each runs as its function."""

import math

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn
from tritensor.ground.errors import ShapeError


def test_linear_starts_uniform_within_its_bound():
    tt.manual_seed(0)
    layer = nn.Linear(400, 120)
    bound = 1 / math.sqrt(400)
    w = layer.weight.detach().numpy()
    assert w.shape == (120, 400)
    assert abs(w).max() <= bound
    assert abs(w).max() > 0.99 * bound
    assert abs(w.std() - bound / math.sqrt(3)) < 0.02 * bound
    assert abs(layer.bias.detach().numpy()).max() <= bound
    tt.manual_seed(0)
    assert np.array_equal(nn.Linear(400, 120).weight.detach().numpy(), w)
    assert nn.Linear(3, 2, bias=False).bias is None
    assert nn.Linear(3, 2, dtype=tt.float64).weight.dtype == tt.float64
    assert nn.Linear(0, 2).bias.tolist() == [0.0, 0.0]
    with pytest.raises(ShapeError, match="must not be negative"):
        nn.Linear(-1, 2)


def test_conv_starts_and_runs():
    tt.manual_seed(0)
    layer = nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2)
    assert tuple(layer.weight.shape) == (6, 2, 3, 2)
    assert abs(layer.weight.detach().numpy()).max() <= 1 / math.sqrt(2 * 3 * 2)
    x = tt.rand(2, 4, 7, 8)
    assert layer(x).tolist() == F.conv2d(x, layer.weight, layer.bias, 2, 1, 1, 2).tolist()
    assert tuple(nn.Conv2d(4, 6, 4, padding="same", dilation=3)(x).shape) == (2, 6, 7, 8)
    for settings, message in [
        ({"groups": 3}, "groups 3 must be positive and divide"),
        ({"padding_mode": "mirror"}, "padding_mode 'mirror' is not known"),
        ({"padding": "full"}, "padding 'full' is not known"),
        ({"padding": "same", "stride": 2}, "not supported for strided"),
    ]:
        with pytest.raises(ValueError, match=message):
            nn.Conv2d(4, 4, 3, **settings)


def test_embedding_starts_normal_with_a_zero_row():
    tt.manual_seed(0)
    layer = nn.Embedding(500, 16, padding_idx=-1)
    w = layer.weight.detach().numpy()
    assert not w[499].any()
    assert abs(w[:499].std() - 1) < 0.03
    assert layer.padding_idx == 499
    assert layer(tt.tensor([[1, 499]])).tolist() == [[w[1].tolist(), w[499].tolist()]]
    rows = tt.tensor([[1.0, 2.0], [3.0, 4.0]])
    fixed = nn.Embedding.from_pretrained(rows)
    assert not fixed.weight.requires_grad
    assert fixed.weight.data_ptr() == rows.data_ptr()
    assert fixed(tt.tensor(1)).tolist() == [3.0, 4.0]
    assert nn.Embedding.from_pretrained(rows, freeze=False).weight.requires_grad
    with pytest.raises(ValueError, match="out of range for 3 embeddings"):
        nn.Embedding(3, 2, padding_idx=3)
    with pytest.raises(ShapeError, match="num_embeddings, embedding_dim"):
        nn.Embedding.from_pretrained(tt.ones(3))


def test_layer_norm_parameters():
    layer = nn.LayerNorm((2, 3))
    assert layer.weight.tolist() == [[1.0] * 3] * 2
    assert layer.bias.tolist() == [[0.0] * 3] * 2
    assert list(nn.LayerNorm(3, bias=False).state_dict()) == ["weight"]
    assert list(nn.LayerNorm(3, elementwise_affine=False).state_dict()) == []
    assert abs(layer(tt.rand(4, 2, 3)).mean().item()) < 1e-6


def test_dropout_only_in_training():
    layer = nn.Dropout(0.5)
    x = tt.ones(1000)
    tt.manual_seed(3)
    assert set(layer(x).numpy()) == {0.0, 2.0}
    assert layer.eval()(x) is x
    with pytest.raises(ValueError, match="between 0 and 1, but got 2"):
        nn.Dropout(2.0)


def test_reshaping_layers():
    x = tt.rand(2, 3, 4)
    assert tuple(nn.Flatten()(x).shape) == (2, 12)
    assert tuple(nn.Flatten(0, 1)(x).shape) == (6, 4)
    assert tuple(nn.Unflatten(2, (2, -1))(x).shape) == (2, 3, 2, 2)
    assert nn.Identity(5, unused=True)(x) is x
    with pytest.raises(TypeError, match="tuple of integers"):
        nn.Unflatten(1, "ab")


def test_every_layer_runs_as_its_function():
    tt.manual_seed(0)
    x, image = tt.rand(3, 4) - 0.5, tt.rand(2, 3, 6, 6)
    target, two = tt.tensor([0, 3, 1]), tt.ones(4) * 2
    pairs = [
        (nn.ReLU()(x), F.relu(x)),
        (nn.LeakyReLU(0.2)(x), F.leaky_relu(x, 0.2)),
        (nn.ELU(0.5)(x), F.elu(x, 0.5)),
        (nn.Softplus(2.0)(x), F.softplus(x, 2.0)),
        (nn.GELU()(x), F.gelu(x)),
        (nn.GELU("tanh")(x), F.gelu(x, approximate="tanh")),
        (nn.SiLU()(x), F.silu(x)),
        (nn.Sigmoid()(x), tt.sigmoid(x)),
        (nn.Tanh()(x), tt.tanh(x)),
        (nn.Softmax(dim=0)(x), F.softmax(x, 0)),
        (nn.LogSoftmax(1)(x), F.log_softmax(x, 1)),
        (nn.MaxPool2d(2)(image), F.max_pool2d(image, 2)),
        (nn.MaxPool2d(3, 2, 1, return_indices=True)(image)[1], F.max_pool2d(image, 3, 2, 1, return_indices=True)[1]),
        (nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)(image), F.avg_pool2d(image, 3, 1, 1, False, False)),
        (nn.CrossEntropyLoss(label_smoothing=0.1)(x, target), F.cross_entropy(x, target, label_smoothing=0.1)),
        (nn.NLLLoss(reduction="sum")(x, target), F.nll_loss(x, target, reduction="sum")),
        (nn.MSELoss()(x, x * 2), F.mse_loss(x, x * 2)),
        (nn.L1Loss(reduction="none")(x, x * 2), F.l1_loss(x, x * 2, reduction="none")),
        (nn.BCEWithLogitsLoss(pos_weight=two)(x, x * 0), F.binary_cross_entropy_with_logits(x, x * 0, pos_weight=two)),
    ]
    for found, expected in pairs:
        assert found.tolist() == expected.tolist()


def test_reprs():
    for layer, text in [
        (
            nn.Conv2d(1, 2, 3, padding="same", dilation=2, bias=False),
            "Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=same, dilation=(2, 2), bias=False)",
        ),
        (nn.Conv2d(2, 2, 3, groups=2), "Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), groups=2)"),
        (nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
        (nn.AvgPool2d((2, 3)), "AvgPool2d(kernel_size=(2, 3), stride=(2, 3), padding=0)"),
        (nn.Dropout(0.3), "Dropout(p=0.3, inplace=False)"),
        (nn.LayerNorm(3), "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)"),
        (nn.Embedding(4, 3, padding_idx=1), "Embedding(4, 3, padding_idx=1)"),
        (nn.Unflatten(1, (2, 3)), "Unflatten(dim=1, unflattened_size=(2, 3))"),
        (nn.Softmax(dim=1), "Softmax(dim=1)"),
        (nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (nn.SiLU(), "SiLU()"),
        (nn.LeakyReLU(0.1, True), "LeakyReLU(negative_slope=0.1, inplace=True)"),
        (nn.Bilinear(1, 2, 3), "Bilinear(in1_features=1, in2_features=2, out_features=3, bias=True)"),
        (nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
        (nn.Identity(3), "Identity()"),
    ]:
        assert repr(layer) == text


def test_losses_refuse_unknown_reductions():
    with pytest.raises(ValueError, match="MSELoss: reduction is 'avg'"):
        nn.MSELoss(reduction="avg")
    assert list(nn.CrossEntropyLoss(weight=tt.ones(3)).state_dict()) == ["weight"]
    assert list(nn.CrossEntropyLoss().state_dict()) == []
