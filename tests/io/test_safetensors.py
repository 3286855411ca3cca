"""The safetensors container: round trips of every type and layout, the safetensors package's own files, and every way to be broken."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from tritensor.ground.device import device
from tritensor.ground.errors import CheckpointError, DTypeError
from tritensor.io import load_file, load_metadata, save_file
from tritensor.io.safetensors import NAMES
from tritensor.ops.array import from_host, to_host
from tritensor.tensor.core import Tensor

SHAPES = [(), (0,), (3, 0, 2), (1,), (7,), (3, 5), (2, 3, 4)]


def values(shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2 if dtype == np.bool_ else 100, shape).astype(np.float32).astype(dtype)


def same(a: Tensor, b: np.ndarray) -> None:
    found = to_host(a._array)
    assert found.dtype == b.dtype
    assert found.shape == b.shape
    assert found.tobytes() == b.tobytes()


def described(path: Path) -> tuple[dict, bytes]:
    """Header and data of a file, read by hand."""
    raw = path.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + n]), raw[8 + n :]


def broken(path: Path, header: object, data: bytes) -> Path:
    """A file with the given header and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_every_type_comes_back(name: str, tmp_path: Path) -> None:
    arrays = {f"a{i}": values(shape, NAMES[name].numpy, i) for i, shape in enumerate(SHAPES)}
    save_file({k: Tensor.wrap(v) for k, v in arrays.items()}, tmp_path / "x.safetensors")
    found = load_file(tmp_path / "x.safetensors")
    assert found.keys() == arrays.keys()
    for k, v in arrays.items():
        same(found[k], v)


@settings(deadline=None)
@given(
    entries=st.dictionaries(
        st.text(max_size=8).filter(lambda s: s != "__metadata__"),
        st.tuples(st.sampled_from(sorted(NAMES)), st.sampled_from(SHAPES)),
        max_size=5,
    )
)
def test_any_names_and_mixtures(tmp_path_factory: pytest.TempPathFactory, entries: dict[str, tuple[str, tuple[int, ...]]]) -> None:
    path = tmp_path_factory.mktemp("io") / "x"
    arrays = {k: values(shape, NAMES[t].numpy) for k, (t, shape) in entries.items()}
    save_file({k: Tensor.wrap(v) for k, v in arrays.items()}, path)
    found = load_file(path)
    assert found.keys() == arrays.keys()
    for k, v in arrays.items():
        same(found[k], v)


def test_the_package_reads_what_we_write(tmp_path: Path) -> None:
    arrays = {
        "w": values((3, 5), np.dtype("f4")),
        "i": values((4,), np.dtype("i8")),
        "h": values((2, 2), np.dtype("f2")),
        "s": values((), np.dtype("f8")),
    }
    save_file({k: Tensor.wrap(v) for k, v in arrays.items()}, tmp_path / "x", {"made": "by hand"})
    found = safetensors.numpy.load_file(tmp_path / "x")
    for k, v in arrays.items():
        assert found[k].dtype == v.dtype
        np.testing.assert_array_equal(found[k], v)
    with safetensors.safe_open(tmp_path / "x", "np") as file:
        assert file.metadata() == {"made": "by hand"}


def test_the_package_accepts_every_type(tmp_path: Path) -> None:
    save_file({n: Tensor.wrap(values((3,), d.numpy)) for n, d in NAMES.items()}, tmp_path / "x")
    for name, entry in safetensors.deserialize((tmp_path / "x").read_bytes()):
        assert entry["dtype"] == name
        assert bytes(entry["data"]) == values((3,), NAMES[name].numpy).tobytes()


def test_we_read_what_the_package_writes(tmp_path: Path) -> None:
    arrays = {"w": values((3, 5), np.dtype("f4")), "b": values((7,), np.dtype("u1")), "none": values((0, 2), np.dtype("f8"))}
    safetensors.numpy.save_file(arrays, tmp_path / "x", {"format": "np"})
    found = load_file(tmp_path / "x")
    for k, v in arrays.items():
        same(found[k], v)
    assert load_metadata(tmp_path / "x") == {"format": "np"}


def test_data_at_odd_addresses(tmp_path: Path) -> None:
    header = {"x": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}
    text = json.dumps(header).encode()
    text += b" " * (1 - len(text) % 2)  # an odd header: the data starts at an odd byte
    x = np.array([1.5, -2.0])
    found = load_file(broken(tmp_path / "x", text, x.tobytes()))["x"]
    same(found, x)
    assert found._array.flags.aligned


@pytest.mark.parametrize("view", [np.s_[1], np.s_[:, 2], np.s_[::-1, ::2], np.s_[2:, 1:4]], ids=str)
def test_a_view_saves_only_itself(view: tuple, tmp_path: Path) -> None:
    base = values((50, 60), np.dtype("f4"))
    save_file({"v": Tensor.wrap(base[view])}, tmp_path / "x")
    same(load_file(tmp_path / "x")["v"], np.ascontiguousarray(base[view]))
    assert len(described(tmp_path / "x")[1]) == base[view].nbytes


def test_from_and_to_the_device(tmp_path: Path) -> None:
    x = values((5, 6), np.dtype(ml_dtypes.bfloat16))
    on = device("cuda", 0)
    save_file({"x": Tensor.wrap(from_host(x, on)), "t": Tensor.wrap(from_host(x, on).transpose((1, 0)))}, tmp_path / "x")
    same(load_file(tmp_path / "x")["t"], np.ascontiguousarray(x.T))
    found = load_file(tmp_path / "x", device="cuda")["x"]
    assert found.device == on
    same(found, x)


def test_arrays_are_mapped_and_private(tmp_path: Path) -> None:
    save_file({"x": Tensor.wrap(np.zeros(1000, np.float32))}, tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    a, b = load_file(tmp_path / "x")["x"], load_file(tmp_path / "x")["x"]
    assert not a._array.flags.owndata
    a._array[:] = 7
    assert (b._array == 0).all()
    assert (tmp_path / "x").read_bytes() == before


def test_arrays_outlive_their_file(tmp_path: Path) -> None:
    save_file({"x": Tensor.wrap(np.arange(5.0))}, tmp_path / "x")
    x = load_file(tmp_path / "x")["x"]
    save_file({"x": Tensor.wrap(np.zeros(5))}, tmp_path / "x")
    assert x.tolist() == [0, 1, 2, 3, 4]
    os.unlink(tmp_path / "x")
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_widest_types_first_so_that_all_is_aligned(tmp_path: Path) -> None:
    save_file(
        {"a": Tensor.wrap(np.zeros(3, np.int8)), "b": Tensor.wrap(np.zeros(3)), "c": Tensor.wrap(np.zeros(3, np.int16))}, tmp_path / "x"
    )
    for t in load_file(tmp_path / "x").values():
        assert t.data_ptr() % t.itemsize == 0


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_file({"x": Tensor.wrap(np.ones(3))}, path)
    with pytest.raises(TypeError, match="'y' is a int, not a tensor"):
        save_file({"x": Tensor.wrap(np.zeros(3)), "y": 3}, path)  # type: ignore[dict-item]
    assert load_file(path)["x"].tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == ["x"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    save_file({"x": Tensor.wrap(np.ones(3))}, path)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_file({"x": Tensor.wrap(np.zeros(3))}, path)
    monkeypatch.undo()
    assert load_file(path)["x"].tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_stays_a_link_and_the_mode_follows_umask(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    save_file({"x": Tensor.wrap(np.ones(3))}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load_file(tmp_path / "real")["x"].tolist() == [1, 1, 1]
    (tmp_path / "plain").write_bytes(b"")
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_refused_on_saving(tmp_path: Path) -> None:
    x = Tensor.wrap(np.ones(2))
    with pytest.raises(TypeError, match="the name 3 is not a string"):
        save_file({3: x}, tmp_path / "x")  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="'__metadata__' is the format's own name"):
        save_file({"__metadata__": x}, tmp_path / "x")
    with pytest.raises(TypeError, match="metadata 'epoch': 3"):
        save_file({"x": x}, tmp_path / "x", {"epoch": 3})  # type: ignore[dict-item]
    with pytest.raises(DTypeError, match="'x' is complex128"):
        save_file({"x": Tensor.wrap(np.ones(2, np.complex128))}, tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    save_file({"a": Tensor.wrap(np.arange(4.0)), "b": Tensor.wrap(np.arange(3, dtype=np.int8))}, tmp_path / "x")
    whole = (tmp_path / "x").read_bytes()
    for n in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:n])
        with pytest.raises(CheckpointError, match=r"torn|empty|cut"):
            load_file(tmp_path / "cut")
    (tmp_path / "cut").write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="1 bytes stand behind the last array"):
        load_file(tmp_path / "cut")


F = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BROKEN = [
    ("no JSON", b'{"x": ', b"", "not the JSON it should be"),
    ("not utf-8", b'{"\xff": 1}', b"", "not the JSON it should be"),
    ("twice", b'{"x": 1, "x": 2}', b"", "the name 'x' stands twice"),
    ("metadata", {"__metadata__": {"a": 1}}, b"", "__metadata__ must hold strings"),
    ("no fields", {"x": {"dtype": "F32"}}, b"", "'x' is described by"),
    ("foreign type", {"x": F | {"dtype": "F4"}}, b"\0" * 8, "'x' is of type 'F4'"),
    ("a list for a type", {"x": F | {"dtype": ["F32"]}}, b"\0" * 8, "'x' is of type"),
    ("negative size", {"x": F | {"shape": [-2]}}, b"\0" * 8, "these are no sizes"),
    ("true is no size", {"x": F | {"shape": [True]}}, b"\0" * 8, "these are no sizes"),
    ("backwards", {"x": F | {"data_offsets": [8, 0]}}, b"\0" * 8, "these are no sizes"),
    ("three offsets", {"x": F | {"data_offsets": [0, 4, 8]}}, b"\0" * 8, "these are no sizes"),
    ("wrong length", {"x": F | {"shape": [3]}}, b"\0" * 8, r"takes 12 bytes; its offsets \[0, 8\] hold 8"),
    ("overflow", {"x": F | {"shape": [2**40, 2**40]}}, b"\0" * 8, "these are no sizes"),
    ("hole", {"x": F, "y": F | {"data_offsets": [16, 24]}}, b"\0" * 24, "'x' ends at byte 8 and 'y' begins at 16: they leave a hole"),
    ("overlap", {"x": F, "y": F | {"data_offsets": [4, 12]}}, b"\0" * 12, "'x' ends at byte 8 and 'y' begins at 4: they overlap"),
    ("overflow of nothing", {"x": F | {"shape": [0, 2**70], "data_offsets": [0, 0]}}, b"", "these are no sizes"),
    ("65 dimensions", {"x": F | {"shape": [1] * 65, "data_offsets": [0, 4]}}, b"\0" * 4, "these are no sizes"),
    ("deep", b'{"x":' + b"[" * 100_000, b"", "not the JSON it should be"),
    ("long number", b'{"x": ' + b"9" * 5000 + b"}", b"", "not the JSON it should be"),
    ("short", {"x": F}, b"\0" * 7, "tells of 8 bytes of data and 7 are there"),
]


@pytest.mark.parametrize(("header", "data", "message"), [pytest.param(*b[1:], id=b[0]) for b in BROKEN])
def test_a_damaged_file_is_refused_by_name(header: object, data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=message) as caught:
        load_file(broken(tmp_path / "weights.safetensors", header, data))
    assert "weights.safetensors" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04" + b"\0" * 60, "zip archive, as torch.save writes"),
        (b"\x80\x02}q\x00." + b"\0" * 60, "Python pickle"),
        (b"\x93NUMPY\x01\x00v\x00{'descr'" + b" " * 60, "no safetensors file"),
        (b"hello, this is a text file", "no safetensors file"),
        ((10**9).to_bytes(8, "little") + b"{" + b" " * 60, "no safetensors file"),
    ],
)
def test_a_foreign_file_is_told_apart(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        load_file(tmp_path / "x")


@settings(deadline=None)
@given(draw=st.data())
def test_any_damage_is_a_checkpoint_error_or_another_checkpoint(draw: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("io") / "x"
    save_file({"a": Tensor.wrap(np.arange(4.0)), "b": Tensor.wrap(np.arange(3, dtype=np.int8))}, path, {"k": "v"})
    raw = bytearray(path.read_bytes())
    for _ in range(draw.draw(st.integers(1, 3))):
        raw[draw.draw(st.integers(0, len(raw) - 1))] = draw.draw(st.integers(0, 255))
    path.write_bytes(raw)
    try:
        found = load_file(path)
    except CheckpointError:
        return
    for t in found.values():
        t.tolist()


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "nothing")
