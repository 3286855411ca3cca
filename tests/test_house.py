"""The house's own rules: floors, captions, names, lengths, what leaves through the front door, what may be imported."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tritensor"
WINGS = ("kernels", "autograd", "nn", "optim")  # stand at the top, linked into the package

# Imports go down only, inside functions as well as at the top of a file. An entry stands for a file, or for all files below a folder
# that no longer entry names; a folder's own name with `/__init__` stands for its public names, which gather what lies below them.
FLOORS = [
    ("errors", "call_site", "extras"),
    ("dtypes", "strides", "native", "utils/pytree"),
    ("device", "cuda/current", "cuda/device_errors", "cuda/nvtx"),
    ("cuda/runtime",),
    ("cuda/presence", "cuda/launch"),
    ("cuda/devices",),
    ("cuda/memory", "cuda/streams"),
    ("cuda/compiler",),
    ("cuda/driver", "cuda/emulator"),
    ("cuda/virtual",),
    ("cuda/choice",),
    ("layers",),
    ("array", "transfer", "random"),
    ("cuda/random",),
    ("cuda/__init__",),
    ("replay",),
    ("matmul_precision",),
    ("table",),
    ("tuning",),
    ("autograd",),
    ("dispatch",),
    ("tensor",),
    ("triton_kernels",),
    ("array_api", "fft", "linalg", "masked", "special"),  # namespaces over the functions of the tensor floor
    ("kernels/parts",),
    ("kernels",),
    ("nn",),
    ("optim",),
    ("func",),
    ("autograd/forward_ad",),
    ("multiprocessing",),
    ("data", "io", "distributed", "distributions", "models"),
    (
        "amp",
        "utils",
        "debug",
        "testing",
        "signal",
        "viz",
        "vision",
        "profiler",
        "onnx",
        "hub",
    ),  # utils is PyTorch's spelling of what stands below
    ("training",),
    ("launch",),  # `python -m tritensor.launch`
    ("paths",),  # the rest of PyTorch's module tree
    ("tools",),
    ("doctor", "run"),  # `python -m tritensor.doctor`, `python -m tritensor.run`
    ("__init__",),
]
HEIGHT = {name: i for i, names in enumerate(FLOORS) for name in names}

LONG_FILES: dict[str, str] = {}  # path: why one file is right
LONG_FUNCTIONS: dict[str, str] = {}  # path:function: why one function is right
FILE_LINES = 450
FOLDER_FILES = 16
COLUMNS = 160  # the formatter breaks code at 140; an error message may be longer
FUNCTION_LINES = 60  # the lines of the code itself; docstring not counted
RUNTIME = {"triton", "numpy", "ml_dtypes", "cuda", "tritensor"}
# Optional extras: imported inside the function that offers them, never at the top of a file.
EXTRAS = {"pytest", "opt_einsum", "tqdm", "matplotlib", "sklearn", "scipy", "PIL", "onnx", "IPython", "mpi4py", "nccl", "torch"}


def sources() -> list[Path]:
    """Every Python file of the package, the four wings through their links."""
    found = []
    for folder, _, names in os.walk(PACKAGE, followlinks=True):
        found += [Path(folder) / n for n in names if n.endswith(".py") and "__pycache__" not in folder]
    return sorted(found)


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def module_of(path: Path) -> str:
    """The dotted name of a source file: tritensor.cuda.launch; a package's is that of its folder."""
    return "tritensor." + relative(path).removesuffix(".py").replace("/", ".")


def floor_of(name: str) -> str | None:
    """The entry of FLOORS that a file stands under: the longest that its path (without .py) begins with."""
    parts = name.split("/")
    found = ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((f for f in found if f in HEIGHT), None)


def imported_files(path: Path) -> list[tuple[str, int]]:
    """(file without .py, line) of everything of tritensor that a file imports, anywhere in it."""
    found = []
    for n in ast.walk(parsed(path)):
        if isinstance(n, ast.Import):
            named = [(a.name, None) for a in n.names]
        elif isinstance(n, ast.ImportFrom):
            named = [(n.module or "", a.name) for a in n.names]
        else:
            continue
        for module, name in named:
            if module.split(".")[0] != "tritensor":
                continue
            below = module.split(".")[1:] + ([name] if name else [])
            options = ["/".join(below), "/".join([*below, "__init__"]), "/".join(below[:-1]), "/".join([*below[:-1], "__init__"])]
            found += [(o, n.lineno) for o in options if o in NAMES][:1] or [("/".join(below), n.lineno)]
    return found


def imports(tree: ast.Module) -> list[tuple[str, int, bool]]:
    """(module, line, whether at the top level) of every import; `from tritensor import x` counts as tritensor.x."""
    top = {id(n) for n in tree.body}
    for n in tree.body:  # if TYPE_CHECKING and try blocks run at import as well
        if isinstance(n, ast.If | ast.Try):
            top |= {id(m) for m in ast.walk(n)}
    found = []
    for n in ast.walk(tree):
        if isinstance(n, ast.Import):
            found += [(a.name, n.lineno, id(n) in top) for a in n.names]
        elif isinstance(n, ast.ImportFrom):
            assert n.level == 0, f"line {n.lineno}: a relative import; write absolute ones"
            if n.module == "tritensor":
                found += [(f"tritensor.{a.name}", n.lineno, id(n) in top) for a in n.names]
            else:
                found.append((n.module or "", n.lineno, id(n) in top))
    return found


SOURCES = sources()
NAMES = {relative(p).removesuffix(".py") for p in SOURCES} | {"tensor/methods"}
STUBS = {"tensor/methods"}  # stubs without a file behind them
FILES = [pytest.param(p, id=relative(p)) for p in SOURCES]


@pytest.mark.parametrize("path", FILES)
def test_imports_go_down(path: Path) -> None:
    name = relative(path).removesuffix(".py")
    here = floor_of(name)
    assert here is not None, f"{relative(path)}: has no floor; give it one in tests/test_house.py"
    if here == "__init__":
        return
    for file, line in imported_files(path):
        assert file in NAMES, f"{relative(path)}:{line}: imports the front door, or {file}, which is no file of ours"
        assert file != "__init__", f"{relative(path)}:{line}: imports the front door; import the file that defines the name"
        there = floor_of(file)
        assert there is not None, f"{file}.py has no floor"
        assert HEIGHT[there] <= HEIGHT[here], f"{relative(path)}:{line}: {here} imports {there} ({file}), which is a floor above"


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
    for folder in {p.parent for p in SOURCES} - {PACKAGE}:
        base = folder.relative_to(PACKAGE).as_posix() + "/"
        inside = [p for p in SOURCES if relative(p).startswith(base)]
        room = {relative(p).removesuffix(".py"): relative(p).removesuffix(".py").removeprefix(base).split("/")[0] for p in inside}
        edges: dict[str, set[str]] = {r: set() for r in room.values()}
        for p in inside:
            here = room[relative(p).removesuffix(".py")]
            edges[here] |= {room[f] for f, _ in imported_files(p) if f in room} - {here}
        assert not circles(edges), f"rooms of {base} that import one another in a circle: {circles(edges)}"


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set(), "c": {"a", "b"}}) == []


@pytest.mark.parametrize("folder", sorted({p.parent for p in SOURCES}), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_no_crowded_folder(folder: Path) -> None:
    files = [p for p in folder.iterdir() if p.suffix == ".py"]
    assert len(files) <= FOLDER_FILES, f"{folder.relative_to(PACKAGE)} holds {len(files)} files; make rooms of what belongs together"


@pytest.mark.parametrize("path", FILES)
def test_only_what_is_installed(path: Path) -> None:
    for module, line, top in imports(parsed(path)):
        root = module.split(".")[0]
        assert root != "torch", f"{relative(path)}:{line}: imports torch"
        if root in sys.stdlib_module_names or root in RUNTIME:
            continue
        assert root in EXTRAS, f"{relative(path)}:{line}: imports {root}, which is neither a runtime package nor an extra"
        assert not top, f"{relative(path)}:{line}: the extra {root} is imported at the top; import it where it is used"


@pytest.mark.parametrize("path", FILES)
def test_triton_stays_in_its_rooms(path: Path) -> None:
    if relative(path).startswith(("kernels/", "cuda/", "native/", "triton_kernels/")):
        return
    for module, line, top in imports(parsed(path)):
        if top:
            assert module.split(".")[0] not in ("triton", "cuda"), (
                f"{relative(path)}:{line}: only kernels/, cuda/, native/ and triton_kernels/ import {module}"
            )


@pytest.mark.parametrize("path", FILES)
def test_opens_with_a_caption(path: Path) -> None:
    tree = parsed(path)
    caption = ast.get_docstring(tree)
    assert caption, f"{relative(path)}: opens without a caption, a docstring of one line that says what it holds"
    first = path.read_text().lstrip().splitlines()[0]
    assert first.startswith('"""'), f"{relative(path)}: the caption is not the first thing in the file"
    assert len(caption.splitlines()[0]) > 15, f"{relative(path)}: the caption {caption!r} says nothing"


def test_every_test_file_opens_with_a_caption() -> None:
    bare = [p for folder in ("tests", "bench", "examples") for p in (ROOT / folder).rglob("*.py") if not ast.get_docstring(parsed(p))]
    assert not bare, f"no caption: {[str(p.relative_to(ROOT)) for p in bare]}"


def test_no_drawer_files() -> None:
    drawers = [p for p in ROOT.rglob("*.py") if p.stem in ("utils", "helpers", "common", "misc", "util") and ".venv" not in p.parts]
    assert not drawers, f"{[str(p.relative_to(ROOT)) for p in drawers]}: name the file after what it holds"


def test_no_long_file() -> None:
    """Tests, benches and examples as well."""
    lines = {p.relative_to(ROOT).as_posix(): len(p.read_text().splitlines()) for p in ROOT.rglob("*.py") if ".venv" not in p.parts}
    long = {p: n for p, n in lines.items() if n > FILE_LINES and p not in LONG_FILES}
    assert not long, f"files of more than {FILE_LINES} lines, to be split by what they hold: {long}"


@pytest.mark.parametrize("path", FILES)
def test_no_long_function(path: Path) -> None:
    text = path.read_text()
    for n in ast.walk(ast.parse(text)):
        if not isinstance(n, ast.FunctionDef) or f"{relative(path)}:{n.name}" in LONG_FUNCTIONS:
            continue
        body = n.body[1:] if ast.get_docstring(n) else n.body
        lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
        assert lines <= FUNCTION_LINES, f"{relative(path)}:{n.lineno}: {n.name} has {lines} lines; cut it where it changes subject"


@pytest.mark.parametrize("path", FILES)
def test_nothing_is_left_open(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for word in ("TODO", "FIXME", "XXX", "HACK"):
            assert word not in line, f"{relative(path)}:{number}: {word}"
    for n in ast.walk(parsed(path)):
        if isinstance(n, ast.ExceptHandler):
            assert n.type is not None, f"{relative(path)}:{n.lineno}: a bare except"


def test_columns() -> None:
    wide = [
        f"{relative(p)}:{k}: {len(line)}" for p in sources() for k, line in enumerate(p.read_text().splitlines(), 1) if len(line) > COLUMNS
    ]
    assert not wide, f"lines of more than {COLUMNS} columns: {', '.join(wide)}"


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
    missing = shown - set(tritensor.__all__) - {"annotations"}
    assert not missing, f"public and not in __all__: {sorted(missing)}"


def test_every_public_function_is_documented() -> None:
    import tritensor

    bare = [n for n in tritensor.__all__ if callable(getattr(tritensor, n)) and not (getattr(tritensor, n).__doc__ or "").strip()]
    assert not bare, f"no docstring: {bare}"


def called_ops() -> set[str]:
    """Names of ops that anything inside calls: `ops.NAME(...)`, `registry["NAME"]`, or a table of names (any string in tensor/, nn/, optim/)."""
    found: set[str] = set()
    for path in sources():
        for n in ast.walk(parsed(path)):
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "ops":
                found.add(n.attr)
            elif (
                isinstance(n, ast.Subscript)
                and isinstance(n.value, ast.Name)
                and n.value.id == "registry"
                and isinstance(n.slice, ast.Constant)
            ):
                found.add(str(n.slice.value))
            elif isinstance(n, ast.Constant) and isinstance(n.value, str) and relative(path).startswith(("tensor/", "nn/", "optim/")):
                found.add(n.value)
    return found


def formulas_of_optimizers() -> set[str]:
    """The names of those that optimizers' files ask for, "file.NAME" of kernels/optimizers/formulas."""
    from tritensor.optim.plan import formula_of

    asked = [re.findall(r'"(\w+\.[A-Z_]+)"', p.read_text()) for p in SOURCES if relative(p).startswith("optim/")]
    return {formula_of(name).name for found in asked for name in found}


def test_every_op_is_used() -> None:
    import tritensor
    from tritensor.table import registry

    reachable = called_ops() | set(tritensor.__all__) | set(dir(tritensor.Tensor))
    reachable |= {"max_dim", "min_dim"}  # tensor/functions/reductions/reductions.py puts these names together
    reachable |= {f"{name}_{kind}" for name in formulas_of_optimizers() for kind in ("step", "numbers")}
    reachable |= {"norm_of_all", "scale_all"}  # nn/utils/gradients.py launches their kernels over many arrays
    lost = sorted(set(registry) - reachable)
    assert not lost, f"ops that no public name reaches: {lost}"


def test_every_op_is_registered_by_a_kernel_file() -> None:
    import tritensor.kernels  # noqa: F401
    from tritensor.table import registry

    for name, record in registry.items():
        assert record.module.startswith(("tritensor.kernels", "numpy")), f"{name} is registered by {record.module}"
