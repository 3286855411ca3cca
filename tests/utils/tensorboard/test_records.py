"""Every kind of record is read back by tensorboard's own reader with what was given; what makes no sense is refused by tag and value."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.plugins.mesh import plugin_data_pb2 as mesh_data
from tensorboard.util import tensor_util

import tritensor as tt
from tests.utils.tensorboard.reading import accumulated, values
from tritensor import nn
from tritensor.utils.tensorboard import SummaryWriter
from tritensor.utils.tensorboard.checksum import crc32c

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_scalars_of_every_kind(device: str, tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        given = [1.5, 2, np.float64(3.25), np.array([4.0]), tt.tensor(5.5, device=device), tt.tensor([[6.0]], device=device).requires_grad_(),
                 tt.tensor(7.0, dtype=tt.bfloat16, device=device), tt.tensor(True, device=device), math.nan, math.inf, 1e300]  # fmt: skip
        for step, value in enumerate(given):
            writer.add_scalar("loss/a", value, tt.tensor(step), walltime=100.0 + step)
        writer.add_scalar("early", 0.0, -1)
        writer.add_scalar("new", 1.1, 3, new_style=True, double_precision=True)
    found = accumulated(tmp_path)
    read = found.Scalars("loss/a")
    assert [e.step for e in read] == list(range(len(given)))
    assert [e.wall_time for e in read] == [100.0 + i for i in range(len(given))]
    expected = [1.5, 2, 3.25, 4, 5.5, 6, 7, 1, math.nan, math.inf, math.inf]
    assert np.array_equal([e.value for e in read], expected, equal_nan=True)
    assert [(e.step, e.value) for e in found.Scalars("early")] == [(-1, 0.0)]
    assert tensor_util.make_ndarray(found.Tensors("new")[0].tensor_proto) == 1.1


def test_several_scalars_are_runs_of_their_own(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("run/x", {"sin": 0.5, "cos": tt.tensor(0.25)}, 7)
    for name, value in (("sin", 0.5), ("cos", 0.25)):
        (event,) = accumulated(tmp_path / f"run_x_{name}").Scalars("run/x")
        assert (event.step, event.value) == (7, value)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_histograms(device: str, tmp_path: Path) -> None:
    data = RNG.standard_normal(5000).astype(np.float32)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", tt.from_numpy(data).to(device), 1)
        writer.add_histogram("sixteen", tt.from_numpy(data).to(device).bfloat16(), 1, bins="auto", max_bins=10)
        writer.add_histogram("same", np.full(9, 2.0), 1)
        writer.add_histogram_raw("raw", 0.0, 2.0, 3, 4.0, 6.0, tt.tensor([1.0, 2.0]), [1, 2], 4)
        with pytest.warns(UserWarning, match="2 of 4 values of tag 'bad' are NaN or infinite and left out"):
            writer.add_histogram("bad", [math.nan, 1.0, math.inf, 2.0], 1)
    found = accumulated(tmp_path)
    h = values(tmp_path)["h", 1].histo
    assert (h.num, h.min, h.max) == (5000, data.min(), data.max())
    assert h.sum == pytest.approx(data.sum(dtype=np.float64))
    assert h.sum_squares == pytest.approx((data.astype(np.float64) ** 2).sum())
    limits, counts = np.array(h.bucket_limit), np.array(h.bucket)
    assert counts[0] == 0
    assert counts.sum() == 5000
    for low, high, n in zip(limits[:-1], limits[1:], counts[1:], strict=True):
        assert n == ((data >= low) & (data < high)).sum()
    assert sum(values(tmp_path)["sixteen", 1].histo.bucket) == 5000
    assert len(values(tmp_path)["sixteen", 1].histo.bucket) < 25
    assert list(values(tmp_path)["raw", 4].histo.bucket) == [1, 2]
    assert values(tmp_path)["bad", 1].histo.num == 2
    assert set(found.Tags()["histograms"]) == {"h", "sixteen", "same", "raw", "bad"}


def decoded(value: Any) -> np.ndarray:
    picture = Image.open(io.BytesIO(value.image.encoded_image_string))
    found = np.asarray(picture)
    assert (value.image.height, value.image.width) == found.shape[:2]
    return found


@pytest.mark.parametrize(("layout", "shape"), [("CHW", (3, 5, 7)), ("HWC", (5, 7, 4)), ("HW", (5, 7)), ("WH", (7, 5)), ("CHW", (1, 5, 7))])
def test_images(layout: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    image = RNG.integers(0, 256, shape, dtype=np.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("bytes", image, 1, dataformats=layout)
        writer.add_image("floats", tt.from_numpy(image.astype(np.float32) / 255 + 0.001), 1, dataformats=layout.lower())
    expected = image.transpose([layout.index(c) for c in "HWC" if c in layout])
    expected = np.repeat(expected.reshape(*expected.shape[:2], -1), 3 if expected.ndim == 2 or expected.shape[2] == 1 else 1, axis=2)
    found = values(tmp_path)
    assert np.array_equal(decoded(found["bytes", 1]), expected)
    assert np.array_equal(decoded(found["floats", 1]), expected)
    assert set(accumulated(tmp_path).Tags()["images"]) == {"bytes", "floats"}


def test_grids_boxes_figures_and_films(tmp_path: Path) -> None:
    import matplotlib.figure

    drawn = matplotlib.figure.Figure(figsize=(2, 1), dpi=50)
    drawn.add_subplot().plot([1, 2])
    with SummaryWriter(tmp_path) as writer:
        writer.add_images("grid", tt.ones(10, 1, 4, 5) * 0.5)
        writer.add_image_with_boxes("boxes", tt.zeros(3, 20, 30), [[2, 3, 12, 13], [-5, -5, 40, 40]])
        writer.add_image_with_boxes("named", tt.zeros(3, 20, 30), [[2, 3, 12, 13]], labels=["cat"], rescale=2)
        writer.add_figure("figure", drawn)
        writer.add_figure("figures", [drawn, drawn])
        writer.add_video("film", tt.rand(3, 6, 1, 8, 9), fps=10)
    found = values(tmp_path)
    grid = decoded(found["grid", 0])
    assert grid.shape == (8, 40, 3)
    assert (grid[4:, 10:] == 0).all()
    assert (grid[:4] == 127).all()
    boxes = decoded(found["boxes", 0])
    assert boxes[3, 5].tolist() == boxes[2, 2].tolist() == boxes[14, 12].tolist() == [255, 0, 0]
    assert boxes[8, 8].tolist() == [0, 0, 0]
    assert Image.open(io.BytesIO(found["named", 0].image.encoded_image_string)).size == (60, 40)
    assert decoded(found["figure", 0]).shape == (50, 100, 3)
    assert decoded(found["figures", 0]).shape == (50, 200, 3)
    film = Image.open(io.BytesIO(found["film", 0].image.encoded_image_string))
    assert (film.n_frames, film.size, film.info["duration"]) == (6, (18, 16), 100)


def test_sounds_text_tensors_and_meshes(tmp_path: Path) -> None:
    points = RNG.random((1, 4, 3)).astype(np.float32)
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("tone", tt.from_numpy(np.sin(np.arange(800) / 9).astype(np.float32))[None], 1, sample_rate=8000)
        with pytest.warns(UserWarning, match="samples of tag 'loud' reach to 2 and are clipped"):
            writer.add_audio("loud", [0.0, 2.0])
        writer.add_text("note", "**größer**", 2)
        writer.add_tensor("half", tt.ones(2, 3, dtype=tt.float16), 1)
        writer.add_tensor("count", tt.arange(3), 1)
        writer.add_mesh("shape", tt.from_numpy(points), colors=tt.zeros(1, 4, 3, dtype=tt.uint8), faces=[[[0, 1, 2]]], config_dict={"a": 1})
        writer.add_pr_curve("pr", tt.tensor([0, 1, 1, 0]), tt.tensor([0.1, 0.9, 0.4, 0.6]), 3, num_thresholds=11)
        writer.add_pr_curve_raw("raw", *[[1.0, 2.0]] * 6, num_thresholds=2)
        writer.add_custom_scalars({"A": {"two": ["Multiline", ["x", "y"]], "one": ["Margin", ["x", "y", "z"]]}})
    found = accumulated(tmp_path)
    (tone,) = found.Audio("tone")
    assert (tone.length_frames, tone.sample_rate, tone.content_type) == (800, 8000, "audio/wav")
    assert tensor_util.make_ndarray(found.Tensors("note/text_summary")[0].tensor_proto)[0].decode() == "**größer**"
    assert tensor_util.make_ndarray(found.Tensors("half")[0].tensor_proto).tolist() == [[1.0] * 3] * 2
    assert tensor_util.make_ndarray(found.Tensors("count")[0].tensor_proto).tolist() == [0, 1, 2]
    assert np.array_equal(tensor_util.make_ndarray(found.Tensors("shape_VERTEX")[0].tensor_proto), points)
    about = mesh_data.MeshPluginData.FromString(found.SummaryMetadata("shape_FACE").plugin_data.content)
    assert (about.name, about.json_config, list(about.shape), about.components) == ("shape", '{"a": 1}', [1, 1, 3], 14)
    curve = tensor_util.make_ndarray(found.Tensors("pr")[0].tensor_proto)
    assert curve.shape == (6, 11)
    assert curve[:4, 5].tolist() == [1, 1, 1, 1]
    assert curve[4, 5] == 0.5
    assert found.SummaryMetadata("custom_scalars__config__").plugin_data.plugin_name == "custom_scalars"


def test_settings_of_a_run(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "n": 3, "name": "x", "flag": True, "none": None}, {"acc": tt.tensor(0.5)}, {"n": [1, 3]}, "first", 9)
    found = accumulated(tmp_path / "first")
    read = {
        name: plugin_data_pb2.HParamsPluginData.FromString(found.SummaryMetadata(f"_hparams_/{name}").plugin_data.content)
        for name in ("experiment", "session_start_info", "session_end_info")
    }
    held = read["session_start_info"].session_start_info.hparams
    assert (held["lr"].number_value, held["name"].string_value, held["flag"].bool_value) == (0.1, "x", True)
    assert "none" not in held
    infos = {i.name: i for i in read["experiment"].experiment.hparam_infos}
    assert [v.number_value for v in infos["n"].domain_discrete.values] == [1, 3]
    assert [m.name.tag for m in read["experiment"].experiment.metric_infos] == ["acc"]
    assert read["session_end_info"].session_end_info.status == 1
    assert [(e.step, e.value) for e in found.Scalars("acc")] == [(9, 0.5)]


def test_summaries_that_programs_make_themselves(tmp_path: Path) -> None:
    """The names that PyTorch's file of that path has: what the methods write."""
    from tritensor.utils.tensorboard import summary

    with SummaryWriter(tmp_path / "a") as a, SummaryWriter(tmp_path / "b") as b:
        made = [*summary.hparams({"lr": 0.1}, {"acc": 1.0}), summary.scalar("s", tt.tensor(2.0)), summary.scalar("n", 2.0, new_style=True),
                summary.histogram("h", [1.0, 2.0], "auto"), summary.image("i", tt.ones(1, 1, 4, 4)), summary.audio("w", [0.5, 0.1]),
                summary.text("t", "x"), summary.custom_scalars({"A": {"c": ["Multiline", ["x"]]}})]  # fmt: skip
        for one in made:
            assert a.file_writer is not None
            a.file_writer.add_summary(one, 3)
        b.add_scalar("s", 2.0, 3)
        b.add_scalar("n", 2.0, 3, new_style=True)
        b.add_histogram("h", [1.0, 2.0], 3, bins="auto")
        b.add_images("i", tt.ones(1, 1, 4, 4), 3)
        b.add_audio("w", [0.5, 0.1], 3)
        b.add_text("t", "x", 3)
    ours, theirs = values(tmp_path / "a"), values(tmp_path / "b")
    assert {k: v for k, v in ours.items() if not k[0].startswith(("_hparams_", "custom"))} == theirs
    assert {k[0] for k in ours} - {k[0] for k in theirs} == {
        "_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "custom_scalars__config__"
    }  # fmt: skip
    with pytest.raises(ValueError, match="rescale=2"):
        summary.image("i", tt.ones(1, 1, 4, 4), rescale=2)


def test_points_for_the_projector(tmp_path: Path) -> None:
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    points = RNG.standard_normal((5, 3)).astype(np.float32)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(tt.from_numpy(points), [("a\tb", 1)] * 5, tt.rand(5, 3, 4, 6), 2, 'odd/"tag', ["name", "number"])
        writer.add_embedding(points, list("abcde"))
        with pytest.raises(ValueError, match="add_embedding: tag 'bad': 2 labels in metadata for 5 points"):
            writer.add_embedding(points, ["a", "b"], tag="bad")
    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig())
    first, second = config.embeddings
    assert (first.tensor_name, second.tensor_name) == ('odd/"tag:00002', "default:00000")
    assert np.allclose(np.loadtxt(tmp_path / first.tensor_path), points)
    assert (tmp_path / first.metadata_path).read_text().splitlines()[:2] == ["name\tnumber", "a b\t1"]
    with Image.open(tmp_path / first.sprite.image_path) as sprite:
        assert sprite.size == (18, 18)
    assert list(first.sprite.single_image_dim) == [6, 4]
    assert not (tmp_path / "00000" / "bad").exists()


class Two(nn.Module):
    """Words and numbers in, two results out."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.inner = nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True))

    def forward(self, index: tt.Tensor, x: tt.Tensor) -> Any:
        h = self.inner(self.words(index) + x)
        return {"h": h, "sum": [h.sum()]}


def test_the_graph_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Two()
    model.words.weight.requires_grad_(False)
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, (tt.tensor([1, 2]), tt.ones(2, 4)), verbose=True)
        with pytest.raises(tt.ShapeError):
            writer.add_graph(model, (tt.tensor([1, 2]), tt.ones(2, 5)))
        with pytest.raises(TypeError, match="add_graph: input_to_model is None"):
            writer.add_graph(model)
    graph = accumulated(tmp_path).Graph()
    nodes = {n.name: n for n in graph.node}
    assert len(nodes) == len(graph.node)
    for n in graph.node:
        assert all(i in nodes for i in n.input), n
    linear = next(n for n in graph.node if n.op == "tritensor::Addmm")
    assert linear.name.startswith("Two/Sequential[inner]/Linear[0]/")
    assert "Two/Sequential[inner]/Linear[0]/weight" in linear.input
    relu = next(n for n in graph.node if n.op == "tritensor::Relu")
    assert [d.size for d in relu.attr["_output_shapes"].list.shape[0].dim] == [2, 3]
    lookup = next(n for n in graph.node if n.name.startswith("Two/Embedding[words]/") and n.op != "Parameter")
    assert "input/input.1" in lookup.input
    assert {"output/output.1", "output/output.2"} <= set(nodes)
    assert "tritensor::Relu(" in capsys.readouterr().out
    assert not model.words.weight.requires_grad
    assert model.training
    assert all(not m._hooks.forward for m in model.modules() if m._hooks is not None)


def test_onnx_graphs(tmp_path: Path) -> None:
    from onnx import TensorProto, helper, save

    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])],
        "g", [info("x", TensorProto.FLOAT, [2, 3])], [info("y", TensorProto.FLOAT, [2, 3])],
    )  # fmt: skip
    save(helper.make_model(graph), str(tmp_path / "m.onnx"))
    with SummaryWriter(tmp_path / "run") as writer:
        writer.add_onnx_graph(str(tmp_path / "m.onnx"))
    found = {n.name: list(n.input) for n in accumulated(tmp_path / "run").Graph().node}
    assert found == {"x": [], "Relu_0": ["x"], "Neg_1": ["Relu_0"], "output/y": ["Neg_1"]}


REFUSED: dict[str, tuple[Any, str]] = {
    "vector": (lambda w: w.add_scalar("a/b", tt.ones(3), 1), r"add_scalar: the value of tag 'a/b' is a Tensor \(3,\), not one real number"),
    "word": (lambda w: w.add_scalar("a", "three"), "add_scalar: the value of tag 'a' is str 'three', not one real"),
    "tag": (lambda w: w.add_scalar(3, 1.0), "add_scalar: tag is int 3; give a string"),
    "step": (lambda w: w.add_scalar("a", 1.0, "x"), "global_step is 'x'; give an integer"),
    "infinite step": (lambda w: w.add_scalar("a", 1.0, math.inf), "global_step is inf; give an integer"),
    "huge step": (lambda w: w.add_scalar("a", 1.0, 2**63), "global_step is 9223372036854775808; an event holds an integer of 64 bits"),
    "low step": (lambda w: w.add_scalar("a", 1.0, -(2**63) - 1), "global_step is -9223372036854775809; an event holds"),
    "time": (lambda w: w.add_scalar("a", 1.0, 1, walltime="noon"), "walltime is 'noon'; give seconds since 1970"),
    "half a character": (lambda w: w.add_scalar("a\ud83d", 1.0, 1), r"add_scalar: tag 'a\\ud83d' is no text"),
    "empty": (lambda w: w.add_histogram("h", tt.ones(0)), r"add_histogram: tag 'h' was given a Tensor \(0,\), which has no element"),
    "all NaN": (lambda w: w.add_histogram("h", [math.nan]), "tag 'h' was given .* of which no value is finite"),
    "complex": (lambda w: w.add_histogram("h", np.ones(2, complex)), "tag 'h' .* complex numbers"),
    "limits": (lambda w: w.add_histogram_raw("h", 0, 1, 1, 1, 1, [1.0], [1, 2]), r"tag 'h': bucket_limits is \(1,\) and bucket_counts \(2,\)"),
    "layout": (lambda w: w.add_image("i", tt.ones(3, 4, 4), dataformats="CHX"), "tag 'i': dataformats='CHX'; give an order of"),
    "dimensions": (lambda w: w.add_image("i", tt.ones(4, 4)), r"tag 'i': dataformats='CHW' names 3 dimensions, and the image is a Tensor \(4, 4\)"),
    "channels": (lambda w: w.add_image("i", tt.ones(5, 4, 4)), "tag 'i': .* has 5 channels; give 1 or 3"),
    "boxes": (lambda w: w.add_image_with_boxes("i", tt.ones(3, 4, 4), tt.ones(4)), r"tag 'i': box_tensor is a Tensor \(4,\); give \(boxes, 4\)"),
    "figure": (lambda w: w.add_figure("f", 3), "tag 'f' was given int 3; give a matplotlib"),
    "film": (lambda w: w.add_video("v", tt.ones(2, 3, 4, 4)), "tag 'v' was given a Tensor .*; give .batch, frames"),
    "sound": (lambda w: w.add_audio("s", tt.ones(2, 3)), r"tag 's' was given a Tensor \(2, 3\); give \(samples,\)"),
    "text": (lambda w: w.add_text("t", 3), "add_text: tag 't' was given int 3; give a string"),
    "predictions": (lambda w: w.add_pr_curve("p", [1, 0], [0.5, 1.5]), "tag 'p': a prediction is 1.5; give probabilities"),
    "labels": (lambda w: w.add_pr_curve("p", [1], [0.5, 0.5]), "tag 'p' was given 1 labels and 2 predictions"),
    "mesh": (lambda w: w.add_mesh("m", tt.ones(4, 3)), r"tag 'm': vertices is a Tensor \(4, 3\); give \(batch, number, 3\)"),
    "setting": (lambda w: w.add_hparams({"f": print}, {}), r"add_hparams: hparam_dict\['f'\] is builtin_function_or_method"),
    "metric": (lambda w: w.add_hparams({}, {"acc": "high"}), "add_hparams: the value of tag 'acc' is str 'high'"),
    "domain": (lambda w: w.add_hparams({"a": 1}, {}, {"b": [1]}), "hparam_domain_discrete names 'b', which hparam_dict has not"),
    "chart": (lambda w: w.add_custom_scalars({"A": {"c": ["Line", ["x"]]}}), r"chart 'c' is \['Line', \['x'\]\]; give"),
    "margin": (lambda w: w.add_custom_scalars_marginchart(["x"]), "1 tags; give three"),
    "model": (lambda w: w.add_graph(print, tt.ones(1)), "add_graph: model is builtin_function_or_method"),
    "points": (lambda w: w.add_embedding(tt.ones(3)), r"add_embedding: tag 'default': mat is a Tensor \(3,\); give"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_by_tag_and_value(name: str, tmp_path: Path) -> None:
    call, said = REFUSED[name]
    with SummaryWriter(tmp_path) as writer, pytest.raises((TypeError, ValueError), match=f"^SummaryWriter.*{said}"):
        call(writer)
    assert values(tmp_path) == {}, "nothing was written"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("size", [0, 1, 9, 1499, 1500, 1501, 70_001, 1 << 20])
def test_the_checksum_of_short_and_long_records(size: int) -> None:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc32c as theirs

    data = RNG.bytes(size)
    assert crc32c(data) == theirs(data)


def test_the_checksum_of_the_standards_examples() -> None:
    """RFC 3720, appendix B.4, and the check value that every catalogue gives."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
