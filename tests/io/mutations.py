"""Mutations of checkpoint files: of bytes, of JSON headers, of zip directories, of opcodes. Each follows from a generator alone."""

from __future__ import annotations

import io
import json
import pickletools
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

NUMBERS = [0, 1, 2, 3, 63, 64, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
# Fragments of pickles that no checkpoint has: code, lies about lengths, bombs.
HOSTILE = [
    b"cos\nsystem\nX\x02\x00\x00\x00ls\x85R", b"cposix\nsystem\n(X\x02\x00\x00\x00lstR", b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R", b"c__builtin__\nexec\n",
    b"cbuiltins\ngetattr\n", b"csubprocess\nPopen\n", b"ctritensor\nload\n", b"ctritensor.io.torch_format.trusted\nread\n", b"\x8c\x02os\x8c\x06system\x93",
    b"(X\x02\x00\x00\x00idios\nsystem\n", b"(cos\nsystem\nX\x02\x00\x00\x00lso", b"\x8b\xff\xff\xff\x7f", b"\x8b\x00\x00\x00\x80", b"\x8d" + b"\xff" * 8,
    b"\x8e" + b"\x00" * 7 + b"\x10", b"\x96" + b"\xff\xff\xff\x7f" + b"\0" * 4, b"X\xff\xff\xff\xff", b"B\xff\xff\xff\x7f", b"r\xff\xff\xff\xff", b"j\xff\xff\xff\xff",
    b"\x95" + b"\xff" * 8, b"(" * 2000, b"]" * 3000, b"}" * 2000, b"\x8f" * 1000, b"2" * 500, b"2\x86" * 400, b"\x85" * 3000, b"Q", b"R", b"b", b"\x81", b"\x92", b"s",
    b"u", b"a", b"e", b"\x90", b"\x91", b"t", b"0", b"1", b".", b"h\x00", b"h\x03", b"q\x00", b"\x94", b"K\xff", b"J\xff\xff\xff\xff", b"\x8a\x08" + b"\xff" * 7 + b"\x7f",
    b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R", b"cbuiltins\nbytearray\n\x8a\x05\x00\x00\x00\x00\x40\x85R", b"}X\x09\x00\x00\x00__class__K\x01sb",
    b"}X\x05\x00\x00\x00itemsK\x01sb", b"ctorch\nFloatStorage\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._utils\n_rebuild_qtensor\n", b"ctorch\nbool\n",
    b"cnumpy\ndtype\nX\x01\x00\x00\x00O\x89\x88\x87R", b"cnumpy.core.multiarray\n_reconstruct\n", b"I999999999999\n", b"L9" + b"9" * 300 + b"L\n", b"P0\n", b"\x82\x01", b"\x97", b"\x98",
]  # fmt: skip


def bytes_changed(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Flipped bits, other bytes, pieces cut out, doubled, moved or taken from another file, a torn end."""
    raw = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        if not raw:
            break
        at, how = rng.randrange(len(raw)), rng.randrange(9)
        n = min(rng.choice((1, 2, 4, 8, 16, 64, 300)), len(raw) - at)
        if how <= 1:
            raw[at] ^= 1 << rng.randrange(8)
        elif how == 2:
            raw[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif how == 3:
            width = rng.choice((2, 4, 8))
            raw[at : at + width] = (rng.choice(NUMBERS) % 256**width).to_bytes(width, "little")
        elif how == 4:
            del raw[at : at + n]
        elif how == 5:
            raw[at:at] = raw[at : at + n]
        elif how == 6:
            del raw[at:]
        elif how == 7:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            raw[at : at + n] = other[start : start + rng.choice((1, 4, 16, 64, 300))]
        else:
            raw[at:at] = rng.choice(HOSTILE)
    return bytes(raw)


def header_changed(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A safetensors file whose header says something else."""
    n = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + n])
    metadata = header.get("__metadata__", {})
    if "tritensor" in metadata and rng.random() < 0.5:
        metadata["tritensor"] = json.dumps(_tree_changed(json.loads(metadata["tritensor"]), rng))
    else:
        header = _tree_changed(header, rng)
    text = json.dumps(header).encode()
    length = len(text) if rng.random() < 0.9 else rng.choice(NUMBERS)
    return length.to_bytes(8, "little") + text + content[8 + n :]


def _tree_changed(x: Any, rng: random.Random) -> Any:
    if isinstance(x, dict | list) and x and rng.random() < 0.8:
        at: Any = rng.choice(list(x) if isinstance(x, dict) else range(len(x)))
        out = x.copy()
        how = rng.randrange(6)
        if how == 0:
            del out[at]
        elif how == 1 and isinstance(out, list):
            out.insert(at, rng.choice(x))
        else:
            out[at] = _tree_changed(x[at], rng)
        return out
    scraps = [
        "",
        "F32",
        "BF16",
        "at",
        "tensor",
        "tuple",
        "dict",
        "numpy",
        [],
        {},
        [[]],
        {"at": 0},
        None,
        True,
        -1,
        0.5,
        [1, 2],
        2**70,
        "x" * 50,
        *NUMBERS,
    ]
    return rng.choice(scraps)


def ops_of(pickle: bytes) -> list[bytes]:
    """A pickle cut into its opcodes with their arguments."""
    places = [at for _, _, at in pickletools.genops(io.BytesIO(pickle))]
    end = pickletools_end(pickle)
    return [pickle[a:b] for a, b in zip(places, [*places[1:], end], strict=True)]


def pickletools_end(pickle: bytes) -> int:
    stream = io.BytesIO(pickle)
    for _ in pickletools.genops(stream):
        pass
    return stream.tell()


def pickle_changed(pickle: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Opcodes left out, doubled, exchanged, with other arguments, with others between."""
    ops = ops_of(pickle)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at, how = rng.randrange(len(ops)), rng.randrange(7)
        if how == 0 and len(ops) > 1:
            del ops[at]
        elif how == 1:
            ops.insert(at, rng.choice(ops))
        elif how == 2:
            other = rng.randrange(len(ops))
            ops[at], ops[other] = ops[other], ops[at]
        elif how in (3, 4):
            ops.insert(at, rng.choice(HOSTILE))
        elif how == 5 and len(ops[at]) > 1:
            raw = bytearray(ops[at])
            raw[rng.randrange(1, len(raw))] = rng.choice((0, 1, 2, 64, 127, 128, 255))
            ops[at] = bytes(raw)
        else:  # an integer is another one
            ops[at] = rng.choice(
                (
                    b"K\x00",
                    b"K\x01",
                    b"K\x40",
                    b"J\xff\xff\xff\xff",
                    b"J\xff\xff\xff\x7f",
                    b"\x8a\x08" + b"\xff" * 7 + b"\x7f",
                    b"N",
                    b")",
                    b"\x88",
                )
            )
    return b"".join(ops)


def archive_changed(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """An archive whose pickle is another one, whose records are changed, or whose directory lies."""
    how = rng.randrange(4)
    if how == 0:
        return _directory_changed(content, rng)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        records = [(i.filename, archive.read(i)) for i in archive.infolist()]
    at = next(i for i, (name, _) in enumerate(records) if name.endswith("data.pkl"))
    if how in (1, 2):
        records[at] = (records[at][0], pickle_changed(records[at][1], rng, others))
    else:
        _records_changed(records, rng)
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if rng.random() < 0.05 else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, data in records:
            archive.writestr(name, data)
    return out.getvalue()


def _records_changed(records: list[tuple[str, bytes]], rng: random.Random) -> None:
    at, how = rng.randrange(len(records)), rng.randrange(6)
    name, data = records[at]
    if how == 0:
        del records[at]
    elif how == 1:
        records[at] = (name, data[: rng.randrange(len(data) + 1)])
    elif how == 2:
        records[at] = (name, rng.choice((b"", b"big", b"0", b"-1", b"9" * 30, data * 3)))
    elif how == 3:
        records[at] = (rng.choice(("../../x", "/etc/x", "a\\b", "data.pkl", "x/data.pkl", name + "\0", "data/0", "x/constants.pkl")), data)
    elif how == 4:
        rng.shuffle(records)
    else:
        records[at] = (name, bytes_changed(data, rng, [data or b"x"]) if data else b"x")


def _directory_changed(content: bytes, rng: random.Random) -> bytes:
    """A field of a header, of a directory's entry or of an end record is another number."""
    raw = bytearray(content)
    marks = []
    for mark, size in (
        (b"PK\x03\x04", 30),
        (b"PK\x01\x02", 46),
        (b"PK\x05\x06", 22),
        (b"PK\x06\x06", 56),
        (b"PK\x06\x07", 20),
        (b"PK\x07\x08", 16),
    ):
        at = raw.find(mark)
        while at >= 0:
            marks.append((at, size))
            at = raw.find(mark, at + 1)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, size = rng.choice(marks)
        width = rng.choice((1, 2, 2, 4, 4, 8))
        place = at + rng.randrange(4, max(size - width, 5))
        number = rng.choice([*NUMBERS, len(content), rng.randrange(len(content))])
        if rng.random() < 0.3:
            number = max(struct.unpack_from("<H", raw, place)[0] + rng.choice((-2, -1, 1, 2)), 0) if place + 2 <= len(raw) else 0
        raw[place : place + width] = (number % 256**width).to_bytes(width, "little")
    return bytes(raw)


def stream_changed(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A file of pickles (before PyTorch 1.6) in which one of them is another one, or a length of a storage lies."""
    parts, at = [], 0
    for _ in range(5):
        end = at + pickletools_end(content[at:])
        parts.append(content[at:end])
        at = end
    which = rng.choice((0, 1, 2, 3, 3, 3, 3, 3, 4, 4, 5))
    rest = content[at:]
    if which < 5:
        parts[which] = pickle_changed(parts[which], rng, others)
    elif len(rest) >= 8:
        rest = rng.choice(NUMBERS).to_bytes(8, "little") + rest[8:]
    return b"".join(parts) + rest


Mutation = Callable[[bytes, random.Random, list[bytes]], bytes]
OWN: dict[str, Mutation] = {"safetensors": header_changed, "zip": archive_changed, "legacy": stream_changed}


def mutated(kind: str, content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A file of a kind, changed: two in three times by what is known of its kind, sometimes both ways."""
    turn = rng.random()
    if turn < 0.65:
        content = OWN[kind](content, rng, others)
    if (turn > 0.6 and content) or turn > 0.65:
        content = bytes_changed(content, rng, others)
    return content
