"""The benchmark's peers: torch's counterpart of an op computes what the op does, and `bench gpu` runs with torch beside it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt
from bench.gpu.clock import TorchOnHost
from bench.gpu.command import peer_library
from bench.gpu.peers import PEERS, forget_optimizers
from bench.gpu.rows import caller, corners, host_inputs, placed
from bench.gpu.run import Bench, Plan
from bench.gpu.training import GPTShape, gpt, time_step, works
from bench.reports.report import Report, facts
from tritensor.cuda.runtime.interface import Properties
from tritensor.ops.table import Sample, registry

pytestmark = pytest.mark.peer

RANDOM = {"rand", "randn", "randint", "randperm", "dropout"}  # torch draws other numbers

# torch computes these two by expansions that its sources promise to a relative error of 1e-3; ours are exact to the type.
EXPANDED = {"standard_gamma_grad": 1e-3, "dirichlet_grad": 1e-3}
# Samples that torch refuses, or answers where nothing is defined.
NOT_TORCHS: dict[str, Callable[[Sample], bool]] = {
    "attention": lambda s: s.attrs["causal"] and s.inputs[3] is not None,
    "flash_attention": lambda s: s.attrs["p"] > 0 or (s.attrs["causal"] and s.inputs[3] is not None),  # torch drops others
    "dirichlet_grad": lambda s: bool((s.inputs[2] <= s.inputs[1]).any()),
    "edge_pad": lambda s: s.attrs["mode"] == "circular",  # beyond one turn, and of bool
    "im2col": lambda s: s.inputs[0].dtype.kind != "f",
    "pow": lambda s: s.inputs[0].dtype == np.bool_,
    "resample": lambda s: len(s.attrs["size"]) == 1 and ("cubic" in s.attrs["mode"] or "aa" in s.attrs["mode"]),
}


class OnCpu(TorchOnHost):
    """tritensor on the CPU."""

    name = "tritensor"

    def __init__(self) -> None:
        super().__init__(tt)
        self.device = tt.device("cpu")


def values(out: Any) -> list[np.ndarray]:
    return [np.asarray(x.detach().float() if x.is_floating_point() else x) for x in (out if isinstance(out, tuple) else (out,))]


STEPS = {n for n in PEERS if n.endswith("_step")} - {"sgd_step"}


def test_every_counterpart_is_of_an_op() -> None:
    assert not PEERS.keys() - registry.keys()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # samples hold NaN and infinities
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")  # torch's, of kl_div
@pytest.mark.parametrize("name", sorted(PEERS))
def test_a_counterpart_computes_the_same(name: str) -> None:
    op = registry[name]
    ours, theirs = OnCpu(), TorchOnHost(torch)
    samples = op.samples(np.random.default_rng(zlib.crc32(name.encode())))
    compared = 0
    for sample in samples:
        if not tame(sample) or NOT_TORCHS.get(name, lambda s: False)(sample):
            continue
        case = next(corners(op, "float32" if "float32" in op.dtypes else op.dtypes[0], sample))
        inputs = [placed(lib, case, host_inputs(case)) for lib in (ours, theirs)]
        got, want = (caller(lib, case)(*xs) for lib, xs in zip((ours, theirs), inputs, strict=True))  # type: ignore[misc]
        if op.mutates:
            if name in STEPS:  # torch's optimizer starts at step 1 with states and settings of its own
                continue
            got, want = (xs[op.inputs.index(op.mutates[0])] for xs in inputs)
            if name == "sgd_step" and any(sample.attrs.values()):
                continue
        compared += 1
        for g, w in zip(values(got), values(want), strict=False):
            assert g.shape == w.shape, f"{sample}: {g.shape}, torch {w.shape}"
            if name not in RANDOM:
                np.testing.assert_allclose(g, w, rtol=EXPANDED.get(name, 2e-4), atol=2e-5, err_msg=repr(sample))
    forget_optimizers()
    assert compared or name in STEPS, f"no sample of {name} could be compared"


def tame(sample: Sample) -> bool:
    """Whether torch takes the sample and means the same by it."""
    arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]
    numbers = [x for x in sample.inputs if not isinstance(x, np.ndarray) and x is not None]
    a = sample.attrs
    return (
        not numbers
        and all(x.size and x.dtype != np.int32 and (x.dtype.kind != "f" or np.isfinite(x).all()) for x in arrays)
        and a.get("dim") != ()  # all axes to torch, none to us
        and ("end" not in a or (a["end"] - a["start"]) * a.get("step", 1) > 0)
    )


@pytest.mark.parametrize("tied", [False, True])
def test_the_two_gpts_are_one_model(tied: bool) -> None:
    """With the same weights torch's GPT and ours give the same numbers."""
    shape = GPTShape(blocks=2, width=16, heads=2, length=8, words=11, batch=2, tied=tied)
    ours, theirs = gpt(tt, shape), gpt(torch, shape)
    ours.load_state_dict({k: tt.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    words = np.random.default_rng(0).integers(0, shape.words, (shape.batch, shape.length))
    want = theirs(torch.from_numpy(words)).detach().numpy()
    np.testing.assert_allclose(ours(tt.from_numpy(words)).detach().numpy(), want, rtol=1e-4, atol=1e-5)


def test_both_learn_the_same() -> None:
    """A training step of either library, as it is timed, makes the loss smaller by about as much."""
    shape = GPTShape(blocks=1, width=16, heads=2, length=8, words=11, batch=2)
    for work in works(4, [shape, shape._replace(tied=True)]):
        losses = {lib.name: time_step(lib, work, 0.01) for lib in (OnCpu(), TorchOnHost(torch))}
        assert losses["tritensor"]["last_loss"] < losses["tritensor"]["first_loss"]
        assert losses["torch"]["torch_last_loss"] < losses["torch"]["torch_first_loss"]


@pytest.mark.filterwarnings("ignore")  # torch's own, of its compiler's insides
def test_compiled_by_torch(tmp_path: Path) -> None:
    """The part of a run that compiles: rows get torch.compile's figures, steps of optimizers are left alone."""
    samples = {n: registry[n].samples(np.random.default_rng(0))[0] for n in ("softmax", "sgd_step")}
    found = [c for n, s in samples.items() for c in corners(registry[n], "float32", s)]
    plan = Plan(found, {}, True, None, ("ops", "compile"), most=0.001)
    properties = Properties("a GPU", (9, 0), 1, 1, 1, 1, 32, 1, 1, 1, 1, 1)
    report = Report(tmp_path / "report.json", facts(properties, True))
    assert Bench(plan, report, OnCpu(), TorchOnHost(torch), 0).run() == 0
    assert not report.content["peer_failed"]
    for row in report.content["rows"].values():
        assert ("compile_ms" in row) == (row["op"] == "softmax")
        assert row["torch_ms"] > 0


def test_the_peer_on_a_gpu_computes_in_full_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: "side")
    flags = [(name, getattr(torch.backends.cudnn, name)) for name in ("allow_tf32", "benchmark")]
    try:
        with torch.backends.__allow_nonbracketed_mutation():  # which torch.testing, where another test has imported it, takes away
            lib = peer_library()
            exact = not torch.backends.cudnn.allow_tf32
    finally:
        with torch.backends.__allow_nonbracketed_mutation():
            for name, value in flags:
                setattr(torch.backends.cudnn, name, value)
    assert lib is not None
    assert (lib.name, lib.device) == ("torch", torch.device("cuda", 0))
    assert exact
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.skipif(torch.cuda.is_available(), reason="this torch sees a GPU")
def test_without_a_gpu_there_is_no_peer(capsys: pytest.CaptureFixture[str]) -> None:
    assert peer_library() is None
    assert "sees no GPU" in capsys.readouterr().out
