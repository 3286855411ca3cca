"""Whole models: convolutional nets, recurrent nets, transformers, with batches, sequences and images of other sizes than the sample's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.onnx.agreement import agree, compare
from tritensor import nn
from tritensor.models import GPT2, GPT2Config, LeNet, UNet, resnet18

BATCH, SEQUENCE, TIME_FIRST = {0: "batch"}, {0: "batch", 1: "time"}, {0: "time", 1: "batch"}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    tt.manual_seed(0)


def test_lenet() -> None:
    program = agree(LeNet(), (tt.randn(2, 1, 32, 32),), {0: BATCH})
    kinds = [n.op_type for n in program.model_proto.graph.node]
    assert kinds == ["Conv", "Relu", "MaxPool", "Conv", "Relu", "MaxPool", "Reshape", "Gemm", "Relu", "Gemm", "Relu", "Gemm"]
    assert set(program.initializers) >= set(LeNet().state_dict())


def test_resnet18() -> None:
    model = resnet18(num_classes=10)
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
    program = agree(model, (tt.randn(1, 3, 40, 40),), {0: {0: "batch", 2: "height", 3: "width"}}, more=9)
    assert len(program.nodes) == 69
    own = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    for name, value in own.items():
        assert np.array_equal(program.initializers[name], value.numpy()), name


@pytest.mark.slow
def test_unet() -> None:
    agree(UNet(1, 2), (tt.randn(1, 1, 32, 32),), {0: BATCH})


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("first", [True, False])
def test_recurrent_nets(kind: str, first: bool) -> None:
    model = getattr(nn, kind)(4, 5, 2, bidirectional=True, batch_first=first)
    program = agree(model, (tt.randn(3, 6, 4),), {0: SEQUENCE if first else TIME_FIRST})
    assert [n.op_type for n in program.nodes].count(kind) == 4
    assert "Loop" not in {n.op_type for n in program.nodes}


def test_recurrent_nets_with_states() -> None:
    states = {0: TIME_FIRST, 1: {1: "batch"}}
    agree(nn.GRU(4, 5, bias=False), (tt.randn(6, 3, 4), tt.randn(1, 3, 5)), states)
    agree(nn.RNN(4, 5, nonlinearity="relu"), (tt.randn(6, 3, 4), tt.randn(1, 3, 5)), states)
    agree(Stateful(), (tt.randn(6, 3, 4), tt.randn(1, 3, 5), tt.randn(1, 3, 5)), {**states, 2: {1: "batch"}})


class Stateful(nn.Module):
    """An LSTM that is given its first states."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(4, 5)

    def forward(self, x: tt.Tensor, h: tt.Tensor, c: tt.Tensor) -> Any:
        return self.net(x, (h, c))


def test_lstm_with_a_projection_is_written_step_by_step() -> None:
    agree(nn.LSTM(4, 5, proj_size=2, bidirectional=True), (tt.randn(4, 3, 4),), {0: {1: "batch"}})
    with pytest.raises(tt.onnx.DynamicAxisError, match=r"A loop or a branch over a dynamic axis|calls \d+ ops and not"):
        agree(nn.LSTM(4, 5, proj_size=2), (tt.randn(4, 3, 4),), {0: TIME_FIRST})


def test_packed_sequences_of_fixed_lengths() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.GRU(3, 4)

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(x, tt.tensor([5, 3, 2]))
            return nn.utils.rnn.pad_packed_sequence(self.net(packed)[0])[0]

    agree(Packed(), (tt.randn(5, 3, 3),))


class SentenceClassifier(nn.Module):
    """Embedding, LSTM, the last state."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.net, self.out = nn.Embedding(20, 6), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, tokens: tt.Tensor) -> tt.Tensor:
        _, (h, _) = self.net(self.words(tokens))
        return self.out(h[-1])


def test_lstm_classifier() -> None:
    agree(SentenceClassifier(), (tt.randint(0, 20, (2, 7)),), {0: SEQUENCE})


class GPTBlock(nn.Module):
    """A block as it is written in every tutorial: projections cut apart, heads made by view, a mask that is cut to the length."""

    def __init__(self, size: int = 16, heads: int = 2, longest: int = 24) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.attend, self.project = nn.LayerNorm(size), nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.places = nn.Embedding(longest, size)
        self.feed = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))
        self.register_buffer("mask", tt.tril(tt.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        batch, time, size = x.size()
        x = x + self.places(tt.arange(time))
        q, k, v = (
            t.view(batch, time, self.heads, size // self.heads).transpose(1, 2) for t in self.attend(self.norm(x)).split(size, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
        scores = scores.masked_fill(self.mask[:, :, :time, :time] == 0, float("-inf"))
        y = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(batch, time, size)
        x = x + self.project(y)
        return x + self.feed(x)


@pytest.mark.parametrize("opset", [13, 17, 18, 20, 23])
def test_gpt_block(opset: int) -> None:
    agree(GPTBlock(), (tt.randn(2, 7, 16),), {0: SEQUENCE}, opset_version=opset)


def test_gpt2() -> None:
    model = GPT2(GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=2, n_head=2))
    program = agree(model, (tt.randint(0, 50, (2, 7)),), {0: SEQUENCE})
    tied = [n for n in model.state_dict() if "wte" in n or "lm_head" in n]
    assert sum(n in program.initializers for n in tied) == 1, "a weight that is used twice is stored once"


def test_transformer_layers() -> None:
    both = {0: {0: "batch", 1: "target"}, 1: {0: "batch", 1: "source"}}
    agree(nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2), (tt.randn(2, 7, 16),), {0: SEQUENCE})
    agree(nn.TransformerEncoderLayer(16, 2, 32, norm_first=True, activation="gelu"), (tt.randn(7, 2, 16),), {0: TIME_FIRST})
    agree(nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), (tt.randn(2, 7, 16), tt.randn(2, 5, 16)), both)
    agree(nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), 1), (tt.randn(2, 7, 16), tt.randn(2, 5, 16)), both)
    agree(nn.Transformer(16, 2, 1, 1, 32, batch_first=True), (tt.randn(2, 5, 16), tt.randn(2, 7, 16)), {0: both[1], 1: both[0]})


class Attending(nn.Module):
    """MultiheadAttention over other keys than queries, with a mask of padding."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, **options)

    def forward(self, x: tt.Tensor, y: tt.Tensor, padding: tt.Tensor) -> Any:
        return self.attention(x, y, y, key_padding_mask=padding)


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True, "add_zero_attn": True}, {"bias": False, "kdim": 16, "vdim": 16}])
def test_multihead_attention(options: dict[str, Any]) -> None:
    padding = tt.tensor([[False] * 5, [False, False, True, True, False]])
    axes = {0: {0: "batch", 1: "queries"}, 1: {0: "batch", 1: "keys"}, 2: {0: "batch", 1: "keys"}}
    agree(Attending(**options), (tt.randn(2, 7, 16), tt.randn(2, 5, 16), padding), axes)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("mask", [None, "bool", "float"])
def test_scaled_dot_product_attention(causal: bool, mask: str | None) -> None:
    q, k, v = tt.randn(2, 4, 6, 8), tt.randn(2, 2, 6, 8), tt.randn(2, 2, 6, 8)
    m = None if mask is None else tt.rand(6, 6) > 0.5 if mask == "bool" else tt.randn(6, 6)
    if m is not None and mask == "bool":
        m[2] = False  # a query that sees nothing

    def attend(q: tt.Tensor, k: tt.Tensor, v: tt.Tensor) -> tt.Tensor:
        return F.scaled_dot_product_attention(q, k, v, m, is_causal=causal, enable_gqa=True)

    axes = {0: "batch"} if m is not None else {0: "batch", 2: "length"}
    agree(attend, (q, k, v), {0: axes, 1: axes, 2: axes})


def test_einsum_and_pictures() -> None:
    agree(lambda x, w: tt.einsum("bij,kj->bki", x, w), (tt.randn(2, 3, 4), tt.randn(5, 4)), {0: BATCH})
    agree(
        lambda x: F.grid_sample(x, F.affine_grid(tt.eye(2, 3).expand(x.size(0), 2, 3), x.size(), False), align_corners=False),
        (tt.randn(2, 3, 5, 4),),
        {0: BATCH},
    )
    agree(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (tt.randn(2, 3, 5, 4),), {0: {0: "b", 2: "h", 3: "w"}})
    agree(lambda x: F.interpolate(x, size=(x.shape[2] * 2, 7)), (tt.randn(2, 3, 5, 4),), {0: {0: "b", 2: "h", 3: "w"}})
    agree(lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"), (tt.randn(2, 3, 5, 4),), {0: {0: "b", 2: "h", 3: "w"}})


@pytest.mark.parametrize("dtype", [tt.float64, tt.float16, tt.bfloat16])
def test_other_types(dtype: tt.dtype) -> None:
    model = nn.Sequential(
        nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.AvgPool1d(2), nn.Flatten(), nn.LayerNorm(12), nn.Linear(12, 2), nn.Softmax(1)
    )
    agree(model.to(dtype), (tt.randn(2, 3, 8, dtype=dtype),), {0: BATCH}, tolerance=1e-4 if dtype == tt.float64 else 3e-2)


def test_training_mode_normalizes_by_the_batch() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    x = tt.randn(6, 4)
    with pytest.warns(tt.onnx.TracerWarning, match=r"forward writes 1\.num_batches_tracked, 1\.running_mean, 1\.running_var"):
        program = tt.onnx.export(model, (x,), training=tt.onnx.TrainingMode.TRAINING, dynamic_axes={"input": {0: "n"}})
    assert all(tt.equal(v, before[k]) for k, v in model.state_dict().items()), "an export changes nothing"
    compare(program, nn.Sequential(model[0], nn.BatchNorm1d(3, track_running_stats=False)), (tt.randn(9, 4),))


def test_models_on_the_device_are_read_back() -> None:
    """The graph knows no devices; weights and samples are copied to the host."""
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.LayerNorm(3)).to("cuda")
    agree(model, (tt.randn(2, 4, device="cuda"),), {0: BATCH})
    assert all(p.device.type == "cuda" for p in model.parameters())
    recurrent = nn.LSTM(4, 5, batch_first=True).to("cuda")
    agree(recurrent, (tt.randn(2, 3, 4, device="cuda"),), {0: SEQUENCE})


def test_a_model_that_keeps_what_it_computes() -> None:
    """A tensor that outlives the trace is a plain one again."""

    class Keeping(nn.Module):
        def forward(self, x: tt.Tensor) -> tt.Tensor:
            self.last = x * 2
            return self.last + 1

    model = Keeping()
    agree(model, (tt.randn(3, 4),), {0: BATCH})
    tt.onnx.export(model, (tt.ones(3, 4),))
    assert (model.last + 1).sum().item() == 36


def test_views_of_weights_that_a_module_keeps() -> None:
    class Sharing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(tt.randn(4, 3))
            with tt.no_grad():
                self.first = self.weight[:2]
            self.plain = tt.arange(6.0).reshape(2, 3)  # no buffer

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            return x @ self.weight.t() + x @ self.first.t().repeat(1, 2) + (x @ self.plain.t()).sum(1, keepdim=True)

    model = Sharing()
    program = agree(model, (tt.randn(2, 3),), {0: BATCH})
    assert "weight" in program.initializers
    assert type(model.first._array) is np.ndarray


def test_autocast_inside_of_forward() -> None:
    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            with tt.autocast("cpu", dtype=tt.bfloat16):
                return self.inner(x).float()

    program = agree(Cast(), (tt.randn(3, 4),), {0: BATCH}, tolerance=2e-2)
    assert [n.op_type for n in program.nodes] == ["Cast", "Gemm", "Cast"]


def test_exports_in_several_threads() -> None:
    """Each traces its own; what other threads make meanwhile is plain."""
    from concurrent.futures import ThreadPoolExecutor

    def one(seed: int) -> tuple[int, type]:
        made = type(tt.zeros(3)._array)
        program = agree(SentenceClassifier(), (tt.randint(0, 20, (2, 3 + seed)),), {0: SEQUENCE})
        return len(program.nodes), made

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one, range(8)))
    assert {n for n, _ in found} == {found[0][0]}
    assert {made for _, made in found} == {np.ndarray}
    assert type(tt.zeros(3)._array) is np.ndarray
    assert "full" not in vars(tt.ops) or not vars(tt.ops)["full"].__qualname__.startswith("_record_creation")
