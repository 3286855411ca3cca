"""Order of the tests that are asked about a changed file: its ops, its own tests, those that name what stands in it, then the wide ones."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.mutate.reach import all_reaching, ops_reaching, runs_on, says
from tests.tiers.ops import MODULES, ops_of

# Asked last, of every survivor so far: what users do, end to end.
WIDE = (
    "tests/expressions",
    "tests/familiar",
    "tests/autograd",
    "tests/nn",
    "tests/optim",
    "tests/func",
    "tests/tensor",
    "tests/replay/test_replay.py",
    "tests/replay/test_replay_inputs.py",
)
PLACES = (
    "float64/cpu",
    "float32/emulated",
    "float32/cpu",
    "bfloat16/emulated",
    "float16/cpu",
    "int64/cpu",
    "int64/emulated",
    "bool/emulated",
)
_REFUSES = ("refuse_kind", "refuse_mixed")
# Tests that are asked about a kernel file's function by the names in it.
BY_NAMES = {
    "tests/cuda/test_device_errors.py": ("errors", "out_of_range", "watch", "report", "check_range", "_check_indices"),  # bad indices
    "tests/ops/test_refusals.py": ("Spec", "ShapeError", "DTypeError", "ArgumentError", *_REFUSES),  # inputs that do not fit
    "tests/kernels/test_shape_rules.py": ("ShapeError", "DTypeError", "ArgumentError", "IndexError", "check_integers", *_REFUSES),
    "tests/kernels/test_tiles.py": ("config_of",),  # which tiles a launch takes
    "tests/kernels/test_types_refused.py": _REFUSES,  # types that an op does not take
}
NOT_ASKED = ("gpu", "peer", "static", "packaging", "examples", "mutate", "sabotage", "stub", "tiers")
SEVERAL = 12  # ops of a last walk in one run
LIMITS = {"ask": 120, "pytest": 240}  # seconds of computing: what takes longer hangs
LIMIT_OF_A_ROOM = 900


class Stage(NamedTuple):
    """One run: "ask" for walks (op/type/device), "pytest" for arguments; a later one is only made of what survived the earlier ones."""

    do: str
    what: list[str]
    wide: bool = False  # a whole room, which hardly ever finds what the others did not

    @property
    def limit(self) -> int:
        return LIMIT_OF_A_ROOM if self.wide else LIMITS[self.do]


@cache
def _tests(root: Path) -> dict[str, str]:
    """Text of every test file that runs anywhere, by its path."""
    found = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[1] not in NOT_ASKED and name != "tests/ops/test_walk.py":
            found[name] = path.read_text()
    return found


def stages(root: Path, path: str, function: str, tier: str = "full") -> list[Stage]:
    """The runs for a fault in one function of one file, the likeliest to find it first."""
    found = _of_kernels(root, path, function) if path.startswith("kernels/") else _of_others(root, path, function)
    asked = {what for s in found for what in s.what}
    found += [Stage("pytest", [t], wide=True) for t in WIDE if (root / t).exists() and t not in asked]
    # every op's walk takes the quick tier two minutes, the full one half an hour
    return [*found, Stage("pytest", ["tests/ops"], wide=True)] if tier == "quick" else found


def _of_others(root: Path, path: str, function: str) -> list[Stage]:
    """The tests named for a file, those that name what stands in it and those of its room."""
    stem = Path(path).stem
    texts = _tests(root)
    own = [t for t in texts if Path(t).stem in (f"test_{stem}", f"test_{stem}s", f"test_{stem.rstrip('s')}")]
    naming = [t for t, text in texts.items() if t not in own and (stem in _said(text) or (function and function in _said(text)))]
    mirrored = next((t for room in reversed(path.split("/")[:-1]) if (root / (t := f"tests/{room}")).is_dir()), "")
    second = [t for t in naming if t not in own] + ([mirrored] if mirrored else [])
    first = [*own, "tests/expressions", "tests/signatures"] if path.startswith("tritensor/tensor/") else own
    return [s for s in (Stage("pytest", first), Stage("pytest", second)) if s.what]


def _of_kernels(root: Path, path: str, function: str) -> list[Stage]:
    """A kernel file's ops, walked; the tests that import the file; those that name the function or one of the ops."""
    ops = ops_reaching(root, path, function)
    on = runs_on(root, path, function)
    places = [p for p in _places(root, ops) if on != "cpu" or p.endswith("cpu")]  # a device is held against numpy, not numpy against it
    places.sort(key=lambda p: on == "emulated" and p != "float32/emulated")  # stable
    quick = [f"{op}/{place}" for place in places[:2] for op in ops[:6]]
    walked = [f"{op}/{place}" for place in places for op in ops]
    texts = _tests(root)
    families = tuple(f"tests/{wing}/{room}/" for room in dict.fromkeys([path.split("/")[1], *_families(ops)]) for wing in ("kernels", "nn"))
    near = [t for t, text in texts.items() if _imports(text, path) or t.startswith(families[:2])]
    near += [t for t in texts if t.startswith(families[2:]) and t not in near]
    near += [t for t in texts if Path(t).stem == f"test_{Path(path).stem}" and t not in near]
    naming = [t for t, text in texts.items() if t not in near and len(function) > 6 and function in _said(text)]
    near.sort(key=lambda t: function not in _said(texts[t]))  # stable
    near.sort(key=lambda t: Path(t).stem != f"test_{Path(path).stem}")
    reports = [t for t, names in BY_NAMES.items() if t in texts and any(says(root, path, function, n) for n in names)]
    own = set(ops_of(path)) or set(ops)
    using = [
        t for t in texts if t not in near + naming + reports and t.split("/")[1] in ("tensor", "nn", "optim") and own & _said(texts[t])
    ]
    using.sort(key=lambda t: -len(own & _said(texts[t])))
    tests = list(dict.fromkeys([*near, *naming, *reports, *using[:1]]))
    whole = [t for t in texts if t.startswith("tests/kernels/test_") and t not in tests]  # of all kernels at once
    runs = [
        Stage("ask", quick),
        Stage("ask", [w for w in walked if w not in quick]),
        Stage("pytest", tests),
        Stage("pytest", ["tests/expressions"]),
        Stage("pytest", whole),
    ]
    last = [f"{op}/float32/{on or 'emulated'}" for op in all_reaching(root, path, function) if op not in ops]
    return [s for s in [*runs, *(Stage("ask", last[i : i + SEVERAL], wide=True) for i in range(0, len(last), SEVERAL))] if s.what]


def _families(ops: tuple[str, ...]) -> list[str]:
    """The folders of kernels/ that register these ops."""
    return list(dict.fromkeys(room.split(".")[0] for room, names in MODULES.items() if set(ops) & set(names.split())))


@cache
def _places(root: Path, ops: tuple[str, ...]) -> list[str]:
    """type/device of every walk of these ops, the common ones first; of a function that many ops use, the common ones."""
    import tritensor.kernels  # noqa: F401  (fills the table)
    from tritensor.ops.table import registry

    types = dict.fromkeys(t for op in ops for t in registry[op].dtypes)
    every = [f"{t}/{on}" for t in types for on in ("cpu", "emulated")]
    return [p for p in PLACES if p in every] + ([p for p in every if p not in PLACES] if len(ops) < 8 else [])


def _imports(text: str, path: str) -> bool:
    package, _, stem = path.removesuffix(".py").replace("/", ".").rpartition(".")
    whole = rf"tritensor\.{package}\.{stem} import|tritensor\.{package} import .*\b{stem}\b"
    return re.search(whole, text) is not None


@cache
def _said(text: str) -> frozenset[str]:
    """Every name in a test file."""
    named = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute | ast.Name))
    return frozenset(n.attr if isinstance(n, ast.Attribute) else n.id for n in named)
