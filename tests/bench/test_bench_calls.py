"""Calls of the benches: --op, --against, the calls of real networks, the configs of kernels, sizes that are a GPU's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from bench.cpu import ops
from bench.cpu.ops import OnCpu
from bench.gpu import command
from bench.gpu.configs import configs_of
from bench.gpu.model_sizes import MODEL_CALLS
from bench.gpu.rows import caller, cases, corners, prepare
from bench.gpu.run import Bench, Plan
from bench.gpu.sizes import SIDE, Tiled, label, shapes
from tritensor.ops.table import Sample, Spec, registry


# calls of networks
@pytest.mark.parametrize("op", MODEL_CALLS)
def test_the_calls_of_networks_are_calls(op: str) -> None:
    """The op's own shape rule takes them, and rows carry the network's name, once for each input."""
    rng = Tiled(dry=True)
    for where, draw in MODEL_CALLS[op]:
        sample = draw(rng)
        specs = [
            Spec(x.shape, np.dtype(np.float32) if x.dtype.kind == "f" else x.dtype) if isinstance(x, np.ndarray) else x
            for x in sample.inputs
        ]
        registry[op].shape(*specs, **sample.attrs)
        (found,) = [s for s in shapes(registry[op], "float32", dry=True) if label(s.sample) == label(sample)]
        assert found.model == where
    rows = list(cases(registry[op], quick=False))
    assert len({c.key for c in rows}) == len(rows)
    assert {c.model for c in rows} >= {where for where, _ in MODEL_CALLS[op]}


def test_a_smaller_side_leaves_networks_out() -> None:
    assert not [s for s in shapes(registry["softmax"], "float32", SIDE // 4, dry=True) if s.model]


# configs
def test_configs_of_a_call() -> None:
    x = tt.ones((4, 300), device="cuda", requires_grad=True)
    y = x.softmax(-1)
    for _ in range(2):  # replayed from the second time on: heard nevertheless
        x.softmax(-1)
    forward = configs_of(lambda: x.softmax(-1))
    backward = configs_of(lambda: tt.autograd.grad(y.sum(), x, retain_graph=True))
    assert len(forward) == 1
    assert forward[0]["constants"]["BN"] >= 300
    assert forward[0]["num_warps"] in (1, 2, 4, 8)
    assert "_backward_kernel" in [c["kernel"] for c in backward]
    assert json.loads(json.dumps(forward + backward)) == forward + backward
    assert configs_of(lambda: tt.ones(3).exp()) == []


def test_launches_that_are_alike_are_counted() -> None:
    x = tt.ones(8, device="cuda")
    (found,) = configs_of(lambda: (x.exp(), x.exp(), x.exp()))
    assert found["launches"] == 3


# bytes
def bytes_of(op: str, sample: Sample) -> list[int]:
    """What forward and backward must move, on the CPU in float32."""
    lib = OnCpu()
    return [prepare(lib, c, 0, caller(lib, c)).bytes for c in corners(registry[op], "float32", sample)]  # type: ignore[arg-type]


def test_a_backward_moves_gradients_and_what_it_keeps() -> None:
    x = np.ones((8, 16))
    assert bytes_of("softmax", Sample(x, dim=1)) == [2 * 4 * 128, 3 * 4 * 128], "x, y; then g, y, dx"


def test_a_backward_that_gives_views_moves_nothing() -> None:
    x = np.ones((1 << 10, 1 << 10))
    assert bytes_of("sum", Sample(x, dim=(1,), keepdim=False))[1] == 0
    assert bytes_of("cat", Sample(x, x, dim=0))[1] == 0
    assert bytes_of("mean", Sample(x, dim=(1,), keepdim=False))[1] == 2 * 4 * (1 << 10), "g over n, expanded"


# what is asked for
def test_peers_are_chosen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.parser().parse_args(["--against", "torch"]).against == ("torch",)
    assert command.parser().parse_args(["--against", "none"]).against == ()
    with pytest.raises(SystemExit, match="2"):
        command.parser().parse_args(["--against", "jax"])
    assert "jax: no such peer; there are torch, compile, and none" in capsys.readouterr().err
    monkeypatch.setattr(command, "torch_installed", lambda: False)
    assert command.peer_library(("torch", "compile")) is None
    assert capsys.readouterr().out == "torch and torch.compile: torch is not installed here, so rows have no ratio to them\n"
    assert command.peer_library(("compile",)) is None
    assert capsys.readouterr().out == "torch.compile: torch is not installed here, so rows have no ratio to it\n"
    assert command.peer_library(()) is None
    assert capsys.readouterr().out == ""


def test_only_what_is_asked_for_is_compiled_by_the_peer() -> None:
    (small, large) = [c for c in cases(registry["tanh"], quick=False) if c.corner == "forward" and c.dtype == "float32"][-2:]

    class Reported:
        content = {"rows": {small.key: {"ms": 1.0}, large.key: {"ms": 1.0}}, "peer_failed": {}}  # noqa: RUF012

    def worth(**plan: object) -> list[bool]:
        bench = Bench(Plan([small, large], {}, False, None, **plan), Reported(), None, None, 0)  # type: ignore[arg-type]
        return [bench._worth_compiling(c) for c in (small, large)]

    assert worth() == [False, True], "of all ops the largest row alone"
    assert worth(named=True) == [True, True]
    Reported.content["peer_failed"] = {f"torch: {large.key}": "no"}
    assert worth() == [False, False]


# the CPU
def test_ops_are_chosen_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cpu.json"
    assert ops.main(["--op", "topk,sgd_num*", "--seconds", "0.001", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("2 ops on the CPU, ")
    kept = json.loads(out.read_text())
    assert {(r["op"], r["corner"]) for r in kept["rows"].values()} == {
        ("topk", "forward"),
        ("topk", "backward"),
        ("sgd_numbers", "forward"),
    }
    assert kept["cpu"]
    assert kept["ops"] == ["sgd_numbers", "topk"]
    with pytest.raises(SystemExit, match="2"):
        ops.main(["--op", "softmx"])
    assert capsys.readouterr().err == "bench ops: no op is called 'softmx'; did you mean softmax, log_softmax, sort?\n"


def test_a_failure_has_a_code_and_does_not_stop_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    real = ops.row

    def some(lib: object, case: object, seconds: float) -> dict[str, object]:
        if case.corner == "forward":  # type: ignore[attr-defined]
            raise ValueError("planted")
        return real(lib, case, seconds)  # type: ignore[arg-type]

    monkeypatch.setattr(ops, "row", some)
    assert ops.main(["--op", "topk", "--seconds", "0.001", "--out", str(tmp_path / "cpu.json")]) == 1
    said = capsys.readouterr()
    assert "FAILED ValueError: planted" in said.out
    assert "1 failed: topk/forward/float32/" in said.err
    kept = json.loads((tmp_path / "cpu.json").read_text())
    assert [r["corner"] for r in kept["rows"].values()] == ["backward"]
    assert list(kept["failed"].values()) == ["ValueError: planted"]


def test_what_is_too_large_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wide, product = Sample(np.broadcast_to(np.float32(0), (1 << 14, 1 << 14))), Sample(*[np.broadcast_to(np.float32(0), (4096, 4096))] * 2)
    assert ops.too_large(registry["tanh"], wide) == "1024 MiB of inputs are more than 512"
    assert ops.too_large(registry["matmul"], product) == "137.4 GFLOP are more than 12"
    assert ops.too_large(registry["add"], product) == ""
    monkeypatch.setattr(ops, "too_large", lambda op, sample: "planted")
    assert ops.main(["--op", "topk"]) == 0
    assert "left to a GPU: topk size0: planted" in capsys.readouterr().out
