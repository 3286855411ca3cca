"""The five notebooks as they are stored: run in order, light, about what they must show; and a stale output would be told."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path

import pytest

import tritensor as tt
from docs.site import notebooks

PATHS = notebooks.notebooks()
SHOWN = {
    "01_tensors": ("from_numpy", "stride()", "einsum", "manual_seed", 'device="cuda"', "@triton.jit", "SanitizerError"),
    "02_autograd": (
        "make_dot",
        "create_graph=True",
        "hessian",
        "vmap",
        "autograd.Function",
        "tt.elementwise",
        "replace=True",
        "testing.findings",
    ),
    "03_optimisation": ("LBFGS", "getsource", "differentiable=True", "lr_scheduler", "clip_grad_norm_"),
    "04_modules": ("nn.Sequential(with_square", "nn.Module", "summary", "lint", "load_digits", "register_forward_hook", "state_dict"),
    "05_data": (
        "Dataset",
        "DataLoader",
        "random_split",
        "collate_fn",
        "WeightedRandomSampler",
        "Trainer",
        "Callback",
        "tt.save",
        "tt.load",
        "vision",
        "num_workers",
        "SummaryWriter",
        "TensorBoard(",
        "profiler.profile",
        '"digits.pt"',
    ),
}


def test_there_are_five() -> None:
    assert [p.stem for p in PATHS] == sorted(SHOWN)


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_stored_notebook_can_be_read_as_it_is(path: Path) -> None:
    assert path.stat().st_size < notebooks.LARGEST
    notebook = notebooks.read(path)
    code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in code] == list(range(1, len(code) + 1)), "run `python -m docs.site.notebooks`"
    kinds = [kind for c in code for o in c["outputs"] for kind in o.get("data", {})]
    assert sum(kind.startswith("image/") for kind in kinds) >= 3, "pictures"
    assert not [o for c in code for o in c["outputs"] if o["output_type"] == "error"]
    assert notebooks.stored(notebook) == notebook, "stored by something else than `python -m docs.site.notebooks`"
    text = "\n".join(c["source"] for c in notebook["cells"])
    said = "\n".join(t for cell in notebooks.texts(notebook) for t in cell)
    for word in SHOWN[path.stem]:
        assert word in text + said, word
    assert "/home/" not in said
    assert " at 0x" not in said
    assert notebook["cells"][0]["source"].startswith("# ")


def test_a_stale_output_is_told() -> None:
    old = notebooks.read(PATHS[0])
    assert notebooks.stale(old, copy.deepcopy(old), "n") == []
    new = copy.deepcopy(old)
    cell = next(c for c in new["cells"] if c["cell_type"] == "code" and c["outputs"] and c["outputs"][0]["output_type"] == "stream")
    cell["outputs"][0]["text"] += "more"
    (said,) = notebooks.stale(old, new, "n")
    assert said.startswith("n, cell of code 2: stored ")
    assert "python -m docs.site.notebooks" in said
    new["cells"] = new["cells"][:-2]
    assert "cells" in notebooks.stale(old, new, "n")[0]


def test_what_depends_on_the_number_of_processors_is_not_stored(tmp_path: Path) -> None:
    notebooks.environment(str(tmp_path))
    code = (tmp_path / "profile_default" / "startup" / "processors.py").read_text()
    dataset = tt.data.TensorDataset(tt.zeros(2))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tt.data.DataLoader(dataset, num_workers=1000)
        assert [str(w.message).startswith("This DataLoader will create 1000 worker processes") for w in told] == [True], (
            "what a kernel would show"
        )
        exec(code, {})
        tt.data.DataLoader(dataset, num_workers=1000)
        assert len(told) == 1


def test_what_depends_on_the_clock_is_not_stored(tmp_path: Path) -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": "a\n"}, {"output_type": "stream", "name": "stdout", "text": "b\nc"},
        {"output_type": "stream", "name": "stderr", "text": "d"},
        {"output_type": "display_data", "data": {"image/png": "AA==", "text/plain": "<Figure size 640x480 with 1 Axes>"}, "metadata": {"x": 1}},
        {"output_type": "execute_result", "data": {"text/plain": "7\n8"}, "metadata": {}, "execution_count": 31},
    ]  # fmt: skip
    cell = {
        "cell_type": "code",
        "id": "abc",
        "source": "x\ny",
        "outputs": outputs,
        "execution_count": 7,
        "metadata": {"execution": {"time": "2026"}},
    }
    notebook = notebooks.stored({"cells": [cell]})
    (kept,) = notebook["cells"]
    assert (kept["id"], kept["metadata"], kept["execution_count"], kept["source"]) == ("cell-01", {}, 1, "x\ny")
    assert [o.get("text") for o in kept["outputs"]] == ["a\nb\nc", "d", None, None]
    assert kept["outputs"][2]["data"]["text/plain"] == "a picture"
    assert kept["outputs"][2]["metadata"] == {}
    assert kept["outputs"][3]["execution_count"] == 1
    notebooks.write(notebook, tmp_path / "n.ipynb")
    assert notebooks.read(tmp_path / "n.ipynb") == notebook, "written a line for a line, read back whole"
