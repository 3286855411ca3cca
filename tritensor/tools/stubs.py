"""The command `tritensor stubs`: writes the `.pyi` files that editors and type checkers read; after a change of public functions."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import math
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent
NOTE = "# Written by `python -m tritensor.tools.stubs`; edit the functions themselves."
# Some are types' or methods' names here: always written in full.
BUILTINS = {"bool", "int", "float", "complex", "str", "bytes", "object", "slice"}
KNOWN = {"Tensor", "Any", "None", "Sequence", "Callable", "Iterator", "tuple", "list", "dict", "Size", "Generator"} | BUILTINS
LAZY_ROOMS = ("array_api", "debug", "distributions", "func", "onnx", "testing", "training")  # editors do not run the door's __getattr__
HEAD = f"""{NOTE}
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any
"""
FUNCTIONS_HEAD = (
    HEAD,
    "from tritensor.random import Generator",
    "from tritensor.tensor.core import Tensor",
    "from tritensor.tensor.size import Size",
)


def annotation(given: Any, scope: dict[str, Any] | None = None) -> str:
    """An annotation in words that every stub knows, those of `scope` written out; Any for others."""
    text = given if isinstance(given, str) else getattr(given, "__name__", str(given)) if given is not inspect.Parameter.empty else "Any"
    try:
        tree = ast.parse(text.strip("'\""), mode="eval")
    except SyntaxError:
        return "Any"
    if any(isinstance(n, ast.Attribute) for n in ast.walk(tree)):  # np.ndarray and its like: the stub imports nothing for them
        return "Any"
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and n.id not in BUILTINS:
            n.id = _spell(n.id, (scope or {}).get(n.id))
    text = ast.unparse(tree)
    names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    if not names <= KNOWN or "." in text.replace("...", ""):
        return "Any"
    return re.sub(r"\b(" + "|".join(sorted(BUILTINS)) + r")\b", r"_builtins.\1", text)


def _spell(name: str, value: Any) -> str:
    """A name of an annotation: itself where it means what it says, what it stands for where it is an alias."""
    if isinstance(value, types.UnionType | types.GenericAlias):
        return str(value).replace("collections.abc.", "").replace("typing.", "")
    if value is Any:
        return "Any"
    return name if value is None or getattr(value, "__name__", "") == name else "unknown"


def default(value: Any) -> str:
    """A default as its source where it is a literal, else `...`."""
    plain = value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    if plain or (isinstance(value, tuple) and all(isinstance(v, int) for v in value)):
        return repr(value)
    return "..."


def _scope(f: Callable[..., Any]) -> dict[str, Any]:
    """The names of the file that a function is written in."""
    found: dict[str, Any] = getattr(inspect.unwrap(f), "__globals__", {})
    return found


def parameters(f: Callable[..., Any], method: bool) -> str:
    """What stands between the parentheses."""
    found: list[str] = []
    kinds = inspect.Parameter
    given = list(inspect.signature(f).parameters.values())
    starred = False
    scope = _scope(f)
    for i, p in enumerate(given):
        if p.kind is kinds.KEYWORD_ONLY and not starred:
            found.append("*")
            starred = True
        if method and i == 0:
            found.append("self")
            continue
        star = "*" if p.kind is kinds.VAR_POSITIONAL else "**" if p.kind is kinds.VAR_KEYWORD else ""
        starred = starred or star == "*"
        text = f"{star}{p.name}: {annotation(p.annotation, scope)}"
        found.append(text if p.default is kinds.empty else f"{text} = {default(p.default)}")
        if p.kind is kinds.POSITIONAL_ONLY and (i + 1 == len(given) or given[i + 1].kind is not kinds.POSITIONAL_ONLY):
            found.append("/")
    return ", ".join(found)


def function(name: str, f: Callable[..., Any], method: bool = False) -> Iterator[str]:
    """One function: its signature and the first line of its documentation."""
    lead = "    " if method else ""
    given = annotation(inspect.signature(f).return_annotation, _scope(f))
    ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    doc = (inspect.getdoc(f) or "").split("\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    doc += " " * doc.endswith('"')
    yield f"{lead}def {name}({parameters(f, method)}) -> {given}:{'' if doc else ' ...'}{ignored}"
    if doc:
        yield f'{lead}    """{doc}"""'


def front_door() -> str:
    """tritensor/__init__.pyi: what the front door imports, its types, its functions."""
    from tritensor.ground import dtypes
    from tritensor.tensor.public_api.publish import namespaces, public

    ours = sys.modules["tritensor"]
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    lines = [
        HEAD,
        "from tritensor.ground.dtypes import DType as _DType",
        "from tritensor.ground.strides import MemoryFormat as _MemoryFormat",
    ]
    imports = [n for top in tree.body for n in (top.body if isinstance(top, ast.With) else [top]) if isinstance(n, ast.ImportFrom)]
    for n in imports:
        if not all(a.asname and a.asname.startswith("_") for a in n.names) and n.module != "tritensor.ground.dtypes":
            lines.append(ast.unparse(n))
    lines += [f"from tritensor import {m} as {m}" for m in sorted({*LAZY_ROOMS, *namespaces})]
    own = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
    lines += ["", "__version__: str", "__all__: list[str]", "newaxis: None", "dtype = _DType", "memory_format = _MemoryFormat"]
    lines += [f"{n}: Any" for n in ours._LAZY if n not in ("Trainer", "vmap", *LAZY_ROOMS, *ours._LATE_FUNCTIONS)]
    for n, place in ours._LATE_FUNCTIONS.items():
        module, _, attribute = f"tritensor.{place}".replace(":", ".").rpartition(".")
        lines.append(f"from {module} import {attribute} as {n}")
    lines += ["from tritensor.func import vmap as vmap", "from tritensor.training import Trainer as Trainer"]
    types_named = {n: v for n, v in vars(ours).items() if isinstance(v, dtypes.DType)}
    lines += [f"{n}: dtype" for n in sorted(types_named)]
    written = {a.asname for n in imports for a in n.names}
    for name in sorted({*own, *public} - written):
        lines += ["", *function(name, getattr(ours, name))]
    return "\n".join(lines) + "\n"


def methods() -> str:
    """tritensor/tensor/methods.pyi: what is attached to Tensor when it is published."""
    from tritensor.tensor.core import Tensor
    from tritensor.torch_compat.missing import AbsentMethod

    written: set[str] = set()
    for file, name in (("core.py", "Tensor"), ("host_values.py", "HostValues")):
        tree = ast.parse((PACKAGE / "tensor" / file).read_text())
        body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name).body
        written |= {n.name for n in body if isinstance(n, ast.FunctionDef)}
        written |= {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        written |= {n.target.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    lines = [
        *FUNCTIONS_HEAD,
        "",
        "class Methods:",
        '    """The methods and operators of Tensor that the files of tensor/functions publish."""',
    ]
    for name, value in sorted(vars(Tensor).items()):  # what is inherited stands in the classes' own files
        hidden = name in ("__dir__", "__slots__", "__hash__", "__weakref__") or name.endswith("__weakref")
        if name in written or hidden or isinstance(value, AbsentMethod):
            continue
        if isinstance(value, property) and value.fget is not None:
            lines += ["", "    @property", *function(name, value.fget, method=True)]
            if value.fset is not None:
                lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
        elif isinstance(value, types.FunctionType):
            lines += ["", *function(name, value, method=True)]
    return "\n".join(lines) + "\n"


def functional(module: types.ModuleType, published: dict[str, Callable[..., Any]] | None = None) -> str:
    """The stub of a module of functions behind the door: of what it holds, or of what is `published` in it."""
    lines = list(FUNCTIONS_HEAD)
    for name, value in sorted((vars(module) if published is None else published).items()):
        if name.startswith("__") or name in ("Any", "Callable", "Generator", "Iterator", "Sequence", "Size", "Tensor", "annotations"):
            continue
        if isinstance(value, types.FunctionType):
            lines += ["", *function(name, value)]
        elif not isinstance(value, types.ModuleType):
            lines += ["", f"{name}: Any"]
    return "\n".join(lines) + "\n"


def texts() -> dict[Path, str]:
    """Every stub, by the file that it belongs in."""
    importlib.import_module("tritensor")
    from tritensor.tensor.public_api.publish import namespaces

    F = importlib.import_module("tritensor.nn.functional")
    modules = {n: importlib.import_module(f"tritensor.{n}") for n in sorted(namespaces)}
    spaces = {Path(str(m.__file__)).with_suffix(".pyi"): functional(m, namespaces[n]) for n, m in modules.items()}
    standard = importlib.import_module("tritensor.array_api")
    rooms = {name: importlib.import_module(f"tritensor.array_api.{name}") for name in ("fft", "linalg")}
    listed = functional(standard, {n: getattr(standard, n) for n in standard.__all__ if n not in rooms})
    return {
        **spaces,
        PACKAGE / "array_api" / "__init__.pyi": listed + "".join(f"\nfrom tritensor.array_api import {n} as {n}" for n in rooms) + "\n",
        PACKAGE / "array_api" / "fft.pyi": functional(rooms["fft"], {n: getattr(rooms["fft"], n) for n in rooms["fft"].__all__}),
        PACKAGE / "__init__.pyi": front_door(),
        PACKAGE / "tensor" / "methods.pyi": methods(),
        Path(str(F.__file__)).with_suffix(".pyi"): functional(F),
    }


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Write every stub, and say how long each is."""
    parser.parse_args(argv)
    for path, text in texts().items():
        path.write_text(text)
        print(f"{path.relative_to(PACKAGE.parent)}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], argparse.ArgumentParser(prog="python -m tritensor.tools.stubs", description=__doc__)))
