"""Cubin cache: a launch's machine code from this process's memory, an opened pack, the disk, and only then the compiler."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tritensor.cuda.compiler import compile_log
from tritensor.cuda.compiler.arguments import ARITHMETIC, Specialization
from tritensor.cuda.compiler.pack import SUFFIX, Cubin, Pack, decode, encode, write_whole
from tritensor.ground.errors import LaunchError
from tritensor.ground.process import locks
from tritensor.ground.process.ownership import is_foreign_file

FORMAT = "1"  # part of every key: raise it when compile() or what a launcher reads changes
# Settings of Triton that change the machine code and that its own list (below) leaves out.
_ENVIRONMENT = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_LIBDEVICE_PATH", "PTXAS_OPTIONS", "DISABLE_PTXAS_OPT",
                "TRITON_MOCK_PTX_VERSION", "TRITON_DISABLE_LINE_INFO", "TRITON_DEBUG", "TRITON_ENABLE_ASAN", "TRITON_INSTRUMENTATION_MODE")  # fmt: skip
# Settings that ask Triton to run whatever is cached: to dump, to override, to compile anew.
_RECOMPILE_SETTINGS = ("TRITON_ALWAYS_COMPILE", "TRITON_KERNEL_DUMP", "TRITON_KERNEL_OVERRIDE")

_memory: dict[tuple[Specialization, int], Cubin] = {}
_packs: list[Pack] | None = None  # None: not yet looked for
_lock = locks.rlock()
_warned: set[str] = set()
_process = os.urandom(8).hex()


def find_cubin(spec: Specialization, arch: int, op: str = "") -> Cubin:
    """The machine code of a specialization for compute capability `arch` (80, 90, 100).

    Raises LaunchError when the kernel does not compile. A cache that cannot be read or written costs a warning and a compilation.
    """
    held = _memory.get((spec, arch))
    if held is not None:
        return held
    start = time.perf_counter()
    key, meaning = keys(spec, arch)
    found, source = _find_or_compile(key, meaning, spec, arch)
    _memory[spec, arch] = found
    compile_log.record(spec, arch, time.perf_counter() - start, source, op)
    return found


def _find_or_compile(key: bytes, meaning: bytes, spec: Specialization, arch: int) -> tuple[Cubin, str]:
    """The cubin of a key, and where it came from."""
    if not any(os.environ.get(n, "0") not in ("", "0") for n in _RECOMPILE_SETTINGS):
        found = _find_in_packs(key)
        if found is not None:
            return found, "pack"
        found = _find_on_disk(key)
        if found is not None:
            return found, "disk"
        _warn_if_stale(meaning, spec)
    return _compile(key, spec, arch)


def pack_row(spec: Specialization, arch: int) -> tuple[bytes, bytes, bytes]:
    """(key, meaning, encoded kernel) for a pack, compiled where need be. Raises LaunchError."""
    key, meaning = keys(spec, arch)
    return key, meaning, encode(key, _find_or_compile(key, meaning, spec, arch)[0])


def forget() -> None:
    """Drop what this process holds in memory and the packs it opened; the next find_cubin() looks everywhere again."""
    global _packs
    _memory.clear()
    _packs = None


# The key
@cache
def version() -> str:
    """The version of Triton that compiles in this process."""
    import triton

    return triton.__version__


def keys(spec: Specialization, arch: int) -> tuple[bytes, bytes]:
    """(key, meaning): the key covers all that the machine code depends on, the meaning the same without the kernels' sources."""
    from triton._C.libtriton import get_cache_invalidating_env_vars

    kernel = spec.kernel
    name = f"{kernel.fn.__module__}.{kernel.fn.__qualname__}{' with assertions' if kernel.debug else ''}"
    # sorted: Triton's map has no order to count on
    settings = (sorted(get_cache_invalidating_env_vars().items()), [os.environ.get(n, "") for n in _ENVIRONMENT])
    sources: list[str] = [kernel.cache_key]
    constants = [(path, _constant_text(value, sources)) for path, value in spec.constants]
    # Everything after `typed` is a number or an option of the compiler, written with its name.
    options = [(f, getattr(spec, f)) for f in spec._fields[4:]]
    text = repr((FORMAT, version(), arch, ARITHMETIC, settings, name, spec.types, constants, options))
    meaning = hashlib.sha256(text.encode())
    # of the whole text and of sources behind it: a changed helper function is another kernel
    key = hashlib.sha256(text.encode())
    key.update("\0".join(sources).encode())
    return key.digest(), meaning.digest()[:16]


def _constant_text(value: Any, sources: list[str]) -> str:
    """A constant as text that is equal in every process; the sources of functions in it are added to `sources`."""
    if isinstance(value, tuple):
        return f"{type(value).__name__}{getattr(value, '_fields', '')}({', '.join([_constant_text(v, sources) for v in value])})"
    source = getattr(value, "cache_key", None)
    if source is not None:
        sources.append(source)
        return f"function {value.__module__}.{value.__qualname__}"
    text = f"{type(value).__name__} {value!r}"
    if " at 0x" in text:  # an object shown by its address: nothing that another process could know it by
        text += _process
    return text


# Packs
def open_pack(path: str | os.PathLike[str]) -> Pack:
    """Take compiled kernels from a pack that `tritensor precompile` made, from now on in this process.

    Raises LaunchError when the file is missing, torn, no pack, or made by another version of Triton.
    """
    pack = _open_checked(path)
    with _lock:
        _open_packs().insert(0, pack)
    return pack


def _open_checked(path: str | os.PathLike[str]) -> Pack:
    """A pack of this Triton. Raises LaunchError."""
    pack = Pack(path)
    made = pack.about.get("triton")
    if made != version():
        pack.close()
        raise LaunchError(
            f"pack {path}: its kernels were compiled by Triton {made}, this process has Triton {version()}; make it again here: "
            f"tritensor precompile --arch {','.join(f'sm_{a}' for a in pack.about.get('archs', ())) or 'sm_90'} --out {path}"
        )
    return pack


def packs() -> tuple[Pack, ...]:
    """The open packs, in the order they are asked."""
    return tuple(_open_packs())


def _open_packs() -> list[Pack]:
    """The open packs: TRITENSOR_PACK (paths with ':' between them) and the packs folder of the cache are opened at the first use."""
    global _packs
    if _packs is None:
        with _lock:
            if _packs is None:
                _packs = [*_packs_in_variable(), *_packs_in_cache()]
    return _packs


def _packs_in_variable() -> Iterator[Pack]:
    for path in os.environ.get("TRITENSOR_PACK", "").split(os.pathsep):
        if path:
            try:
                yield _open_checked(path)
            except LaunchError as error:
                _warn(f"TRITENSOR_PACK: {error}; kernels are compiled instead")


def _packs_in_cache() -> Iterator[Pack]:
    root = cache_folder()
    for path in sorted((root / "packs").glob(f"*{SUFFIX}")) if root is not None else ():
        try:
            pack = Pack(path)
        except LaunchError as error:
            _warn(f"{error}; it is left out")
            continue
        if pack.about.get("triton") == version():
            yield pack
        else:  # a folder may hold packs for several versions: no mistake, and doctor lists them
            pack.close()


def _find_in_packs(key: bytes) -> Cubin | None:
    for pack in _open_packs():
        blob = pack.get(key)
        if blob is None:
            continue
        try:
            return decode(key, blob)
        except ValueError as error:
            _warn(f"pack {pack.path}: a kernel in it cannot be used: {error}; it is compiled instead. Make the pack again")
    return None


def _warn_if_stale(meaning: bytes, spec: Specialization) -> None:
    """Say once per pack that it holds this very kernel made from another source."""
    for pack in _open_packs():
        if str(pack.path) not in _warned and pack.means(meaning):
            _warned.add(str(pack.path))
            _warn(
                f"pack {pack.path}: {spec.kernel.__name__} and perhaps others changed since it was made (tritensor {pack.about.get('tritensor')}); "
                "changed kernels are compiled instead. Make it again with `tritensor precompile`"
            )


# The disk
def cache_folder() -> Path | None:
    """The folder of tritensor's caches: TRITENSOR_CACHE, or ~/.cache/tritensor; None where TRITENSOR_CACHE is empty: keep nothing."""
    asked = os.environ.get("TRITENSOR_CACHE")
    if asked is not None:
        return Path(asked).expanduser() if asked.strip() else None
    try:
        return Path.home() / ".cache" / "tritensor"
    except RuntimeError:  # a user without a home directory
        return None


def cache_file(key: bytes) -> Path | None:
    """Where the disk cache keeps the kernel of a key; None where nothing is kept."""
    root = cache_folder()
    if root is None:
        return None
    text = key.hex()
    return root / "cubins" / f"triton-{version()}" / text[:2] / f"{text[2:]}.ttcubin"


def _find_on_disk(key: bytes) -> Cubin | None:
    path = cache_file(key)
    if path is None:
        return None
    if "TRITENSOR_CACHE" not in os.environ and (why := is_foreign_file(path)):
        _warn_once("foreign", f"cache {path}: {why}; kernels are compiled. Remove it, or set TRITENSOR_CACHE to a folder that you trust")
        return None
    try:
        blob = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        what = f"cache {path}: {error.strerror or error}; kernels are compiled"
        _warn_once("read", f"{what}. Mend the permissions, or set TRITENSOR_CACHE to a folder of yours")
        return None
    try:
        return decode(key, blob)
    except ValueError as error:
        _warn(f"cache {path}: {error}; the kernel is compiled again and the file replaced")
        return None


def _compile(key: bytes, spec: Specialization, arch: int) -> tuple[Cubin, str]:
    """Compile (or take what Triton's own disk cache has), and keep the result on disk."""
    from tritensor.cuda.compiler.compile import compile

    with compile_log.triton_listener() as hits:
        cubin = Cubin.of(compile(spec, arch), arch)
    path = cache_file(key)
    if path is not None:
        try:
            write_whole(path, encode(key, cubin))
        except OSError as error:
            _warn_once(
                "write",
                f"cache {path.parent}: {error.strerror or error}; compiled kernels are not kept. Free space, mend the permissions, "
                "or set TRITENSOR_CACHE to a folder of yours (empty: keep nothing)",
            )
    return cubin, "triton" if hits and all(hits) else "compiled"


def _warn_once(about: str, text: str) -> None:
    if about not in _warned:
        _warned.add(about)
        _warn(text)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=3)
