"""map_location in all its forms, on both formats; tags of devices that are not here; packages that add their own."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import tritensor as tt
from tritensor import serialization
from tritensor.ground.errors import CheckpointError
from tritensor.io import device_mapping

FORMATS = ("torch", "torch-legacy", "safetensors")


@pytest.fixture(params=FORMATS)
def saved(request: pytest.FixtureRequest) -> Any:
    """Something that loads {"a", "part" of a's memory} with how it is placed."""

    def load(map_location: Any = None, device: str = "cpu") -> Any:
        file = io.BytesIO()
        a = tt.arange(6.0, device=device)
        tt.save({"a": a, "part": a[2:4]}, file, format=request.param)
        file.seek(0)
        return tt.load(file, map_location)

    load.format = request.param  # type: ignore[attr-defined]
    return load


@pytest.mark.parametrize(
    "where",
    ["cuda", "cuda:0", b"cuda:0", tt.device("cuda"), {"cpu": "cuda:0"}, lambda s, at: s.cuda(0), lambda s, at: s.cuda(), lambda s, at: s.to("cuda"),
     lambda s, at: tt.tensor(s.tolist(), dtype=tt.uint8, device="cuda"), lambda s, at: s.to(tt.device("cuda", 0))],
)  # fmt: skip
def test_onto_a_gpu(saved: Any, where: Any) -> None:
    if where == b"cuda:0" and saved.format == "safetensors":
        where = "cuda:0"
    found = saved(where)
    assert {str(t.device) for t in found.values()} == {"cuda:0"}
    assert (found["a"].tolist(), found["part"].tolist()) == ([0, 1, 2, 3, 4, 5], [2, 3])
    if saved.format != "safetensors":
        found["part"].fill_(9)
        assert found["a"].tolist() == [0, 1, 9, 9, 4, 5]


@pytest.mark.parametrize(
    "where",
    [
        None,
        "cpu",
        tt.device("cpu"),
        {"cuda:7": "cuda"},
        lambda s, at: s,
        lambda s, at: None,
        lambda s, at: s.cpu(),
        lambda s, at: s.clone(),
    ],
)
def test_onto_the_cpu(saved: Any, where: Any) -> None:
    found = saved(where)
    assert {str(t.device) for t in found.values()} == {"cpu"}
    assert (found["a"].tolist(), found["part"].tolist()) == ([0, 1, 2, 3, 4, 5], [2, 3])


def test_from_a_gpu(saved: Any) -> None:
    """PyTorch's files know where they were saved from; safetensors know no devices."""
    asked: list[str] = []
    found = saved(lambda s, at: asked.append(at), device="cuda")
    if saved.format == "safetensors":
        assert set(asked) == {"cpu"}
        return
    assert asked == ["cuda:0"]  # once for one memory
    assert {str(t.device) for t in (*found.values(), *saved(device="cuda").values())} == {"cuda:0"}
    for where in ("cpu", {"cuda:0": "cpu"}, lambda s, at: s):
        found = saved(where, device="cuda")
        assert {str(t.device) for t in found.values()} == {"cpu"}
        assert found["part"].tolist() == [2, 3]


def test_a_storage_is_what_a_function_gets(saved: Any) -> None:
    seen: list[Any] = []
    saved(lambda s, at: seen.append((type(s).__name__, s.device, s.nbytes(), at)))
    assert seen[0] == ("UntypedStorage", tt.device("cpu"), 24, "cpu")


@pytest.mark.parametrize(
    ("where", "error", "match"),
    [
        (3, TypeError, "map_location is a int; give a device, its name, a dict of locations, or a function"),
        (lambda s, at: "cuda", TypeError, "map_location returned a str; it shall return a storage, or None"),
        (lambda s, at: tt.zeros(99), ValueError, "returned a storage of 396 bytes for one of 24"),
        ("mps", CheckpointError, r"don't know how to restore data location .*\(tagged with mps\): that is a device that tritensor has not"),
        ("elsewhere", CheckpointError, r"tagged with elsewhere\): that is no device"),
        ("cuda:9", CheckpointError, "Attempting to deserialize object on CUDA device 9 but .*device_count"),
        ("cuda:x", CheckpointError, "'cuda:x' is no device"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_leads_nowhere(where: Any, error: type[Exception], match: str) -> None:
    for format in FORMATS[:2]:
        file = io.BytesIO()
        tt.save({"a": tt.arange(6.0)}, file, format=format)
        file.seek(0)
        with pytest.raises(error, match=match):
            tt.load(file, where)


def test_without_a_gpu() -> None:
    """The tag of a GPU on a machine without one: PyTorch's own lesson."""
    code = (
        "import io, tritensor as tt\nfile = io.BytesIO(); tt.save({'a': tt.ones(3)}, file)\n"
        "file = io.BytesIO(file.getvalue().replace(b'X\\x03\\0\\0\\0cpu', b'X\\x04\\0\\0\\0cuda'))\n"
    )
    file = io.BytesIO()
    tt.save({"a": tt.ones(3, device="cuda")}, file)
    code = (
        f"import io, tritensor as tt\nfile = io.BytesIO({file.getvalue()!r})\n"
        "assert tt.load(file, map_location='cpu')['a'].tolist() == [1, 1, 1]; file.seek(0)\n"
        "try: tt.load(file)\nexcept RuntimeError as error: print(error)\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert "Attempting to deserialize object on a CUDA device but tritensor.cuda.is_available() is False." in done.stdout, done
    assert "map_location=tritensor.device('cpu')" in done.stdout


@pytest.fixture
def packages() -> Iterator[None]:
    before = list(device_mapping._packages)
    yield
    device_mapping._packages[:] = before


@pytest.mark.usefixtures("packages")
def test_a_package_of_its_own() -> None:
    where: list[str] = []

    def restore(storage: Any, location: str) -> Any:
        where.append(location)
        return storage if location.startswith("disk") else None

    serialization.register_package(5, lambda storage: "disk:3" if storage.nbytes() > 100 else None, restore)
    file = io.BytesIO()
    tt.save({"a": tt.ones(3)}, file)
    file.seek(0)
    assert tt.load(file, map_location="disk:1")["a"].tolist() == [1, 1, 1]
    assert where == ["disk:1"]
    assert serialization.location_tag(tt.ones(100).untyped_storage()) == "disk:3"
    assert serialization.location_tag(tt.ones(1, device="cuda").untyped_storage()) == "cuda:0"
    assert serialization.default_restore_location(tt.ones(2).untyped_storage(), "cuda:0").device == tt.device("cuda:0")
    assert serialization.validate_cuda_device("cuda:0") == 0


def test_options_that_are_no_choice() -> None:
    import mmap

    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with serialization.set_default_mmap_options(mmap.MAP_PRIVATE):
        pass
    with pytest.raises(NotImplementedError, match="MAP_SHARED would write what is done to a tensor into the checkpoint"):
        serialization.set_default_mmap_options(mmap.MAP_SHARED)
    with pytest.raises(ValueError, match="Invalid argument"):
        serialization.set_default_mmap_options(12345)
    with pytest.raises(NotImplementedError, match="skip_data: a checkpoint without its data is none"):
        serialization.skip_data()


def test_a_tag_of_the_programs_own_is_written_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_mapping, "_packages", list(device_mapping._packages))
    asked: list[str] = []

    def restored(storage: Any, location: str) -> Any:
        asked.append(location)
        return storage if location == "vault" else None

    serialization.register_package(5, lambda storage: "vault" if storage.device.type == "cpu" else None, restored)
    file = io.BytesIO()
    tt.save({"a": tt.arange(3.0), "gaps": tt.arange(6.0)[::2]}, file)
    file.seek(0)
    found = tt.load(file)
    assert asked == ["vault", "vault"]
    assert (found["a"].tolist(), found["gaps"].tolist()) == ([0, 1, 2], [0, 2, 4])
