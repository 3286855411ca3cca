"""tl.inline_asm_elementwise on the emulated device: straight-line PTX over 32-bit and 64-bit registers, evaluated with numpy.

There are no jumps, only predicates. An instruction that is not here is named. Approximate ones (`ex2.approx`) are computed exactly and rounded once.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tritensor.cuda.emulator.instructions.arithmetic import fma, quotient, to_integer, umulhi
from tritensor.cuda.emulator.instructions.libdevice import stand_in

_TYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "pred": np.bool_,
    **{f"{mark}{bits}": f"{kind}{bits // 8}" for mark, kind in (("s", "i"), ("u", "u"), ("b", "u")) for bits in (8, 16, 32, 64)},
}  # fmt: skip
_PAIRS = {"f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16}  # two values in one register


def _in_float64(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *given: function(*(x.astype(np.float64) for x in given)).astype(given[0].dtype)


def _shift(function: Callable[..., np.ndarray]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A shift by up to the width of the type and beyond: zeros, or copies of the sign."""

    def shifted(x: np.ndarray, by: np.ndarray) -> np.ndarray:
        width = 8 * x.dtype.itemsize
        inside = function(x, np.minimum(by, width - 1).astype(x.dtype))
        return np.where(by >= width, np.where(x < 0, -1, 0) if function is np.right_shift else 0, inside).astype(x.dtype)

    return shifted


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x / y if x.dtype.kind in "fV" else quotient(x, y)


def _high(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The high half of a product, signed where x is."""
    return umulhi(x, y) - (np.where(x < 0, y, 0) + np.where(y < 0, x, 0)).astype(x.dtype)


def _logic(x: np.ndarray, y: np.ndarray, z: np.ndarray, table: np.ndarray) -> np.ndarray:
    """lop3: any function of three bits, given as a table of its eight results."""
    found = np.zeros_like(x)
    for row in range(8):
        chosen = [v if row >> place & 1 else ~v for v, place in ((x, 2), (y, 1), (z, 0))]
        found |= np.where(table >> row & 1, chosen[0] & chosen[1] & chosen[2], 0).astype(x.dtype)
    return found


def _bytes(x: np.ndarray, y: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """prmt: four of eight bytes."""
    return stand_in("__nv_byte_perm", [x, y, selector]).view(np.uint32)


# By name without its type and roundings; values come in the instruction's type.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "mov": lambda x: x, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "fma": fma,
    "mad": lambda x, y, z: x * y + z, "neg": np.negative, "abs": np.abs, "min": np.fmin, "max": np.fmax, "rem": np.fmod,
    "rcp": _in_float64(lambda x: 1 / x), "sqrt": _in_float64(np.sqrt), "rsqrt": _in_float64(lambda x: 1 / np.sqrt(x)),
    "sin": _in_float64(np.sin), "cos": _in_float64(np.cos), "tanh": _in_float64(np.tanh), "ex2": _in_float64(np.exp2), "lg2": _in_float64(np.log2),
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "shl": _shift(np.left_shift), "shr": _shift(np.right_shift),
    "popc": lambda x: np.bitwise_count(x).astype(np.uint32), "mul.hi": _high, "lop3": _logic, "prmt": _bytes,
}  # fmt: skip
_COMPARED: dict[str, Callable[..., np.ndarray]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_ROUNDED: dict[str, Callable[..., np.ndarray]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_SILENT = frozenset({"approx", "ftz", "rn", "full", "lo", "rna"})  # words that change no more than the last bits of a result


class _Instruction(NamedTuple):
    """`@guard name.words type operands`. `types` are those at the end of its name: one, or for cvt to and from."""

    text: str
    guard: str
    name: str
    words: list[str]
    types: list[str]
    operands: list[str]


def _parse(text: str) -> list[_Instruction]:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found = []
    # Braces stand around a scope, or around the parts of a register: those have a comma or nothing but a name between them.
    text = re.sub(r"\{([^;{}]*)\}", lambda m: "<" + m[1].replace(",", "|") + ">", text)
    for statement in text.replace("{", ";").replace("}", ";").split(";"):
        statement = statement.strip()
        if not statement or statement.startswith(".reg"):
            continue
        match = re.fullmatch(r"(?:@(!?\s*[\w%$]+)\s+)?([a-z][\w.:]*)\s+(.*)", statement, flags=re.DOTALL)
        if match is None:
            raise NotImplementedError(f"inline PTX on the emulated device: {statement!r} is no instruction that it reads")
        guard, name, rest = match.groups()
        parts = name.split(".")
        types = [p for p in parts[1:] if p in _TYPES or p in _PAIRS]
        words = [p for p in parts[1:] if p not in types and p not in _SILENT]
        found.append(_Instruction(statement, (guard or "").replace(" ", ""), parts[0], words, types, [o.strip() for o in rest.split(",")]))
    return found


def _immediate(word: str, kind: np.dtype) -> np.ndarray | None:
    """A number as PTX writes it: 20., 0f3F800000, 0x1f, -3. A float where bits are asked for gives its bits."""
    for mark, form, bits in (("f", ">f", "u4"), ("d", ">d", "u8")):
        if match := re.fullmatch(rf"0[{mark}{mark.upper()}]([0-9a-fA-F]{{{2 * int(bits[1])}}})", word):
            value = np.asarray(struct.unpack(form, bytes.fromhex(match[1]))[0], bits.replace("u", "f"))
            return value.astype(kind) if kind.kind in "fV" else value.view(bits).astype(kind)
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", word):
        whole = int(word.rstrip("U"), 0)
        return (
            np.asarray(whole, kind) if kind.kind in "fV" else np.asarray(whole % (1 << 8 * kind.itemsize), f"u{kind.itemsize}").view(kind)
        )
    return np.asarray(float(word), kind) if re.fullmatch(r"-?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?", word) else None


class _Machine:
    """Registers by name, each an array of unsigned integers (predicates of bools), a value for each group of elements."""

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self.registers: dict[str, np.ndarray] = {}

    def read(self, word: str, type: str) -> np.ndarray:
        pair = _PAIRS.get(type)
        kind = np.dtype(np.uint32 if pair is not None else _TYPES[type])
        value = _immediate(word, kind)
        if value is not None:
            return np.broadcast_to(value, self.groups)
        if word.startswith("<"):  # parts of a register, the low one first
            parts = [self.read(p.strip(), f"b{8 * kind.itemsize // (word.count('|') + 1)}") for p in word[1:-1].split("|")]
            return np.ascontiguousarray(np.stack(parts, -1)).view(kind)[:, 0]
        negated = word.startswith("!")
        held = self.registers.get(word.lstrip("!"))
        if held is None:
            raise NameError(f"inline PTX: the register {word} is read before anything is written to it")
        if kind == np.bool_:
            return ~held if negated else held
        if held.dtype.itemsize != kind.itemsize:  # the low bits of a wider register; a narrower one counts as padded with zeros
            held = held.astype(f"u{kind.itemsize}")
        value = held.view(kind)
        return value if pair is None else np.ascontiguousarray(value).view(pair).reshape(self.groups, 2)

    def write(self, word: str, value: np.ndarray, guard: str) -> None:
        if word.startswith("<"):
            names = [p.strip() for p in word[1:-1].split("|")]
            parts = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize // len(names)}").reshape(self.groups, len(names))
            for i, name in enumerate(names):
                self.write(name, np.ascontiguousarray(parts[:, i]), guard)
            return
        value = np.ascontiguousarray(np.broadcast_to(value, (self.groups, *value.shape[1:])))
        if value.ndim == 2:
            value = value.view(np.uint32)[:, 0]
        bits = value if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")
        if guard and word in self.registers:
            bits = np.where(self.read(guard, "pred"), bits, self.registers[word].astype(bits.dtype))
        self.registers[word] = bits

    def run(self, one: _Instruction) -> None:
        self.write(one.operands[0], self._value(one, one.operands[1:], one.types[0] if one.types else "pred"), one.guard)

    def _value(self, one: _Instruction, operands: list[str], kind: str) -> np.ndarray:
        """What an instruction gives for its operands."""
        compared = one.words[0].rstrip("u") if one.words else ""
        if one.name == "setp" and len(one.words) == 1 and compared in _COMPARED:
            x, y = (self.read(o, kind) for o in operands)
            found, nan = _COMPARED[compared](x, y), (x != x) | (y != y)
            return (found | nan if one.words[0] != compared else found & ~nan).astype(np.bool_)
        if one.name == "selp":
            return np.where(self.read(operands[2], "pred"), *(self.read(o, kind) for o in operands[:2])).astype(_TYPES[kind])
        if one.name == "cvt" and not set(one.words) - set(_ROUNDED) - {"sat", "satfinite", "tf32"}:
            return self._convert(one, operands)
        words = ".".join((one.name, *one.words))
        if words in ("mul.wide", "mad.wide"):
            wide = f"{kind[0]}{2 * int(kind[1:])}"
            x, y = (self.read(o, kind).astype(_TYPES[wide]) for o in operands[:2])
            return x * y + (self.read(operands[2], wide) if len(operands) > 2 else x.dtype.type(0))
        function = _FUNCTIONS.get(words)
        if function is None:
            raise NotImplementedError(
                f"inline PTX on the emulated device: {one.text!r} is not known there; give the kernel another way for it, or add it to "
                "tritensor/cuda/emulator/instructions/inline_ptx.py"
            )
        given = [self.read(o, "u32" if i and one.name in ("shl", "shr") else kind) for i, o in enumerate(operands)]
        found = np.asarray(function(*given))
        return found if one.name == "popc" else found.astype(given[0].dtype)

    def _convert(self, one: _Instruction, operands: list[str]) -> np.ndarray:
        to, of = one.types[0], one.types[-1]
        if "tf32" in one.words:  # 10 bits of mantissa, to nearest, halves away from zero
            bits = self.read(operands[0], "b32")
            return (bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)
        if to in _PAIRS:  # the first operand is the high half
            high, low = (self.read(o, of).astype(_PAIRS[to]) for o in operands)
            return np.stack([low, high], -1)
        x, wanted = self.read(operands[0], of), np.dtype(_TYPES[to])
        if x.dtype.kind in "fV" and wanted.kind in "iu":
            rounding = next((_ROUNDED[w] for w in one.words if w in _ROUNDED), np.trunc)
            return to_integer(rounding(x.astype(np.float64)), wanted, x.dtype)
        for word in one.words:
            x = _ROUNDED[word](x) if word in _ROUNDED else np.clip(np.nan_to_num(x), 0, 1) if word == "sat" and x.dtype.kind in "fV" else x
        return x.astype(wanted)


def _registers(values: np.ndarray, groups: int, pack: int) -> list[np.ndarray]:
    """The registers that hold an argument: `pack` elements for each group, those of fewer than 32 bits side by side in 32."""
    flat = np.ascontiguousarray(values).reshape(groups, pack)
    size = flat.dtype.itemsize
    raw = flat.view(f"u{size}")
    if size < 4:
        room = -(-pack * size // 4) * 4 // size
        raw = np.ascontiguousarray(np.pad(raw, ((0, 0), (0, room - pack)))).view(np.uint32)
    return [np.ascontiguousarray(raw[:, i]) for i in range(raw.shape[1])]


def evaluate(text: str, constraints: str, arguments: list[np.ndarray], results: list[np.dtype], pack: int) -> list[np.ndarray]:
    """What inline PTX makes of arrays of one shape: an array for each type of `results`."""
    shape = np.broadcast_shapes(*(a.shape for a in arguments)) if arguments else (1,)
    count = int(np.prod(shape, dtype=np.int64))
    if count % pack:
        raise ValueError(f"inline PTX: blocks of {count} elements are no multiple of pack={pack}")
    groups = count // pack
    machine = _Machine(groups)
    given = [r for a in arguments for r in _registers(np.broadcast_to(a, shape), groups, pack)]
    outputs = [n for n, c in enumerate(constraints.split(",")) if c.strip().startswith("=")]
    for n, register in enumerate(given):
        machine.registers[f"${len(outputs) + n}"] = register
    for one in _parse(text.replace("$$", "%dollar")):
        machine.run(one)
    made, at = [], 0
    for kind in results:
        each = pack if kind.itemsize >= 4 else -(-pack * kind.itemsize // 4)
        raw = np.stack([machine.read(f"${outputs[at + i]}", f"b{8 * max(4, kind.itemsize)}") for i in range(each)], -1)
        at += each
        values = np.ascontiguousarray(raw).view(kind if kind != np.bool_ else np.uint8).reshape(groups, -1)[:, :pack]
        made.append(values.reshape(shape).astype(kind, copy=False))
    return made
