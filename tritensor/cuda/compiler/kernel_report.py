"""Report of a compiled kernel, read off its machine code: registers, spills, shared memory, access widths, tensor cores."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import triton
from triton.backends.nvidia.compiler import get_ptxas
from triton.runtime.cache import get_cache_manager

from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.compiler.compile import compile, describe
from tritensor.cuda.compiler.sass import Loop, read
from tritensor.ground.errors import LaunchError


@dataclass
class Report:
    """What one compiled kernel uses.

    `registers` of a thread and `stack` (bytes) are read off the cubin, `spilled` bytes off the assembler's log. `shared` is bytes of
    a block, `warps` the warps of a block, `tensor_memory` columns of it (sm_100). `loads` and `stores` count the accesses to global
    memory by width in bits, `instructions` what there is in all, `loop` those of the hot loop and `loop_loads` its loads: all in the
    machine code (see sass.py, `loops`, `longest` and `wide` too). `tensor` are tensor-core instructions, `bulk` TMA copies and
    cp.async by width, in PTX.
    """

    kernel: str
    arch: int
    registers: int
    stack: int
    spilled: int
    shared: int
    warps: int
    tensor_memory: int
    loads: dict[str, int] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)
    tensor: dict[str, int] = field(default_factory=dict)
    bulk: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    loop: int = 0
    loop_loads: dict[str, int] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    longest: int = 0
    wide: int = 0

    def __post_init__(self) -> None:
        self.loops = [Loop(*one) for one in self.loops]  # plain lists where they were read from the cache


def report(spec: Specialization, arch: int) -> Report:
    """Compile and read the result; kept beside the kernel in Triton's disk cache. Raises LaunchError when it does not compile."""
    compiled = compile(spec, arch)
    cache = get_cache_manager(compiled.hash)
    name = "tritensor-7.json"  # raised whenever Report gets another field
    kept = cache.get_file(name)
    if kept is not None:
        return Report(**json.loads(Path(kept).read_text()))
    registers, stack = resources(compiled.asm["cubin"])
    spilled = _spilled(compiled.asm["ptx"], arch) if stack else 0
    found = compiled.metadata  # num_warps with those that Triton added to specialize warps
    tensor_memory = getattr(found, "tmem_size", None) or 0
    made = Report(
        describe(spec),
        arch,
        registers,
        stack,
        spilled,
        found.shared,
        found.num_warps,
        tensor_memory,
        **asdict(read(compiled.asm["cubin"], arch)),
    )
    _count_ptx(compiled.asm["ptx"], made)
    cache.put(json.dumps(asdict(made)), name, binary=False)
    return made


_PTX_TENSOR = re.compile(r"\b(wgmma\.mma_async|mma\.sync|tcgen05\.mma)")
_PTX_BULK = re.compile(r"\b(cp\.async\.bulk\.tensor)|\bcp\.async\.c[ag]\.shared\.global[^;]*?\],\s*\[[^]]*\],\s*(0x[0-9a-f]+|\d+)")


def _count_ptx(text: str, made: Report) -> None:
    for name in _PTX_TENSOR.findall(text):
        _count(made.tensor, name)
    for name, size in _PTX_BULK.findall(text):
        _count(made.bulk, name or f"cp.async {8 * int(size, 0)}")


def _count(table: dict[str, int], key: str) -> None:
    table[key] = table.get(key, 0) + 1


def disassemble(cubin: bytes) -> str:
    """The machine code of a cubin as text."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return _tool(_BIN / "cuobjdump", "-sass", file.name)


def resources(cubin: bytes) -> tuple[int, int]:
    """Registers of a thread and bytes of its stack frame, off the .nv.info section of a cubin (an ELF file) with one kernel."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]  # name, type, flags, address, offset, bytes
    registers = stack = 0
    for section in sections:
        at = sections[names][4] + section[0]
        if cubin[at : cubin.index(b"\0", at)] != b".nv.info":
            continue
        at, end = section[4], section[4] + section[5]
        while at + 4 <= end:
            form, attribute, length = struct.unpack_from("<BBH", cubin, at)
            at += 4
            if form != 4:  # the value is in `length` itself
                continue
            if attribute in (0x2F, 0x11):  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE: (symbol, value)
                value = struct.unpack_from("<II", cubin, at)[1]
                registers, stack = (max(registers, value), stack) if attribute == 0x2F else (registers, max(stack, value))
            at += length
    return registers, stack


def _spilled(ptx: str, arch: int) -> int:
    """Bytes of registers spilled (stores), from the assembler's own log: a stack frame alone may be a library function's table."""
    target = re.search(r"\.target (sm_\w+)", ptx)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        log = _tool(Path(get_ptxas(arch).path), "-v", f"--gpu-name={target[1] if target else f'sm_{arch}'}", file.name, "-o", "/dev/null")
    return sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", log))


_BIN = Path(triton.__file__).parent / "backends/nvidia/bin"  # the CUDA tools that come in Triton's wheel


def _tool(path: Path, *args: str) -> str:
    """Both outputs of one of those tools."""
    done = subprocess.run([path, *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LaunchError(f"{path.name} failed ({done.returncode}): {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout + done.stderr
