"""Files that lie: whatever bytes stand in it, load gives a checkpoint or a CheckpointError, and takes no more memory than the file is worth."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor as tt
from tritensor.ground.errors import CheckpointError

SAMPLES: list[Any] = [
    {"a": tt.arange(4.0), "b": tt.arange(3, dtype=tt.int8), "none": tt.zeros(0, 3)},
    {
        "state": {0: {"step": 3, "exp_avg": tt.zeros(3)}, 1: {"buf": None}},
        "groups": [OrderedDict(lr=0.1, betas=(0.9, (0.99,)))],
        "milestones": Counter([3, 3]),
        "n": np.float32(2),
    },
    (1, 2.5, float("nan"), {frozenset({1}): {2}}, "text", b"bytes", 1j, tt.float16, 2**90),
]
WORTH = 64  # bytes of Python objects that one byte of JSON can stand for ("[[],[],..." takes 3 for a list of 56)
SLACK = 500_000


def written(nest: Any) -> bytes:
    buffer = io.BytesIO()
    tt.save(nest, buffer, format="safetensors")
    return buffer.getvalue()


FILES = [written(nest) for nest in SAMPLES]


def framed(header: bytes, data: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def seen(x: Any, found: set[int]) -> None:
    """Touch everything that was read."""
    if id(x) in found:
        return
    found.add(id(x))
    if isinstance(x, tt.Tensor):
        assert len(repr(x)) > 0
        assert x.numel() == len(x.reshape(-1).tolist())
    elif isinstance(x, dict):
        for k, v in x.items():
            seen(k, found)
            seen(v, found)
    elif isinstance(x, list | tuple | set | frozenset):
        for v in x:
            seen(v, found)


def survives(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    for source in (path, io.BytesIO(content)):
        tracemalloc.start()
        try:
            found = tt.load(source)
        except CheckpointError as error:
            assert str(error)  # noqa: PT017
        else:
            seen(found, set())
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak <= WORTH * len(content) + SLACK, f"{len(content)} bytes made load take {peak}"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for content in FILES:  # the ops that printing and reshaping ask for are loaded now: their memory is no file's
        seen(tt.load(io.BytesIO(content)), set())
    return tmp_path_factory.mktemp("hostile") / "x"


files = st.sampled_from(FILES)


@settings(deadline=None)
@given(files, st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=6))
def test_flipped_bits(path: Path, content: bytes, flips: list[tuple[float, int]]) -> None:
    raw = bytearray(content)
    for at, bit in flips:
        raw[int(at * len(raw))] ^= 1 << bit
    survives(bytes(raw), path)


@settings(deadline=None)
@given(files, st.floats(0, 1), st.floats(0, 1), st.binary(max_size=20))
def test_torn_and_spliced(path: Path, content: bytes, a: float, b: float, between: bytes) -> None:
    survives(content[: int(a * len(content))] + between + content[int(b * len(content)) :], path)


def parsed(content: bytes) -> tuple[Any, bytes]:
    n = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + n]), content[8 + n :]


numbers = st.sampled_from([-1, 0, 1, 2, 12, 13, 2**31, 2**53, 2**62, 2**63, 2**64, 10**30, 0.5, True])
scraps = st.recursive(
    numbers | st.none() | st.sampled_from(["", "a", "F32", "I8", "at", "tensor", "tuple", "list", "dict", "__metadata__", "x" * 100]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["at", "tensor", "a", "shape"]), inner, max_size=2),
    max_leaves=5,
)


def mutate(x: Any, draw: st.DataObject) -> Any:
    """One place of a JSON tree put in disorder: replaced, doubled, dropped."""
    if isinstance(x, dict | list) and x and draw.draw(st.integers(0, 5)):
        at = draw.draw(st.sampled_from(list(x) if isinstance(x, dict) else list(range(len(x)))))
        out = x.copy()
        how = draw.draw(st.integers(0, 6))
        if how == 0:
            del out[at]
        elif how == 1 and isinstance(x, list):
            out.insert(at, draw.draw(st.sampled_from(x)))
        else:
            out[at] = mutate(x[at], draw)
        return out
    return draw.draw(scraps)


@settings(deadline=None, max_examples=200)
@given(files, st.data())
def test_headers_that_lie(path: Path, content: bytes, draw: st.DataObject) -> None:
    header, data = parsed(content)
    survives(framed(json.dumps(mutate(header, draw)).encode(), data), path)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(FILES[1:]), st.data())
def test_structures_that_lie(path: Path, content: bytes, draw: st.DataObject) -> None:
    header, data = parsed(content)
    structure = mutate(json.loads(header["__metadata__"]["tritensor"]), draw)
    header["__metadata__"]["tritensor"] = json.dumps(structure)
    survives(framed(json.dumps(header).encode(), data), path)


def entry(dtype: Any, shape: Any, *span: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(span)}


@pytest.mark.parametrize(
    "header",
    [
        {"x": entry("F32", [2**40], 0, 2**42)},
        {"x": entry("F32", [0, 2**62], 0, 0)},
        {"x": entry("F32", [2**55, 0, 1], 0, 0)},
        {"x": entry("F32", [1] * 70, 0, 4)},
        {"x": entry("F32", [1] * 40, 0, 4)},
        {"x": entry("F32", [-1, -1], 0, 4)},
        {"x": entry(["F32"], [1], 0, 4)},
        {"x": entry("F32", 1, 0, 4)},
        {"x": entry("F32", [1], 0)},
        {"x": entry("F32", [1], 0, 4), "y": entry("F32", [1], 0, 4)},
        {"x": entry("F32", [1], 4, 8)},
        {f"x{i}": entry("F32", [0], 0, 0) for i in range(1000)},
        {"__metadata__": {"tritensor": 3}},
        {"__metadata__": {"tritensor": json.dumps([{"numpy": ["str", "a"]}])}},
        [],
    ],
    ids=lambda header: str(header)[:70],
)
def test_chosen_lies(header: Any, path: Path) -> None:
    survives(framed(json.dumps(header).encode(), b"\0" * 4), path)


@pytest.mark.parametrize("text", [b'{"a":' * 5000, b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"a":' + b"[" * 900 + b"]" * 900 + b"}"])
def test_headers_nested_deeply(text: bytes, path: Path) -> None:
    survives(framed(text, b""), path)


def test_many_references_take_linear_time(path: Path) -> None:
    n = 4_000
    inside = [["tuple"]] * n
    fans = [["tuple", *({"at": i} for i in range(n))], ["tuple", *({"at": n} for _ in range(n))]]
    structure = json.dumps([{"at": n + 1}, *inside, *fans])
    survives(framed(json.dumps({"__metadata__": {"tritensor": structure}}).encode(), b""), path)
