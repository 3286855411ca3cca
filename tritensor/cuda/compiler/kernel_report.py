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
from tritensor.cuda.compiler.sass import Loop, MachineCode, read, sections
from tritensor.ground.errors import LaunchError


@dataclass
class Report(MachineCode):
    """What one compiled kernel uses: its machine code, and this.

    `registers` of a thread and `stack` (bytes) are read off the cubin, `spilled` bytes off the assembler's log. `shared` is bytes of
    a block, `warps` the warps of a block, `tensor_memory` columns of it (sm_100). `tensor` are tensor-core instructions, `bulk` TMA copies and
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
    tensor: dict[str, int] = field(default_factory=dict)
    bulk: dict[str, int] = field(default_factory=dict)

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
    # without a stack frame nothing can be spilled, and the assembler need not run again
    spilled = _spilled_bytes(compiled.asm["ptx"], arch) if stack else 0
    found = compiled.metadata  # num_warps with those that Triton added to specialize warps
    tensor_memory = getattr(found, "tmem_size", None) or 0
    code = asdict(read(compiled.asm["cubin"], arch))
    made = Report(describe(spec), arch, registers, stack, spilled, found.shared, found.num_warps, tensor_memory, **code)
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
    registers = stack = 0
    for name, table in sections(cubin):
        at = 0
        while name == b".nv.info" and at + 4 <= len(table):
            form, attribute, length = struct.unpack_from("<BBH", table, at)
            at += 4
            if form != 4:  # the value is in `length` itself
                continue
            if attribute in (0x2F, 0x11):  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE: (symbol, value)
                value = struct.unpack_from("<II", table, at)[1]
                registers, stack = (max(registers, value), stack) if attribute == 0x2F else (registers, max(stack, value))
            at += length
    return registers, stack


def _spilled_bytes(ptx: str, arch: int) -> int:
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
