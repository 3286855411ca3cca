"""The house's own rules: floors, captions, names, lengths, what leaves through the front door, what may be imported."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.source_facts import PACKAGE, ROOT, facts, relative, sources, text

WINGS = ("kernels", "autograd", "nn", "optim")  # stand at the top, linked into the package

# Imports go down only, inside functions as well as at the top of a file. An entry stands for a file, or for all files below a folder
# that no longer entry names; a folder's own name with `/__init__` stands for its public names, which gather what lies below them.
FLOORS = [
    ("ground", "llvm"),
    ("random",),
    ("cuda",),
    ("ops",),
    ("autograd",),
    ("dispatch",),
    ("tensor",),
    ("triton_kernels", "array_api", "fft", "linalg", "masked", "special"),  # namespaces over the functions of the tensor floor
    ("kernels",),
    ("fusion",),
    ("lazy_evaluation",),
    ("nn",),
    ("optim",),
    ("compilation",),
    ("func",),
    ("multiprocessing",),
    ("data", "io", "distributed", "distributions", "models"),
    ("profiler",),
    ("torch_dispatch",),  # which watches calls by the profiler's means
    ("amp", "utils", "debug", "testing", "signal", "viz", "vision", "audio", "onnx", "hub"),
    ("training",),
    ("torch_compat",),
    ("tools",),
    ("__init__",),
]
MODULES_BY_NAME = {"torch_compat", "tools", "__init__"}  # stand above all that they import by a computed name
HEIGHT = {name: i for i, names in enumerate(FLOORS) for name in names}

LONG_FILES: dict[str, str] = {}  # path: why one file is right
LONG_FUNCTIONS: dict[str, str] = {}  # path:function: why one function is right
FILE_LINES = 450
FOLDER_FILES = 16
COLUMNS = 160  # the formatter breaks code at 140; an error message may be longer
FUNCTION_LINES = 60  # the lines of the code itself; docstring and comments not counted
QUESTIONS = {"What", "How", "Which", "Where", "Who", "When", "Whether", "Whose"}  # a caption that begins so says its noun last
RUNTIME = {"triton", "numpy", "ml_dtypes", "cuda", "tritensor"}
# Optional extras: imported inside the function that offers them, never at the top of a file.
EXTRAS = {
    "pytest",
    "opt_einsum",
    "tqdm",
    "matplotlib",
    "sklearn",
    "scipy",
    "PIL",
    "onnx",
    "IPython",
    "mpi4py",
    "nccl",
    "torch",
    "packaging",
}


def everywhere() -> list[Path]:
    """Every Python file of the repository: tests, benches and examples as well."""
    rooms = [*WINGS, "tritensor", "tests", "bench", "examples", "docs"]
    return [p for room in rooms for p in (ROOT / room).rglob("*.py")]


def module_of(path: Path) -> str:
    """The dotted name of a source file: tritensor.cuda.launch; a package's is that of its folder."""
    return "tritensor." + relative(path).removesuffix(".py").replace("/", ".")


def floor_of(name: str) -> str | None:
    """The entry of FLOORS that a file stands under: the longest that its path (without .py) begins with."""
    parts = name.split("/")
    found = ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((f for f in found if f in HEIGHT), None)


@functools.cache
def imported_files(path: Path) -> list[tuple[str, int]]:
    """(file without .py, line) of everything of tritensor that a file imports, anywhere in it."""
    found = []
    for module, name, line, _ in facts(path).imports:
        if module.split(".")[0] != "tritensor":
            continue
        below = module.split(".")[1:] + ([name] if name else [])
        options = ["/".join(below), "/".join([*below, "__init__"]), "/".join(below[:-1]), "/".join([*below[:-1], "__init__"])]
        found += [(o, line) for o in options if o in NAMES][:1] or [("/".join(below), line)]
    return found


SOURCES = sources()
NAMES = {relative(p).removesuffix(".py") for p in SOURCES} | {"tensor/methods"}
STUBS = {"tensor/methods"}  # stubs without a file behind them


def none(broken: Iterator[str]) -> None:
    """A rule holds in every file, or all the places where it does not are listed."""
    found = list(broken)
    assert not found, f"{len(found)} places\n" + "\n".join(found)


def climbing(path: Path) -> Iterator[str]:
    here = floor_of(relative(path).removesuffix(".py"))
    if here is None:
        yield f"{relative(path)}: has no floor; give it one in tests/test_house.py"
        return
    for file, line in imported_files(path) if here != "__init__" else []:
        place = f"{relative(path)}:{line}"
        there = floor_of(file)
        if file not in NAMES:
            yield f"{place}: imports the front door, or {file}, which is no file of ours"
        elif file == "__init__":
            yield f"{place}: imports the front door; import the file that defines the name"
        elif there is None:
            yield f"{file}.py has no floor"
        elif HEIGHT[there] > HEIGHT[here]:
            yield f"{place}: {here} imports {there} ({file}), which is a floor above"
    for module, line in facts(path).late_imports:
        below = module.removeprefix("tritensor").strip(".").replace(".", "/")
        if not module.startswith("tritensor") or here in MODULES_BY_NAME:
            continue
        there = floor_of(below) if below else None
        if there is None or HEIGHT[there] > HEIGHT[here]:
            yield f"{relative(path)}:{line}: import_module({module!r}...) in {here} may go up; have it registered from above (ground/providers.py)"


def test_imports_go_down() -> None:
    none(line for path in SOURCES for line in climbing(path))


def test_no_family_of_ops_imports_another() -> None:
    """What two families of ops share stands in kernels/parts/, which imports no family."""
    found = []
    for path in SOURCES:
        here = relative(path).split("/")
        if here[0] != "kernels" or len(here) < 3:
            continue
        for file, line in imported_files(path):
            there = file.split("/")
            if there[0] == "kernels" and len(there) > 1 and there[1] not in (here[1], "parts"):
                found.append(f"{relative(path)}:{line} imports {file}")
    assert not found, f"move what is shared to kernels/parts/: {found}"


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan, "Depth-first search and linear graph algorithms", 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(v: str) -> None:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(edges[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            component = stack[stack.index(v) :]
            del stack[stack.index(v) :]
            if len(component) > 1:
                found.append(sorted(component))

    for v in sorted(edges):
        if v not in index:
            visit(v)
    return found


def test_no_circle_of_files() -> None:
    edges = {relative(p).removesuffix(".py"): {f for f, _ in imported_files(p) if f in NAMES - STUBS} for p in SOURCES}
    assert not circles(edges), f"files that import one another in a circle: {circles(edges)}"


def test_no_circle_of_rooms() -> None:
    """Folders of one parent, and files beside them, import one another in one direction only."""
    imported = {relative(p).removesuffix(".py"): {f for f, _ in imported_files(p)} for p in SOURCES}
    for folder in {p.parent for p in SOURCES} - {PACKAGE}:
        base = folder.relative_to(PACKAGE).as_posix() + "/"
        room = {name: name.removeprefix(base).split("/")[0] for name in imported if name.startswith(base)}
        edges: dict[str, set[str]] = {r: set() for r in room.values()}
        for name, here in room.items():
            edges[here] |= {room[f] for f in imported[name] if f in room} - {here}
        assert not circles(edges), f"rooms of {base} that import one another in a circle: {circles(edges)}"


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set(), "c": {"a", "b"}}) == []


def test_no_crowded_folder() -> None:
    held = {folder: [p for p in folder.iterdir() if p.suffix == ".py"] for folder in sorted({p.parent for p in SOURCES})}
    none(
        f"{folder.relative_to(PACKAGE)} holds {len(files)} files; make rooms of what belongs together"
        for folder, files in held.items()
        if len(files) > FOLDER_FILES
    )


def test_every_room_is_a_package() -> None:
    """The wheel holds packages alone, and a room's caption stands in its `__init__.py`."""
    none(str(room.relative_to(PACKAGE)) for room in sorted({p.parent for p in SOURCES}) if not (room / "__init__.py").exists())


def foreign(path: Path) -> Iterator[str]:
    for module, _, line, top in facts(path).imports:
        root = module.split(".")[0]
        if not root:
            yield f"{relative(path)}:{line}: a relative import; write absolute ones"
        if not root or root in sys.stdlib_module_names or root in RUNTIME:
            continue
        if root == "torch":
            yield f"{relative(path)}:{line}: imports torch"
        elif root not in EXTRAS:
            yield f"{relative(path)}:{line}: imports {root}, which is neither a runtime package nor an extra"
        elif top:
            yield f"{relative(path)}:{line}: the extra {root} is imported at the top; import it where it is used"


def test_only_what_is_installed() -> None:
    none(line for path in SOURCES for line in foreign(path))


def test_triton_stays_in_its_rooms() -> None:
    none(
        f"{relative(path)}:{line}: only kernels/, cuda/, llvm/ and triton_kernels/ import {module}"
        for path in SOURCES
        if not relative(path).startswith(("kernels/", "cuda/", "llvm/", "triton_kernels/"))
        for module, _, line, top in facts(path).imports
        if top and module.split(".")[0] in ("triton", "cuda")
    )


def uncaptioned(path: Path) -> Iterator[str]:
    caption = facts(path).caption
    if not caption:
        yield f"{relative(path)}: opens without a caption, a docstring of one line that says what it holds"
        return
    if not text(path).lstrip().startswith('"""'):
        yield f"{relative(path)}: the caption is not the first thing in the file"
    if caption.split(maxsplit=1)[0].rstrip(",:") in QUESTIONS:
        yield f"{relative(path)}: the caption asks ({caption.splitlines()[0]!r}); begin with the noun that the file holds"
    if len(caption.splitlines()[0]) <= 15:
        yield f"{relative(path)}: the caption {caption!r} says nothing"


def test_opens_with_a_caption() -> None:
    none(line for path in SOURCES for line in uncaptioned(path))


def test_every_test_file_opens_with_a_caption() -> None:
    captions = {p: ast.get_docstring(ast.parse(p.read_text())) or "" for p in everywhere() if PACKAGE not in p.parents}
    none(f"{p.relative_to(ROOT)}: no caption" for p, caption in captions.items() if not caption)
    none(
        f"{p.relative_to(ROOT)}: the caption asks ({caption.splitlines()[0]!r}); begin with the noun that the file holds"
        for p, caption in captions.items()
        if caption.split(maxsplit=1)[0].rstrip(",:") in QUESTIONS
    )


def test_no_drawer_files() -> None:
    drawers = [p for p in everywhere() if p.stem in ("utils", "helpers", "common", "misc", "util")]
    assert not drawers, f"{[str(p.relative_to(ROOT)) for p in drawers]}: name the file after what it holds"


def test_no_long_file() -> None:
    """Tests, benches and examples as well."""
    lines = {p.relative_to(ROOT).as_posix(): len(p.read_text().splitlines()) for p in everywhere()}
    long = {p: n for p, n in lines.items() if n > FILE_LINES and p not in LONG_FILES}
    assert not long, f"files of more than {FILE_LINES} lines, to be split by what they hold: {long}"


def long_functions(path: Path) -> Iterator[str]:
    for name, line, lines in facts(path).functions:
        if lines > FUNCTION_LINES and f"{relative(path)}:{name}" not in LONG_FUNCTIONS:
            yield f"{relative(path)}:{line}: {name} has {lines} lines; cut it where it changes subject"


def test_no_long_function() -> None:
    none(line for path in SOURCES for line in long_functions(path))


def left_open(path: Path) -> Iterator[str]:
    for number, line in enumerate(text(path).splitlines(), 1):
        for word in ("TODO", "FIXME", "XXX", "HACK"):
            if word in line:
                yield f"{relative(path)}:{number}: {word}"
    for line_of_except in facts(path).bare_excepts:
        yield f"{relative(path)}:{line_of_except}: a bare except"


def test_nothing_is_left_open() -> None:
    none(line for path in SOURCES for line in left_open(path))


def test_columns() -> None:
    none(
        f"{relative(p)}:{k}: {len(line)} columns" for p in SOURCES for k, line in enumerate(text(p).splitlines(), 1) if len(line) > COLUMNS
    )


def test_wings_are_linked() -> None:
    for wing in WINGS:
        link = PACKAGE / wing
        assert link.is_symlink(), f"tritensor/{wing} is no link"
        assert os.readlink(link) == f"../{wing}", f"tritensor/{wing} points at {os.readlink(link)}; it must be relative"
        assert (ROOT / wing / "__init__.py").exists(), f"{wing} has no __init__.py"


def fresh(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own that knows nothing of this one."""
    env = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, "-c", code], env={**env, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, text=True, timeout=120
    )


def test_import_is_clean() -> None:
    done = fresh(
        "import sys, tritensor; bad = {'torch', 'scipy', 'matplotlib', 'sklearn', 'tqdm', 'PIL', 'tritensor.training'} & set(sys.modules); "
        "assert not bad, bad; assert tritensor.Trainer is tritensor.training.Trainer"
    )
    assert done.returncode == 0, done.stderr


def test_front_door_lists_what_it_shows() -> None:
    import tritensor

    assert len(tritensor.__all__) == len(set(tritensor.__all__)), "a name stands twice in __all__"
    for name in tritensor.__all__:
        assert hasattr(tritensor, name), f"__all__ lists {name}, which is not there"
    import types

    shown = {n for n, v in vars(tritensor).items() if not n.startswith("_") and not isinstance(v, types.ModuleType)}
    missing = shown - {*tritensor.__all__, *tritensor._LAZY, "annotations"}  # the late ones stay once they were asked for
    assert not missing, f"public and not in __all__: {sorted(missing)}"


def test_every_public_function_is_documented() -> None:
    import tritensor

    bare = [n for n in tritensor.__all__ if callable(getattr(tritensor, n)) and not (getattr(tritensor, n).__doc__ or "").strip()]
    assert not bare, f"no docstring: {bare}"


def called_ops() -> set[str]:
    """Names of ops that anything inside calls: `ops.NAME(...)`, `registry["NAME"]`, or a table of names (any string in tensor/, nn/, optim/)."""
    found: set[str] = set()
    for path in SOURCES:
        found |= facts(path).attributes_of_ops | facts(path).keys_of_registry
        if relative(path).startswith(("tensor/", "nn/", "optim/")):
            found |= facts(path).strings
    return found


def formulas_of_optimizers() -> set[str]:
    """The names of those that optimizers' files ask for, "file.NAME" of kernels/optimizers/formulas."""
    from tritensor.optim.plan import load_formula

    asked = [re.findall(r'"(\w+\.[A-Z_]+)"', p.read_text()) for p in SOURCES if relative(p).startswith("optim/")]
    return {load_formula(name).name for found in asked for name in found}


def test_every_op_is_used() -> None:
    import tritensor
    from tritensor.ops.table import registry

    reachable = called_ops() | set(tritensor.__all__) | set(dir(tritensor.Tensor))
    reachable |= {"max_dim", "min_dim"}  # tensor/functions/reductions/reductions.py puts these names together
    reachable |= {f"{name}_{kind}" for name in formulas_of_optimizers() for kind in ("step", "numbers")}
    reachable |= {"norm_of_all", "scale_all"}  # nn/utils/gradients.py launches their kernels over many arrays
    lost = sorted(set(registry) - reachable)
    assert not lost, f"ops that no public name reaches: {lost}"


def test_what_is_called_as_an_op_is_one() -> None:
    """`ops.full_like(...)` on a road that few programs take raises only there."""
    from tritensor.ops.table import ops, registry

    asked = set()
    for path in SOURCES:
        taken = {name for module, name, _, _ in facts(path).imports if module == "tritensor.ops.table"}
        names = (facts(path).attributes_of_ops if "ops" in taken else set()) | (
            facts(path).keys_of_registry if "registry" in taken else set()
        )
        asked |= {(relative(path), name) for name in names}
    lost = sorted(f"{file}: {name}" for file, name in asked if name not in registry and name not in vars(type(ops)))
    assert not lost, f"no ops: {lost}"


def test_every_op_is_registered_by_a_kernel_file() -> None:
    import tritensor.kernels  # noqa: F401
    from tritensor.ops.table import registry

    for name, record in registry.items():
        assert record.module.startswith("tritensor.kernels"), f"{name} is registered by {record.module}"
