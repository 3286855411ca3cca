"""Files that torch.save wrote (recorded in torch_files/ by record.py): they load to what was saved, and are written again to the same."""

from __future__ import annotations

import io
import os
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.errors import CheckpointError

FOLDER = Path(__file__).parent / "torch_files"
LAYOUTS = ("", "_old", "_legacy")  # PyTorch 2.13's, that of 1.6 to 2.0, that before 1.6


def again(obj: Any, **how: Any) -> Any:
    """Saved into a buffer and loaded."""
    file = io.BytesIO()
    tt.save(obj, file, **how)
    file.seek(0)
    return tt.load(file)


@pytest.fixture(params=LAYOUTS, ids=lambda layout: layout or "new")
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["path", "file", "buffer", "read"])
def read(request: pytest.FixtureRequest) -> Any:
    """Load a recorded file, in four ways."""

    def load(name: str, **how: Any) -> Any:
        path = FOLDER / f"{name}.pt"
        if request.param == "path":
            return tt.load(path, **how)
        if request.param == "read":
            return tt.load(path, mmap=False, **how)
        if request.param == "buffer":
            return tt.load(io.BytesIO(path.read_bytes()), **how)
        with open(path, "rb") as file:
            return tt.load(file, **how)

    return load


def test_a_state_dict(read: Any, layout: str) -> None:
    found = read("state" + layout)
    assert type(found) is OrderedDict
    assert list(found) == ["weight", "bias", "count"]
    assert found["weight"].dtype is tt.float32
    assert found["count"].item() == 3
    assert found._metadata == OrderedDict({"": {"version": 1}})
    model = tt.nn.Linear(3, 2)
    model.register_buffer("count", tt.tensor(0))
    model.load_state_dict(found)
    found["weight"] += 1  # memory of its own: the file is as it was
    assert read("state" + layout)["weight"].shape == (2, 3)
    assert (read("state" + layout)["weight"] != found["weight"]).all()


def test_views_stay_views(read: Any, layout: str) -> None:
    found = read("views" + layout)
    for obj in (found, again(found), again(found, format="torch-legacy")):
        assert obj["base"] is obj["again"] or obj["base"].data_ptr() == obj["again"].data_ptr()
        assert obj["base"].tolist() == [float(i) for i in range(12)]
        assert (obj["part"].data_ptr() - obj["base"].data_ptr(), obj["part"].stride()) == (2 * 4, (1,))
        assert (obj["columns"].shape, obj["columns"].stride()) == ((4, 3), (1, 4))
        assert (obj["step"].tolist(), obj["step"].stride()) == ([1, 4, 7, 10], (3,))
        assert (obj["spread"].shape, obj["spread"].stride()) == ((3, 2), (0, 0))
        assert obj["empty"].shape == (0, 3)
        assert obj["number"].item() == 2.5
        one = obj["base"].untyped_storage()
        assert all(obj[k].untyped_storage() == one for k in ("part", "columns", "step", "spread", "again"))
        obj["part"].fill_(-1)
        assert obj["base"].tolist()[1:8] == [1, -1, -1, -1, -1, -1, 7]


def test_types(read: Any, layout: str) -> None:
    found = read("types" + layout)
    for obj in (found, again(found), again(found, format="torch-legacy")):
        for name in (
            "bool",
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "float16",
            "bfloat16",
            "float32",
            "float64",
            "complex64",
            "complex128",
        ):
            assert obj[name].dtype is getattr(tt, name)
            assert [complex(x) for x in obj[name].tolist()] == ([0, 1, 1] if name == "bool" else [0, 1, 2])
        assert type(obj["parameter"]) is type(obj["frozen"]) is tt.nn.Parameter
        assert (obj["parameter"].requires_grad, obj["frozen"].requires_grad, obj["asks"].requires_grad) == (True, False, True)
        assert obj["conjugate"].tolist() == [1 - 2j]


def test_types_that_have_no_storage_class() -> None:
    found = tt.load(FOLDER / "new_types.pt")
    for obj in (found, again(found)):
        for name, t in obj.items():
            assert t.dtype is getattr(tt, name)
            assert t.double().tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match=r"uint16 has no place in PyTorch's format before 1\.6"):
        tt.save(found, io.BytesIO(), format="torch-legacy")


def test_values(read: Any, layout: str) -> None:
    found = read("values" + layout)
    for obj in (found, again(found), again(found, pickle_protocol=5)):
        assert obj["none"] is None
        assert obj["yes"] is True
        assert (obj["int"], obj["float"], obj["text"], obj["complex"]) == (2**80, -0.5, "\u00e4", 1j)
        assert (obj["bytes"], obj["array"], type(obj["array"])) == (b"\xff\x00", bytearray(b"ab"), bytearray)
        assert (obj["tuple"], obj["list"], obj["set"]) == ((1, (2,)), [1, [2]], {1, 2})
        assert (type(obj["ordered"]), obj["counter"]) == (OrderedDict, Counter("aab"))
        assert type(obj["size"]) is tt.Size
        assert (obj["size"], obj["device"], obj["dtype"]) == ((2, 3), tt.device("cuda:1"), tt.bfloat16)


def test_a_training_goes_on(read: Any, layout: str) -> None:
    found = read("training" + layout)
    assert (found["epoch"], found["best"]) == (3, 0.25)
    model = tt.nn.Linear(3, 2)
    model.register_buffer("count", tt.tensor(0))
    model.load_state_dict(found["model"])
    optimizer = tt.optim.AdamW(model.parameters(), lr=0.5)
    schedule = tt.optim.lr_scheduler.MultiStepLR(optimizer, [1])
    optimizer.load_state_dict(found["optimizer"])
    schedule.load_state_dict(found["schedule"])
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert optimizer.state[model.bias]["exp_avg"].tolist() == pytest.approx([0.1, 0.1])
    assert schedule.milestones == Counter([2, 4])
    optimizer.step()
    schedule.step()
    back = again({"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()})
    assert back["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]


# -- what is written
def test_the_archive_is_laid_out_as_pytorch_lays_it_out(tmp_path: Path) -> None:
    theirs = tt.load(FOLDER / "training.pt")
    tt.save(theirs, tmp_path / "training.pt")
    with zipfile.ZipFile(FOLDER / "training.pt") as a, zipfile.ZipFile(tmp_path / "training.pt") as b:
        assert b.testzip() is None
        assert [i.filename for i in a.infolist()] == [i.filename for i in b.infolist()]
        for one, other in zip(a.infolist(), b.infolist(), strict=True):
            assert (one.header_offset, one.file_size, one.flag_bits) == (other.header_offset, other.file_size, other.flag_bits)
            if not one.filename.endswith("serialization_id"):
                assert a.read(one) == b.read(other), one.filename  # the pickle, byte for byte
    assert (tmp_path / "training.pt").stat().st_size == (FOLDER / "training.pt").stat().st_size


@pytest.mark.parametrize("name", ["state", "training", "types", "values", "views"])
def test_the_stream_before_1_6_is_pytorchs_own(name: str) -> None:
    file = io.BytesIO()
    tt.save(tt.load(FOLDER / f"{name}_legacy.pt"), file, format="torch-legacy")
    theirs, ours = tt.load(FOLDER / f"{name}_legacy.pt"), tt.load(io.BytesIO(file.getvalue()))
    assert repr(theirs) == repr(ours)
    assert file.getvalue()[:40] == (FOLDER / f"{name}_legacy.pt").read_bytes()[:40]


@pytest.mark.parametrize(
    ("name", "archive"),
    [("m.pt", True), ("m.pth", True), ("M.PT", True), ("m.bin", True), ("m.ckpt", True), ("m.pth.tar", True), ("m.pkl", True), ("m", False),
     ("m.safetensors", False), ("m.pt.safetensors", False), ("m.model", False)],
)  # fmt: skip
def test_the_name_says_the_format(name: str, archive: bool, tmp_path: Path) -> None:
    def kind(path: Path) -> bool:
        return path.read_bytes()[:2] == b"PK"

    tt.save({"x": tt.ones(2)}, tmp_path / name)
    assert kind(tmp_path / name) is archive
    with open(tmp_path / name, "wb") as file:
        tt.save({"x": tt.ones(2)}, file)
    assert kind(tmp_path / name) is archive
    for format in ("torch", "safetensors"):
        tt.save({"x": tt.ones(2)}, tmp_path / name, format=format)
        assert kind(tmp_path / name) is (format == "torch")
        assert tt.load(tmp_path / name)["x"].tolist() == [1, 1]
    with pytest.raises(ValueError, match="format is 'onnx'; give 'torch', 'torch-legacy', 'safetensors' or None"):
        tt.save({}, tmp_path / name, format="onnx")
    with pytest.raises(ValueError, match="format='torch' and _use_new_zipfile_serialization=False disagree"):
        tt.save({}, tmp_path / name, None, 2, False, format="torch")


def test_several_objects_in_one_file(tmp_path: Path) -> None:
    with open(tmp_path / "x.pt", "w+b") as file:
        for i in range(3):
            tt.save({"i": i, "x": tt.full((5,), i)}, file, _use_new_zipfile_serialization=False)
        file.seek(0)
        assert [tt.load(file)["i"] for _ in range(3)] == [0, 1, 2]
        with pytest.raises(CheckpointError, match=r"x.pt: stands at its end.*seek\(0\) first"):
            tt.load(file)
    buffer = io.BytesIO()
    for i in range(2):
        tt.save({"i": i, "x": tt.full((5,), i)}, buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    assert [tt.load(buffer)["x"].tolist() for i in range(2)] == [[0] * 5, [1] * 5]


def test_a_view_saves_only_itself() -> None:
    big = tt.zeros(1000, 1000)
    for view in (big[3], big[:, 5], big[::7, ::9], big[2:4].T, big[::-1][:2]):
        file = io.BytesIO()
        tt.save({"view": view}, file)
        assert file.tell() < view.nbytes + 3000
        file.seek(0)
        assert tt.load(file)["view"].tolist() == view.tolist()
    flat = tt.arange(12.0)  # parts of one memory that share nothing are apart in the file
    found = again({"a": flat[:6], "b": flat[6:]})
    assert found["a"].untyped_storage() != found["b"].untyped_storage()
    assert found["b"].tolist() == flat[6:].tolist()


def test_one_memory_as_two_types_is_refused() -> None:
    x = tt.arange(4.0)
    with pytest.raises(RuntimeError, match="a tensor of float32 and one of int32 see the same memory"):
        tt.save([x, x.view(tt.int32)], io.BytesIO())


def test_attributes_buffers_and_named_tuples() -> None:
    p, b = tt.nn.Parameter(tt.ones(2)), tt.nn.Buffer(tt.zeros(1), persistent=False)
    p.no_decay = True  # type: ignore[attr-defined]
    t = tt.ones(1)
    t.tag = [t, tt.zeros(3)]  # type: ignore[attr-defined]
    found = again({"p": p, "b": b, "t": t, "top": tt.tensor([3.0, 1.0]).max(0)})
    assert (type(found["p"]), found["p"].no_decay) == (tt.nn.Parameter, True)
    assert (type(found["b"]), found["b"].persistent) == (tt.nn.Buffer, False)
    assert found["t"].tag[1].tolist() == [0, 0, 0]
    assert type(found["top"]) is tt.return_types.max
    assert found["top"].values.item() == 3


def test_storages_themselves() -> None:
    x = tt.arange(4, dtype=tt.int16)
    found = again({"typed": x.storage(), "bytes": tt.tensor([1, 2], dtype=tt.uint8).untyped_storage(), "x": x[1:3]})
    assert found["typed"].dtype is tt.int16
    assert found["typed"].tolist() == [0, 1, 2, 3]
    assert found["bytes"].tolist() == [1, 2]
    assert found["x"].untyped_storage() == found["typed"].untyped()
    with pytest.raises(RuntimeError, match="see the same memory"):
        tt.save([x, x.untyped_storage()], io.BytesIO())


class Tagged(tt.Tensor):
    """A class of tensors of this program."""


def test_tensors_of_a_class_and_objects_that_hold_themselves() -> None:
    from tritensor.serialization import safe_globals

    x: Any = tt.ones(3).as_subclass(Tagged)
    x.tag = 5
    with pytest.raises(CheckpointError, match=r"wants .*Tagged"):
        again(x)
    with safe_globals([Tagged]):
        found = again([x, x])
    assert (type(found[0]), found[0].tag, found[0] is found[1]) == (Tagged, 5, True)
    ring: Any = ([],)
    ring[0].append(ring)
    assert (found := again(ring))[0][0] is found


def test_files_of_other_kinds(tmp_path: Path) -> None:
    import gzip
    import tempfile

    for opened in (tempfile.TemporaryFile, tempfile.NamedTemporaryFile, tempfile.SpooledTemporaryFile):
        with opened() as file:
            tt.save({"a": tt.ones(2)}, file)
            file.seek(0)
            assert tt.load(file)["a"].tolist() == [1, 1]
    with gzip.open(tmp_path / "x.gz", "wb") as packed:
        tt.save({"a": tt.ones(2)}, packed)  # type: ignore[arg-type]
    with gzip.open(tmp_path / "x.gz", "rb") as packed:
        assert tt.load(packed)["a"].tolist() == [1, 1]  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match=r"x.gz: this is no checkpoint, but compressed with gzip; gunzip it first"):
        tt.load(tmp_path / "x.gz")
    with pytest.raises(TypeError, match=r"x.gz is open for text; open it with 'rb'"), open(tmp_path / "x.gz", encoding="utf-8") as text:
        tt.load(text)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="y is open for text; open it with 'wb'"), open(tmp_path / "y", "w", encoding="utf-8") as text:
        tt.save({}, text)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numpys_values(protocol: int) -> None:
    nest = {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "f": np.asfortranarray(np.ones((2, 3))), "s": np.float32(1.5), "t": np.array(["ab", "c"]),
            "z": np.zeros((0, 2)), "b": np.bool_(True)}  # fmt: skip
    found = again(nest, pickle_protocol=protocol)
    for name, value in nest.items():
        assert type(found[name]) is type(value)
        assert found[name].dtype == value.dtype  # type: ignore[attr-defined]
        np.testing.assert_array_equal(found[name], value)
    assert found["f"].flags.f_contiguous


def test_bytes_in_the_other_order() -> None:
    from tritensor.serialization import LoadEndianness, get_default_load_endianness, set_default_load_endianness

    values = {"f4": [1.5, -2.0], "i8": [1, 2**40], "c8": [1 + 2j, 3.0], "u1": [1, 2]}
    out = io.BytesIO()
    tt.save({k: tt.tensor(np.array(v, k)) for k, v in values.items()}, out)
    for told in (True, False):
        turned = io.BytesIO()
        with zipfile.ZipFile(out) as old, zipfile.ZipFile(turned, "w") as new:
            for info in old.infolist():
                data = old.read(info)
                if "/data/" in info.filename:
                    kind = list(values)[int(info.filename.rpartition("/")[2])]
                    data = np.frombuffer(data, kind).byteswap().tobytes()
                if info.filename.endswith("byteorder"):
                    data = b"big"
                    if not told:
                        continue
                new.writestr(info.filename, data)
        if not told:
            set_default_load_endianness(LoadEndianness.BIG)
        try:
            found = tt.load(io.BytesIO(turned.getvalue()))
        finally:
            set_default_load_endianness(None)
        assert {k: v.tolist() for k, v in found.items()} == values
    assert get_default_load_endianness() is None
    with pytest.raises(TypeError, match="Invalid argument type"):
        set_default_load_endianness("big")  # type: ignore[arg-type]


def test_sizes_without_checksums() -> None:
    from tritensor.serialization import get_crc32_options, set_crc32_options

    assert get_crc32_options()
    set_crc32_options(False)
    try:
        file = io.BytesIO()
        tt.save({"x": tt.ones(3)}, file)
    finally:
        set_crc32_options(True)
    with zipfile.ZipFile(file) as archive:
        assert all(i.CRC == 0 for i in archive.infolist())
    file.seek(0)
    assert tt.load(file)["x"].tolist() == [1, 1, 1]


def test_a_whole_module_of_pytorchs() -> None:
    with pytest.raises(
        CheckpointError, match=r"module.pt: wants torch.nn.modules.container.Sequential, which is no plain value.*weights_only=False"
    ):
        tt.load(FOLDER / "module.pt")
    model = tt.load(FOLDER / "module.pt", weights_only=False)
    assert type(model) is tt.nn.Sequential
    assert not model.training
    assert model(tt.ones(3, 2)).shape == (3, 2)
    file = io.BytesIO()
    tt.save(model, file)
    file.seek(0)
    assert repr(tt.load(file, weights_only=False)) == repr(model)
    assert [k for k in vars(model) if k.endswith("_hooks")] == []


class Point:
    """A class of this program."""

    def __init__(self, x: Any) -> None:
        self.x = x


def test_classes_that_are_called_safe() -> None:
    from tritensor.serialization import get_unsafe_globals_in_checkpoint, safe_globals

    for protocol in (2, 5):
        file = io.BytesIO()
        tt.save({"point": Point(tt.ones(2))}, file, pickle_protocol=protocol)
        file.seek(0)
        with pytest.raises(CheckpointError, match=r"BytesIO: wants .*Point, which is no plain value.*safe_globals\(\[Point\]\)"):
            tt.load(file)
        file.seek(0)
        with safe_globals([Point]):
            assert tt.load(file)["point"].x.tolist() == [1, 1]
        file.seek(0)
        assert get_unsafe_globals_in_checkpoint(file) == [f"{Point.__module__}.Point"]
        assert file.tell() == 0
        with safe_globals([(Point, f"{Point.__module__}.Point")]):
            assert get_unsafe_globals_in_checkpoint(file) == []
    with pytest.raises(ValueError, match=r"is none of torch\.save's archives"):
        get_unsafe_globals_in_checkpoint(FOLDER / "state_legacy.pt")
    with pytest.raises(ValueError, match="no pair"), safe_globals([(Point,)]):
        pass


def test_arguments_are_checked(tmp_path: Path) -> None:
    path = FOLDER / "state.pt"
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module"):
        tt.load(path, pickle_module=io, weights_only=True)
    with pytest.warns(UserWarning, match="pickle_load_args only works"):
        tt.load(path, encoding="latin1")
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"), open(path, "rb") as file:
        tt.load(file, mmap=True)
    with pytest.raises(CheckpointError, match=r"state_legacy.pt: mmap can only be used with files saved with"):
        tt.load(FOLDER / "state_legacy.pt", mmap=True)
    assert tt.load(path, mmap=True)["bias"].tolist() == tt.load(path, mmap=False)["bias"].tolist()
    with pytest.raises(TypeError, match="pickle_module=io has no Pickler; give a module with one"):
        tt.save({}, tmp_path / "x.pt", io)
    with pytest.raises(ValueError, match="pickle_protocol is 1"):
        tt.save({}, tmp_path / "x.pt", pickle_protocol=1)
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attribute, not a int"):
        tt.save({}, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a int is neither a path nor a binary file"):
        tt.load(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a\.1 is a function.*and pickle cannot take it either"):
        tt.save({"a": [1, lambda: 0]}, tmp_path / "x.pt")
    with pytest.raises(IsADirectoryError, match="load_sharded"):
        tt.load(tmp_path)
    assert os.listdir(tmp_path) == []


def test_bf16_is_not_rounded(tmp_path: Path) -> None:
    values = np.arange(0x3F80, 0x4080, dtype=np.uint16).view(ml_dtypes.bfloat16)
    tt.save(tt.from_numpy(values.copy()), tmp_path / "x.pt")
    assert tt.load(tmp_path / "x.pt").numpy().view(np.uint16).tolist() == values.view(np.uint16).tolist()
