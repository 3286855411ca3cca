"""Files of PyTorch's format that lie: refused by name, nothing run, nothing read outside, no more memory than the file is worth."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tests.io.mutations import HOSTILE
from tritensor.ground.errors import CheckpointError

TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQ"  # six floats, record data/0
NO_HOOKS = b"\x89ccollections\nOrderedDict\n)R"


def archive(pickled: bytes, records: dict[str, bytes] | None = None, **how: Any) -> bytes:
    """An archive around a pickle, with one storage of six floats."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how.get("kind", zipfile.ZIP_STORED)) as file:
        for name, data in {"x/data.pkl": pickled, "x/data/0": b"\0" * 24, "x/version": b"3\n", **(records or {})}.items():
            file.writestr(name, data)
    return out.getvalue()


def stream(pickled: bytes, keys: Any = ("0",), data: bytes = (6).to_bytes(8, "little") + b"\0" * 24) -> bytes:
    """The same in the format before 1.6."""
    head = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    return head + pickled.replace(b"cpuK\x06tQ", b"cpuK\x06NtQ") + pickle.dumps(list(keys), 2) + data


def window(offset: bytes = b"K\x00", size: bytes = b"K\x06\x85", stride: bytes = b"K\x01\x85", rest: bytes = NO_HOOKS) -> bytes:
    return b"\x80\x02" + TENSOR + b"(" + STORAGE + offset + size + stride + rest + b"tR."


@pytest.fixture(autouse=True, scope="module")
def read_once() -> None:
    """Read one file, lest the modules that the first one imports count as memory: a test must hold alone, too."""
    tt.load(io.BytesIO(archive(window())))


def refused(content: bytes, match: str = "", worth: int = 300) -> None:
    """The file is refused with an error that names it, and with little memory."""
    if len(content) > 100_000:  # measuring takes ten times the time
        with pytest.raises(CheckpointError, match=rf"(?s)BytesIO: .*{match}"):
            tt.load(io.BytesIO(content))
        return
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=rf"(?s)BytesIO: .*{match}"):
            tt.load(io.BytesIO(content))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < worth * len(content) + 300_000, f"{len(content)} bytes made load take {peak}"


def both(pickled: bytes, match: str = "") -> None:
    refused(archive(pickled), match)
    refused(stream(pickled), match)


def test_what_is_right_is_read() -> None:
    for content in (archive(window()), stream(window())):
        assert tt.load(io.BytesIO(content)).tolist() == [0] * 6


@pytest.mark.parametrize(
    ("pickled", "match"),
    [
        (window(offset=b"K\x01"), "leaves its storage of 6 elements"),
        (window(offset=b"J\xff\xff\xff\xff"), "no window"),
        (window(offset=b"\x8a\x08" + b"\xff" * 7 + b"\x7f"), "no window"),
        (window(size=b"K\x07\x85"), "leaves its storage"),
        (window(size=b"J\xff\xff\xff\xff\x85"), "no size"),
        (window(size=b"\x8a\x08" + b"\xff" * 7 + b"\x3f\x85"), "no size|leaves"),
        (window(stride=b"K\x02\x85"), "leaves its storage"),
        (window(stride=b"J\xff\xff\xff\xff\x85"), "no stride"),
        (window(stride=b"K\x01K\x01\x86"), "no window"),
        (window(size=b"J\x00\x00\x00\x40K\x00K\x01\x87", stride=b"K\x01K\x01K\x01\x87", offset=b"K\x07"), ""),
        (window(rest=b"\x89}K\x01K\x01s"), "hooks"),
        (window(rest=NO_HOOKS + b"}X\x05\x00\x00\x00otherK\x01s"), "metadata"),
        (window(rest=b"\x88N").replace(b"FloatStorage", b"IntStorage"), "requires_grad: int32 has no gradient"),
        (window().replace(b"FloatStorage", b"QInt8Storage"), "holds a torch.QInt8Storage, of a type that tensors here cannot hold"),
        (window().replace(b"FloatStorage", b"DoubleStorage"), "48 bytes is needed and record data/0 has 24 bytes|said to have|48 bytes"),
        (window().replace(b"X\x07\x00\x00\x00storage", b"X\x06\x00\x00\x00module"), "no name of one"),
        (window().replace(b"K\x06tQ", b"J\xff\xff\xff\xfftQ"), "no number of elements|no name of one"),
        (window().replace(b"(X\x07", b"N0(X\x07").replace(STORAGE, b"K\x05Q"), "no name of one"),
        (window().replace(TENSOR, b"ctorch._utils\n_rebuild_sparse_tensor\n"), r"holds a sparse tensor .*save it with to_dense\(\)"),
        (window().replace(TENSOR, b"ctorch._utils\n_rebuild_qtensor\n"), "holds a quantized tensor"),
        (window().replace(TENSOR, b"ctorch._utils\n_rebuild_nested_tensor\n"), "holds a nested tensor"),
        (window().replace(TENSOR, b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n"), "rebuild_meta_tensor"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_tensors_that_lie(pickled: bytes, match: str) -> None:
    if match == "":  # no element at all: nothing is read
        assert tt.load(io.BytesIO(archive(pickled))).numel() == 0
        return
    refused(archive(pickled), match)
    if "IntStorage" not in str(pickled) and "DoubleStorage" not in str(pickled):
        refused(stream(pickled), match)


@pytest.mark.parametrize(
    ("code", "match"),
    [
        (b"cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "wants os.system, a function of the operating system"),
        (b"cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.", "wants posix.system, a function of the operating system"),
        (b"c__builtin__\neval\nX\x01\x00\x00\x001\x85R.", "wants builtins.eval, which is no plain value.*weights_only=False"),
        (b"csubprocess\nPopen\n.", "wants subprocess.Popen"),
        (b"ctritensor.io\nload\n.", "wants tritensor.io.load"),
        (b"ctorch.nn\nLinear\n.", "wants torch.nn.Linear, which is no plain value"),
        (b"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93.", "wants os.system"),
        (b"}X\x01\x00\x00\x00aK\x01\x85R.", "calls a str, which is no constructor"),
        (b"ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsK\x01sb.", "attribute 'items' would take the place"),
        (b"ccollections\nOrderedDict\n)R}X\x09\x00\x00\x00__class__K\x01sb.", "attribute '__class__'"),
        (b"ccollections\nOrderedDict\n}X\x01\x00\x00\x00aK\x01sb.", "sets attributes of a type"),
        (b"ctorch\nTensor\n)\x81.", "torch.Tensor is called"),
        (b"ccollections\ndefaultdict\nctorch._utils\n_rebuild_tensor\n\x85R.", "a defaultdict of"),
        (b"c__builtin__\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x7f\x85R.", "a bytearray of a int"),
        (b"cnumpy\ndtype\nX\x02\x00\x00\x00O8\x89\x88\x87R.", "no type of numbers or text"),
        (b"cnumpy\ndtype\nX\x0b\x00\x00\x00V2147483647\x89\x88\x87R.", "no type of numbers or text"),
        (b"cnumpy\nndarray\n\x8a\x06\x00\x00\x00\x00\x00\x7f\x85\x85R.", "numpy.ndarray is called"),
        (
            b"cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nU\x02U1\x89\x88\x87R(K\x03U\x01<NNNK\x04K\x04K\x08tbU\x04aa\x11\x7f\x86R.",
            "an array of text whose characters are none of Unicode's",
        ),
        (b"ctorch\ndevice\nX\x04\x00\x00\x00evil\x85R.", r"holds the value torch.device\('evil'\), which is no device here"),
        (b"X\xff\xff\xff\x7fabc.", "2147483647 bytes are told of"),
        (b"\x8d" + b"\xff" * 8 + b"abc.", "18446744073709551615 bytes"),
        (b"\x8b\xff\xff\xff\x7f\x00.", "an integer of 2147483647 bytes"),
        (b"\x8b\x00\x00\x00\x80\x00.", "an integer of 2147483648 bytes"),
        (b"L" + b"9" * 9000 + b"L\n.", "an integer of 9000 digits"),
        (b"\x95" + b"\xff" * 8 + b"N.", "a frame of"),
        (b"h\x05.", "KeyError 5"),
        (b"N", "ends before its end"),
        (b"", "ends before its end"),
        (b"NN.", "leaves values behind"),
        (b"(N.", "leaves values behind"),
        (b".", "IndexError"),
        (b"\x82\x01.", "opcode 0x82"),
        (b"(ios\nsystem\n.", "opcode 0x69"),
        (b"}]K\x01s.", "a list is a key"),
        (b"}q\x00h\x00h\x00s.", "a dict is a key"),
        (b"}K\x01\x86K\x01K\x02s.", "items are put into a tuple"),
        (b"NK\x01a.", "appended to a NoneType"),
        (b"\x80\x09N.", "a protocol that is not known"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_pickles_that_are_no_values(code: bytes, match: str) -> None:
    refused(archive(code), match)
    head = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    refused(head + code, match if code not in (b"N", b"") else "")


@pytest.mark.parametrize("snippet", HOSTILE, ids=lambda s: repr(s[:24]))
def test_fragments(snippet: bytes) -> None:
    """Anywhere in a pickle they are refused, or harmless."""
    for pickled in (snippet + b".", b"]" + snippet + b"a.", b"}(X\x01\x00\x00\x00a" + snippet + b"u."):
        for content in (archive(pickled), stream(pickled)):
            try:
                tt.load(io.BytesIO(content))
            except CheckpointError as error:
                assert str(error).startswith("BytesIO: ")  # noqa: PT017


def test_deep_nests_are_no_crash() -> None:
    n = 300_000
    deep = tt.load(io.BytesIO(archive(b"]" * n + b"a" * (n - 1) + b".")))
    for _ in range(1000):
        (deep,) = deep
    del deep
    assert isinstance(tt.load(io.BytesIO(archive(b")" + b"\x85" * n + b"."))), tuple)
    both(b"}" + b")" + b"\x85" * n + b"Ns.", "nested, or repeated, beyond all measure")
    both(b"}N" + b"2\x86" * 200 + b"Ns.", "nested, or repeated, beyond all measure")
    one = b"ccollections\ndefaultdict\nq\x00c__builtin__\nlist\n\x85q\x01R"
    both(one + b"K\x01h\x00h\x01R" * 3000 + b"K\x01N" + b"s" * 3001 + b".", "defaultdicts hold one another")
    tt.load(io.BytesIO(archive(b"]q\x00h\x00a.")))[0][0][0].append(1)  # a list that holds itself


@pytest.mark.parametrize(
    "again", [b"c__builtin__\nbytearray\n", b"c__builtin__\nset\n", b"c__builtin__\nlist\n", b"ccollections\nOrderedDict\n"]
)
def test_copies_are_counted(again: bytes) -> None:
    """What the pickle holds once may be copied again and again by constructors, each asked for in a few bytes."""
    if b"bytearray" in again:
        base = b"B\xb8\x0b\x00\x00" + b"a" * 3000
    elif b"Ordered" in again:
        base = b"](" + b"".join(b"J" + struct.pack("<i", i) + b"N\x86" for i in range(300)) + b"e"
    else:
        base = b"](" + b"".join(b"J" + struct.pack("<i", i) for i in range(300)) + b"e"
    content = again + b"q\x00" + base + b"\x85q\x01]" + b"h\x00h\x01Ra" * 10_000 + b"."
    refused(archive(content), "copies of", worth=100)


def test_archives_that_lie(tmp_path: Path) -> None:
    good = archive(window())
    refused(good[:-30], "directory, at its end, is missing")
    refused(good[:40], "directory")
    refused(archive(window(), kind=zipfile.ZIP_DEFLATED), r"is compressed \(method 8.*zip -0")
    refused(archive(window(), {"../../etc/passwd": b""}), "leads out of the archive")
    refused(archive(window(), {"x/constants.pkl": b""}), "TorchScript")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("a.npy", b"")
    with pytest.raises(CheckpointError, match=r"a.npz: this is an archive of numpy's"):
        tt.load(tmp_path / "a.npz")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("x/data.pkl", window())
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("x/data.pkl", window())
    refused(out.getvalue(), "stands twice in the directory")
    entry = good.index(b"PK\x01\x02")
    second = good.index(b"PK\x01\x02", entry + 4)
    for at, width, number, match in (
        (42, 4, 7, "does not lie there"),  # where the record lies
        (42, 4, 0xFFFFFFF0, "behind the last"),
        (24, 4, 5000, "compressed"),  # its size
        (8, 2, 1, "encrypted"),
        (28, 2, 0xFFFF, "is no entry"),
        (10, 2, 99, "compressed"),
    ):
        raw = bytearray(good)
        raw[second + at : second + at + width] = number.to_bytes(width, "little")
        refused(bytes(raw), match)
    raw = bytearray(good)
    raw[second + 42 : second + 46] = raw[entry + 42 : entry + 46]
    refused(bytes(raw), "another name where it lies")
    raw = bytearray(good)
    raw[-22 + 8 : -22 + 12] = b"\xff\xff\xff\xff"
    refused(bytes(raw), "entries in")
    raw = bytearray(good)
    raw[second + 20 : second + 28] = (10**6).to_bytes(4, "little") * 2
    refused(bytes(raw), "does not lie there")


def test_records_that_overlap() -> None:
    """Two entries whose bytes are the same: one storage as another's header."""
    content = bytearray(archive(window(), {"x/data/1": b"\0" * 200}))
    with zipfile.ZipFile(io.BytesIO(bytes(content))) as file:
        inner = file.getinfo("x/data/1").header_offset + 30 + len("x/data/1") + 20
    content[inner : inner + 38] = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 24, 24, 8, 0) + b"x/data/0"
    at = bytes(content).index(b"x/data/0", bytes(content).index(b"PK\x01\x02")) - 46
    content[at + 42 : at + 46] = inner.to_bytes(4, "little")
    refused(bytes(content), "overlap")


def test_streams_that_lie() -> None:
    huge = window().replace(b"K\x06tQ", b"\x8a\x06\x00\x00\x00\x00\x00\x10tQ")
    refused(stream(huge.replace(b"\x10tQ", b"\x10NtQ")), "storages are said to have .* bytes, and the whole file has")
    refused(stream(window(), data=(7).to_bytes(8, "little") + b"\0" * 28), "said to have 7 elements")
    refused(stream(window(), data=(6).to_bytes(8, "little") + b"\0" * 23), "bytes are left; the file is torn")
    refused(stream(window(), data=(2**63).to_bytes(8, "little") + b"\0" * 24), "said to have 9223372036854775808 elements")
    refused(stream(window(), data=b""), "torn")
    refused(stream(window(), keys=("0", "0")), "not those that the file has")
    refused(stream(window(), keys=("1",)), "not those that the file has")
    refused(stream(window(), keys=()), "not those that the file has")
    refused(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1002, 2) + pickle.dumps({}, 2), "magic number and version")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\x80\x02}q\x00.", "this is a Python pickle"),
        (b"sys_info" + b"\0" * 504, "tar archive, as torch.save wrote before PyTorch 0.1.10"),
        (b"\x1f\x8b\x08" + b"\0" * 40, "compressed with gzip; gunzip it first"),
        (b"version https://git-lfs.github.com/spec/v1\n", "pointer of git-lfs"),
        (b"<!DOCTYPE html><html>", "page of markup"),
        (b"\x89HDF\r\n\x1a\n" + b"\0" * 40, "HDF5"),
        (b"\x93NUMPY\x01\x00" + b"\0" * 40, "array of numpy's"),
        (b"0123456789abcdef", "this is no checkpoint"),
        (b"abc", "3 bytes hold no checkpoint"),
        (b"", "nothing is left to read"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_other_files_are_told_apart(content: bytes, match: str, tmp_path: Path) -> None:
    refused(content, match)
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"x.pt: "):
        tt.load(tmp_path / "x.pt")


def _fuzz(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.io.fuzz", *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failures" in done.stdout


def test_mutated_files() -> None:
    """A slice of `python -m tests.io.fuzz`."""
    _fuzz("--count", "2500", "--seed", "11", "--jobs", "1")


@pytest.mark.slow
def test_more_mutated_files() -> None:
    _fuzz("--count", "12000", "--seed", "12", "--jobs", "2")


def test_the_watch_sees_code_run(tmp_path: Path) -> None:
    """The fuzzer's own hook: a load that imports or writes would be seen."""
    code = (
        "import tests.io.fuzz as f, sys\nf.confined(); f.watching[0] = True\nfound = []\n"
        "for act in (lambda: __import__('wave'), lambda: open('/dev/null', 'w'), lambda: eval('1+1'), lambda: __import__('os').system('true')):\n"
        "    try: act()\n    except f.RanCode: found.append(1)\n"
        "try: bytearray(1 << 40)\nexcept MemoryError: found.append(1)\n"
        "f.watching[0] = False\nsys.exit(0 if len(found) == 5 else 1)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
