"""The records of our SummaryWriter beside those of torch's: the same tags, steps and messages, byte by byte where the format leaves no choice."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import pytest
import torch
import torch.utils.tensorboard
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util
from torch.utils.tensorboard import SummaryWriter as TorchWriter

import tritensor as tt
from tests.utils.tensorboard.reading import values
from tritensor.utils.tensorboard import FileWriter, SummaryWriter

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]  # warnings of tensorboard, of tensorflow's absence
DATA = np.random.default_rng(0)
NORMAL = DATA.standard_normal(3000)
IMAGE, MANY = DATA.random((3, 20, 30)).astype(np.float32), DATA.random((10, 1, 8, 9)).astype(np.float32)
LABELS, SCORES, WEIGHTS = DATA.integers(0, 2, 200), DATA.random(200), DATA.random(200)
POINTS, COLOURS, FACES = DATA.random((2, 4, 3)).astype(np.float32), DATA.integers(0, 255, (2, 4, 3)), DATA.integers(0, 4, (2, 5, 3))
Log = Callable[[Any, Callable[[np.ndarray], Any]], None]

EQUAL: dict[str, Log] = {  # messages that are to be the same
    "scalars": lambda w, t: [w.add_scalar("a", v, i) for i, v in enumerate((0.0, 1e300, float("nan"), -2, t(np.array([3.5])), True))],
    "scalar, new style": lambda w, t: w.add_scalar("a", 1.1, 3, new_style=True),
    "scalar, double": lambda w, t: w.add_scalar("a", 1.1, 3, new_style=True, double_precision=True),
    "histogram": lambda w, t: w.add_histogram("h", t(NORMAL), 1),
    "histogram of float32": lambda w, t: w.add_histogram("h", t(NORMAL.astype(np.float32)), 1),
    "histogram of integers": lambda w, t: w.add_histogram("h", t(LABELS), 1),
    "histogram of one value": lambda w, t: w.add_histogram("h", t(np.ones(3)), 1),
    "histogram of zeros": lambda w, t: w.add_histogram("h", t(np.zeros(3)), 1),
    "histogram of large values": lambda w, t: w.add_histogram("h", t(NORMAL * 1e18), 1),
    "histogram, bins": lambda w, t: w.add_histogram("h", t(NORMAL), 1, bins="fd"),
    "histogram, limits": lambda w, t: w.add_histogram("h", t(NORMAL), 1, bins=np.linspace(-1, 1, 9)),
    "histogram, max_bins": lambda w, t: w.add_histogram("h", t(NORMAL), 1, bins=100, max_bins=30),
    "histogram, raw": lambda w, t: w.add_histogram_raw("h", 0, 1.5, 3, 2.0, 1.5, [0.5, 1.0], [1, 2], 2),
    "sound": lambda w, t: w.add_audio("s", t(np.sin(np.arange(999) / 7).astype(np.float32)), 1, sample_rate=8000),
    "text": lambda w, t: w.add_text("t", "größer **als**", 1),
    "curve": lambda w, t: w.add_pr_curve("p", t(LABELS), t(SCORES), 1),
    "curve, weights": lambda w, t: w.add_pr_curve("p", LABELS, SCORES, 1, num_thresholds=20, weights=WEIGHTS),
    "curve, raw": lambda w, t: w.add_pr_curve_raw("p", *[t(SCORES[:5])] * 6, 1, 5),
    "mesh": lambda w, t: w.add_mesh("m", t(POINTS), t(COLOURS), t(FACES), {"b": 1, "a": [2]}, 1),
    "points": lambda w, t: w.add_mesh("m", t(POINTS)),
    "layout": lambda w, t: w.add_custom_scalars({"A": {"x": ["Multiline", ["a", "b"]], "y": ["Margin", ["a", "b", "c"]]}}),
    "line chart": lambda w, t: w.add_custom_scalars_multilinechart(["a", "b"], "c", "d"),
    "margin chart": lambda w, t: w.add_custom_scalars_marginchart(["a", "b", "c"]),
}


@pytest.mark.parametrize(("ours", "torchs"), [(SummaryWriter, TorchWriter), (FileWriter, torch.utils.tensorboard.FileWriter)])
def test_arguments_are_the_same(ours: type, torchs: type) -> None:
    for name, method in inspect.getmembers(torchs, inspect.isfunction):
        if not name.startswith("_") or name == "__init__":
            mine = inspect.signature(getattr(ours, name)).parameters.values()
            theirs = inspect.signature(method).parameters.values()
            assert [(p.name, p.kind, p.default) for p in mine] == [(p.name, p.kind, p.default) for p in theirs], name


def both(tmp_path: Path, log: Log, below: str = "") -> tuple[dict[Any, Any], dict[Any, Any]]:
    for name, writer, make in (("ours", SummaryWriter, tt.from_numpy), ("torchs", TorchWriter, torch.from_numpy)):
        with writer(tmp_path / name) as w:
            log(w, make)
    return values(tmp_path / "ours" / below), values(tmp_path / "torchs" / below)


def same(ours: dict[Any, Any], torchs: dict[Any, Any]) -> None:
    assert ours.keys() == torchs.keys()
    assert ours, "something was written"
    for key, value in ours.items():
        mine, theirs = (v.SerializeToString(deterministic=True) for v in (value, torchs[key]))
        assert mine == theirs, f"{key}: {value} beside {torchs[key]}"


@pytest.mark.parametrize("name", EQUAL)
def test_messages_are_the_same(name: str, tmp_path: Path) -> None:
    same(*both(tmp_path, EQUAL[name]))


def test_scalars_of_one_chart(tmp_path: Path) -> None:
    same(*both(tmp_path, lambda w, t: w.add_scalars("x/y", {"a": 1.0, "b": t(np.ones(1))}, 5), "x_y_b"))


def drawn() -> Any:
    figure = matplotlib.figure.Figure(figsize=(2, 1))
    figure.add_subplot().plot([1, 3, 2])
    return figure


PICTURES: dict[str, Log] = {
    "image": lambda w, t: w.add_image("i", t(IMAGE), 1),
    "bytes": lambda w, t: w.add_image("i", (IMAGE * 255).astype(np.uint8).transpose(1, 2, 0), 1, dataformats="HWC"),
    "grey": lambda w, t: w.add_image("i", IMAGE[0], 1, dataformats="HW"),
    "out of range": lambda w, t: w.add_image("i", t(IMAGE * 3 - 1), 1),
    "images": lambda w, t: w.add_images("i", t(MANY), 1),
    "images, channels last": lambda w, t: w.add_images("i", t(MANY.transpose(0, 2, 3, 1)), 1, dataformats="NHWC"),
    "boxes": lambda w, t: w.add_image_with_boxes("i", t(IMAGE), t(np.array([[4.0, 5, 12, 13]])), 1),
    "figure": lambda w, t: w.add_figure("f", drawn(), 1),
    "figures": lambda w, t: w.add_figure("f", [drawn(), drawn()], 1),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_have_the_same_pixels(name: str, tmp_path: Path) -> None:
    """The files differ in what zlib and filters made of them."""
    ours, torchs = both(tmp_path, PICTURES[name])
    assert ours.keys() == torchs.keys()
    for key, value in ours.items():
        mine, theirs = value.image, torchs[key].image
        assert (mine.height, mine.width, mine.colorspace) == (theirs.height, theirs.width, theirs.colorspace)
        a, b = (np.asarray(Image.open(io.BytesIO(m.encoded_image_string))) for m in (mine, theirs))
        assert np.array_equal(a, b), np.argwhere((a != b).any(2))[:10]


def test_tensors_hold_the_same(tmp_path: Path) -> None:
    """torch lists the elements, we give the bytes."""
    ours, torchs = both(tmp_path, lambda w, t: [w.add_tensor(n, t(x), 1) for n, x in (("f", POINTS), ("i", FACES), ("b", LABELS > 0))])
    for key, value in ours.items():
        a, b = (tensor_util.make_ndarray(v.tensor) for v in (value, torchs[key]))
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
        assert value.metadata == torchs[key].metadata


def test_settings_are_the_same(tmp_path: Path) -> None:
    """But for a bool, which torch writes as the number 1.0."""

    def log(w: Any, t: Any) -> None:
        given = {"lr": 0.1, "n": 3, "name": "x", "none": None, "t": t(np.array([2.5]))}
        w.add_hparams(given, {"acc": 0.5, "loss": t(np.ones(1))}, {"n": [1, 3], "name": ["x", "y"]}, "run", 4)

    ours, torchs = both(tmp_path, log, "run")
    for key in [k for k in ours if k[0].startswith("_hparams_")]:
        assert parsed(ours.pop(key)) == parsed(torchs.pop(key))
    same(ours, torchs)


def parsed(value: Any) -> Any:
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    return HParamsPluginData.FromString(value.metadata.plugin_data.content)


def test_the_projectors_files_are_the_same(tmp_path: Path) -> None:
    def log(w: Any, t: Any) -> None:
        w.add_embedding(t(NORMAL[:12].reshape(6, 2)), list("abcdef"), t(DATA.random((6, 3, 4, 5))), 2, "e/x")
        w.add_embedding(t(NORMAL[:12].reshape(6, 2)), [[i, "b"] for i in range(6)], metadata_header=["n", "w"])

    both(tmp_path, log)
    ours, torchs = tmp_path / "ours", tmp_path / "torchs"
    names = [sorted(p.relative_to(f).as_posix() for p in f.rglob("*") if p.is_file() and "tfevents" not in p.name) for f in (ours, torchs)]
    assert names[0] == names[1]
    for name in names[0]:
        if not name.endswith(".png"):
            assert (ours / name).read_bytes() == (torchs / name).read_bytes(), name
    assert Image.open(ours / "00002/e%2fx/sprite.png").size == Image.open(torchs / "00002/e%2fx/sprite.png").size


def test_runs_that_go_on_are_hidden_alike(tmp_path: Path) -> None:
    found = {}
    for name, kind in (("ours", SummaryWriter), ("torchs", TorchWriter)):
        for begin, purge in ((0, None), (6, 6)):
            with kind(tmp_path / name, purge_step=purge, filename_suffix=f".{begin}") as w:
                for i in range(begin, 10):
                    w.add_scalar("a", begin + i, i)
        reader = EventAccumulator(str(tmp_path / name))
        reader.Reload()
        found[name] = [(e.step, e.value) for e in reader.Scalars("a")]
    assert found["ours"] == found["torchs"]


def test_graphs_have_the_same_modules(tmp_path: Path) -> None:
    def scopes(folder: Path) -> set[str]:
        """The boxes of Linear layers; torch gives each parameter a box as well."""
        reader = EventAccumulator(str(folder))
        reader.Reload()
        names = {n.name for n in reader.Graph().node if "Linear[" in n.name}
        return {n[: n.index("]", n.index("Linear[")) + 1] for n in names}

    for name, library, writer in (("ours", tt, SummaryWriter), ("torchs", torch, TorchWriter)):
        nn = library.nn
        with writer(tmp_path / name) as w:
            w.add_graph(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2))), library.ones(2, 4))
    ours, torchs = scopes(tmp_path / "ours"), scopes(tmp_path / "torchs")
    assert ours == torchs == {"Sequential/Linear[0]", "Sequential/Sequential[2]/Linear[0]"}


def test_graphs_and_profiles_of_tensorboards_own_are_taken(tmp_path: Path) -> None:
    from torch.utils.tensorboard._pytorch_graph import graph

    profile = graph(torch.nn.Linear(2, 2), torch.ones(1, 2))
    for name, writer in (("ours", FileWriter), ("torchs", torch.utils.tensorboard.FileWriter)):
        w = writer(tmp_path / name)
        w.add_graph(profile)
        w.close()
    ours, torchs = (EventAccumulator(str(tmp_path / name)) for name in ("ours", "torchs"))
    ours.Reload()
    torchs.Reload()
    assert ours.Graph() == torchs.Graph()
    assert ours.Tags() == torchs.Tags()
