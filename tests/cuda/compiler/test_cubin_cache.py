"""Compiled kernels: found in memory, packs and on disk before anything is compiled; what is torn or foreign is refused and mended."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stub.build import environment
from tests.stub.child import on_stub
from tritensor.cuda.compiler import compile_log, cubin_cache
from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.compiler.pack import Cubin, Pack, decode, encode, write_pack, write_whole
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU
from tritensor.ground.errors import LaunchError

CUBIN = Cubin("k", b"\x7fELF" + bytes(range(256)), 90, 1024, 4, 2, 16, 128, 0, 1, True, False, 0, ({"swizzle": 3, "block_size": [64, 32]},))


def specs(*names: str, n: int = 64) -> list[Specialization]:
    """What elementwise ops launch on n float32 numbers."""
    from tritensor.ground.device import device
    from tritensor.ops.array import empty
    from tritensor.ops.table import registry

    recorder = VirtualGPU(90)
    before = active.use(recorder)
    try:
        x = empty((n,), np.dtype(np.float32), device("cuda", 0))
        for name in names or ("add",):
            forward: Any = registry[name].forward
            forward(x, x)
    finally:
        active.use(before)
    return list(recorder.launches)


def fresh(cache: Path | str, triton: Path | None = None) -> None:
    """Begin as a new process that has this cache would. Triton's own cache is the user's, which saves seconds, or the one given."""
    os.environ["TRITENSOR_CACHE"] = str(cache)
    if triton is not None:
        os.environ["TRITON_CACHE_DIR"] = str(triton)
    cubin_cache.forget()
    cubin_cache._warned.clear()
    compile_log.clear()


def find_all(wanted: list[Specialization]) -> None:
    for spec in wanted:
        cubin_cache.find_cubin(spec, 90)


def sources() -> list[str]:
    """Where kernels came from, Triton's cache counted as the compiler: whether it has a kernel depends on the machine's past."""
    return ["compiled" if e.source == "triton" else e.source for e in compile_log.entries()]


def refuse_to_compile() -> None:
    """From now on the compiler is out of order, in this process."""
    from tritensor.cuda.compiler import compile

    def broken(spec: Any, arch: int) -> Any:
        raise AssertionError("compiled")

    compile.compile = broken


# One kernel as bytes
def test_a_cubin_survives_encoding() -> None:
    blob = encode(b"K" * 32, CUBIN)
    assert decode(b"K" * 32, blob) == CUBIN


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda b: b[:-1], "bytes of"),
        (lambda b: b[:10], "ends after 10 bytes"),
        (lambda b: b"", "ends after 0 bytes"),
        (lambda b: b"#!/bin/sh\n" + b, "starts with"),
        (lambda b: b[:-50] + bytes([b[-50] ^ 1]) + b[-49:], "checksum"),
        (lambda b: encode(b"L" * 32, CUBIN), "another kernel"),
    ],
)
def test_a_spoilt_cubin_is_refused(spoil: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        decode(b"K" * 32, spoil(encode(b"K" * 32, CUBIN)))


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "er" / "file"
    write_whole(target, b"first")
    write_whole(target, b"second")
    assert target.read_bytes() == b"second"
    assert [p.name for p in target.parent.iterdir()] == ["file"], "something is left beside it"
    (tmp_path / "in the way").write_text("")
    with pytest.raises(OSError, match="in the way"):
        write_whole(tmp_path / "in the way" / "file", b"")


# Packs as files
def pack_of(path: Path, n: int = 5, **about: Any) -> Path:
    rows = [(bytes([i]) * 32, bytes([i]) * 16, encode(bytes([i]) * 32, CUBIN._replace(shared=i))) for i in reversed(range(n))]
    write_pack(path, {"triton": cubin_cache.version(), "archs": [90], **about}, rows)
    return path


def test_a_pack_gives_back_what_was_put_in(tmp_path: Path) -> None:
    pack = Pack(pack_of(tmp_path / "p.ttpack"))
    assert pack.count == 5
    for i in range(5):
        blob = pack.get(bytes([i]) * 32)
        assert blob is not None
        assert decode(bytes([i]) * 32, blob).shared == i
    assert pack.get(b"\x02" * 31 + b"\x03") is None
    assert pack.get(b"\xff" * 32) is None
    assert pack.means(b"\x03" * 16)
    assert not pack.means(b"\x09" * 16)
    assert len(list(pack.rows())) == 5


def test_an_empty_pack_holds_nothing(tmp_path: Path) -> None:
    pack = Pack(pack_of(tmp_path / "p.ttpack", 0))
    assert pack.get(b"\0" * 32) is None


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda b: b"", "empty"),
        (lambda b: b"PK\3\4" + b, "no pack"),
        (lambda b: b[:12], "ends after"),
        (lambda b: b[:-7], "bytes of"),
        (lambda b: b[:-7] + bytes([b[-7] ^ 1]) + b[-6:], "checksum"),
    ],
)
def test_a_spoilt_pack_is_refused(tmp_path: Path, spoil: Any, says: str) -> None:
    path = pack_of(tmp_path / "p.ttpack")
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(LaunchError, match=rf"p\.ttpack.*{says}.*tritensor precompile"):
        Pack(path)


def test_a_missing_pack_and_one_of_another_triton(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"No such file.*tritensor precompile"):
        cubin_cache.open_pack(tmp_path / "nowhere.ttpack")
    with pytest.raises(LaunchError, match=r"Triton 2\.0.*this process has Triton.*--arch sm_90"):
        cubin_cache.open_pack(pack_of(tmp_path / "old.ttpack", triton="2.0"))


# The road
@on_stub()
def test_compiled_once_then_memory_then_disk(tmp_path: Path) -> None:
    fresh(tmp_path / "cache")
    (spec,) = specs()
    first = cubin_cache.find_cubin(spec, 90)
    assert cubin_cache.find_cubin(spec, 90) is first
    assert sources() == ["compiled"]
    cubin_cache.forget()
    refuse_to_compile()
    assert cubin_cache.find_cubin(spec, 90) == first
    assert sources() == ["compiled", "disk"]
    assert first.image[:4] == b"\x7fELF"
    assert first.name.encode() in first.image
    assert (first.num_warps, first.num_ctas, first.arch) == (4, 1, 90)


@on_stub()
def test_tritons_own_cache_is_told_apart(tmp_path: Path) -> None:
    fresh(tmp_path / "cache", tmp_path / "triton")
    (spec,) = specs()
    cubin_cache.find_cubin(spec, 90)
    os.environ["TRITENSOR_CACHE"] = str(tmp_path / "another")
    cubin_cache.forget()
    cubin_cache.find_cubin(spec, 90)
    assert [e.source for e in compile_log.entries()] == ["compiled", "triton"]


@on_stub()
def test_the_users_listener_is_still_called(tmp_path: Path) -> None:
    from triton import knobs

    heard = []

    def listener(**facts: Any) -> None:
        heard.append(facts["cache_hit"])

    knobs.compilation.listener = listener
    fresh(tmp_path / "cache", tmp_path / "triton")
    cubin_cache.find_cubin(specs()[0], 90)
    assert heard == [False]
    assert knobs.compilation.listener is listener


@on_stub()
def test_a_torn_file_is_named_compiled_and_mended(tmp_path: Path) -> None:
    fresh(tmp_path / "cache")
    (spec,) = specs()
    good = cubin_cache.find_cubin(spec, 90)
    path = cubin_cache.cache_file(cubin_cache.keys(spec, 90)[0])
    assert path is not None
    whole = path.read_bytes()
    for torn in (whole[:100], b"", b"foreign" + whole, whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]):
        path.write_bytes(torn)
        cubin_cache.forget()
        with pytest.warns(RuntimeWarning, match=rf"{path.name}.*compiled again"):
            assert cubin_cache.find_cubin(spec, 90) == good
        assert path.read_bytes() == whole


@on_stub()
def test_a_cache_that_cannot_be_written_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    fresh(tmp_path / "file")
    with pytest.warns(RuntimeWarning, match=r"not kept.*TRITENSOR_CACHE") as seen:
        find_all(specs("add", "mul"))
    assert len([w for w in seen if "not kept" in str(w.message)]) == 1


@on_stub()
def test_an_empty_cache_variable_keeps_nothing(tmp_path: Path) -> None:
    os.chdir(tmp_path)
    fresh("", tmp_path / "triton")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cubin_cache.find_cubin(specs()[0], 90)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["triton"]


@on_stub()
def test_always_compile_passes_the_caches_by(tmp_path: Path) -> None:
    fresh(tmp_path / "cache")
    (spec,) = specs()
    cubin_cache.find_cubin(spec, 90)
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    cubin_cache.forget()
    cubin_cache.find_cubin(spec, 90)
    assert sources() == ["compiled", "compiled"]


@on_stub()
def test_the_key_covers_what_the_code_depends_on() -> None:
    (spec,) = specs()
    other = spec._replace(types=tuple("constexpr" if t == "constexpr" else ("i64" if t == "i32" else t) for t in spec.types))
    constants = tuple((p, v + 1 if type(v) is int else v) for p, v in spec.constants)
    found = {
        "itself": cubin_cache.keys(spec, 90)[0],
        "arch": cubin_cache.keys(spec, 80)[0],
        "types": cubin_cache.keys(other, 90)[0],
        "constants": cubin_cache.keys(spec._replace(constants=constants), 90)[0],
        "warps": cubin_cache.keys(spec._replace(num_warps=8), 90)[0],
        "stages": cubin_cache.keys(spec._replace(num_stages=5), 90)[0],
        "options": cubin_cache.keys(spec._replace(options=(("launch_pdl", True),)), 90)[0],
        "a function in a tuple": cubin_cache.keys(specs("mul")[0], 90)[0],
        "1 or True": cubin_cache.keys(spec._replace(constants=tuple((p, True if v is False else v) for p, v in spec.constants)), 90)[0],
    }
    os.environ["PTXAS_OPTIONS"] = "-O1"
    found["environment"] = cubin_cache.keys(spec, 90)[0]
    assert len(set(found.values())) == len(found), {k: v.hex()[:8] for k, v in found.items()}


def _flat(values: Sequence[Any]) -> list[Any]:
    return [x for v in values for x in (_flat(v) if isinstance(v, tuple) else [v])]


@on_stub()
def test_the_key_covers_the_sources() -> None:
    """The kernel's and those of functions in tuples of constants; the meaning stays, so that a stale pack is recognised."""
    (spec,) = specs()
    key, meaning = cubin_cache.keys(spec, 90)
    function = next(v for v in _flat([v for _, v in spec.constants]) if hasattr(v, "cache_key"))
    for changed in (function, spec.kernel):
        old = changed.hash
        changed.hash = "changed"
        assert cubin_cache.keys(spec, 90)[0] != key
        assert cubin_cache.keys(spec, 90)[1] == meaning
        changed.hash = old
    assert cubin_cache.keys(spec, 90)[0] == key


@on_stub()
def test_an_object_shown_by_its_address_is_never_found_again() -> None:
    written = cubin_cache._constant_text(object(), [])
    assert cubin_cache._process in written


CHILD = """
import sys
sys.path.insert(0, {root!r})
from tests.cuda.compiler.test_cubin_cache import specs
from tritensor.cuda.compiler import compile_log, cubin_cache
for spec in specs("add", "mul"):
    print(cubin_cache.find_cubin(spec, 90).image[:4].hex(), cubin_cache.keys(spec, 90)[0].hex())
print([e.source for e in compile_log.entries()])
"""
ROOT = Path(__file__).resolve().parents[3]


def test_processes_share_one_cache(tmp_path: Path) -> None:
    """Two at once into one empty cache, each with its own hash seed: nobody fails, both see one key; a third compiles nothing."""
    code = CHILD.format(root=str(ROOT))

    def start(seed: int) -> subprocess.Popen[str]:
        env = environment(PYTHONHASHSEED=seed, TRITENSOR_CACHE=tmp_path / "ours", TRITON_CACHE_DIR=tmp_path / f"triton{seed}")
        return subprocess.Popen([sys.executable, "-W", "error::RuntimeWarning", "-c", code], env=env, text=True, stdout=-1, stderr=-1)

    together = [start(seed) for seed in (1, 2)]
    said = [p.communicate(timeout=120) for p in together]
    for p, (_, errors) in zip(together, said, strict=True):
        assert p.returncode == 0, errors
    assert len({out.rpartition("[")[0] for out, _ in said}) == 1
    out, errors = start(9).communicate(timeout=120)
    assert out.splitlines()[-1] == "['disk', 'disk']", errors
    assert not list((tmp_path / "ours").rglob(".*")), "temporary files are left"


# Packs on the road
def make_pack(path: Path, wanted: list[Specialization]) -> None:
    rows = [cubin_cache.pack_row(s, 90) for s in wanted]
    write_pack(path, {"triton": cubin_cache.version(), "tritensor": "0", "archs": [90]}, rows)


@on_stub()
def test_a_pack_comes_before_the_disk_and_the_compiler(tmp_path: Path) -> None:
    fresh(tmp_path / "cache")
    both = specs("add", "mul")
    make_pack(tmp_path / "p.ttpack", both)
    fresh(tmp_path / "empty")
    refuse_to_compile()
    os.environ["TRITENSOR_PACK"] = str(tmp_path / "p.ttpack")
    for spec in both:
        cubin_cache.find_cubin(spec, 90)
    assert sources() == ["pack", "pack"]
    assert not (tmp_path / "empty").exists(), "a hit writes nothing"


@on_stub()
def test_packs_in_the_cache_are_found_by_themselves(tmp_path: Path) -> None:
    fresh(tmp_path / "cache")
    (spec,) = specs()
    make_pack(tmp_path / "cache2" / "packs" / "a.ttpack", [spec])
    pack_of(tmp_path / "cache2" / "packs" / "b.ttpack", triton="2.0")
    (tmp_path / "cache2" / "packs" / "c.ttpack").write_text("not a pack")
    fresh(tmp_path / "cache2")
    refuse_to_compile()
    with pytest.warns(RuntimeWarning, match=r"c\.ttpack.*left out"):
        cubin_cache.find_cubin(spec, 90)
    assert sources() == ["pack"]
    assert [p.path.name for p in cubin_cache.packs()] == ["a.ttpack"]


@on_stub()
def test_open_pack_by_hand(tmp_path: Path) -> None:
    from tritensor import cuda

    fresh(tmp_path / "cache")
    (spec,) = specs()
    make_pack(tmp_path / "p.ttpack", [spec])
    fresh(tmp_path / "empty")
    cuda.open_pack(tmp_path / "p.ttpack")
    refuse_to_compile()
    cubin_cache.find_cubin(spec, 90)
    assert sources() == ["pack"]


@on_stub()
def test_a_pack_that_cannot_be_opened_is_a_warning_and_a_compilation(tmp_path: Path) -> None:
    fresh(tmp_path / "cache")
    os.environ["TRITENSOR_PACK"] = str(tmp_path / "nowhere.ttpack")
    with pytest.warns(RuntimeWarning, match=r"TRITENSOR_PACK.*nowhere\.ttpack.*compiled instead"):
        cubin_cache.find_cubin(specs()[0], 90)
    assert sources() == ["compiled"]


@on_stub()
def test_a_pack_from_another_source_is_named_once(tmp_path: Path) -> None:
    fresh(tmp_path / "cache")
    both = specs("add", "mul")
    for spec in both:
        spec.kernel.hash = "an older source"
        make_pack(tmp_path / "p.ttpack", both)
        spec.kernel.hash = None
    fresh(tmp_path / "empty")
    os.environ["TRITENSOR_PACK"] = str(tmp_path / "p.ttpack")
    with pytest.warns(RuntimeWarning, match=r"p\.ttpack.*changed since it was made") as seen:
        find_all(both)
    assert len(seen) == 1
    assert "disk" not in sources()
    assert "pack" not in sources()


@on_stub()
def test_a_spoilt_kernel_in_a_pack_is_compiled(tmp_path: Path) -> None:
    fresh(tmp_path / "cache")
    (spec,) = specs()
    key, meaning, blob = cubin_cache.pack_row(spec, 90)
    write_pack(tmp_path / "p.ttpack", {"triton": cubin_cache.version()}, [(key, meaning, blob[:-40] + b"\0" * 40)])
    fresh(tmp_path / "empty")
    os.environ["TRITENSOR_PACK"] = str(tmp_path / "p.ttpack")
    with pytest.warns(RuntimeWarning, match=r"p\.ttpack.*compiled instead"):
        found = cubin_cache.find_cubin(spec, 90)
    assert found == decode(key, blob)
