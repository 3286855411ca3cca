"""State that threads share: a first use fills nothing in two steps without a lock around them; and locks are made where forks find them.

The steps that one thread may see another in the middle of are read off the code. One step, which Python's own lock makes whole, is: one name or
attribute bound, one entry of a dict set, one element put into a set. Two are: a list that grows (what stands where depends on who came first), a dict and a
list, `if not found: found.extend(...)`, `n += 1`, a container emptied and filled again, an entry deleted that another thread deletes as well.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

import pytest

from tests.source_facts import relative, sources, text

CONTAINERS = {"dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter"}
STEPS = {
    "append", "appendleft", "extend", "insert", "pop", "popleft", "popitem", "remove", "discard", "clear", "update", "add", "setdefault", "sort", "reverse",
    "move_to_end",
}  # fmt: skip
WHOLE = {"add", "discard", "setdefault"}  # one of these is one step; and `pop` of a dict with a default
LOCKED = ("lock", "_lock", "changing", "_making", "_counting", "_constructing", "_starting", "_extra_lock", "_move_lock", "_draw_lock", "_map_lock", "_install_lock", "_loading",
          "_choosing", "_registering", "_beginning", "_accumulating", "_compiling", "_free", "_more")  # fmt: skip

# Why the several steps of a function are right: (reason, "file:function" of each).
REASONS = [
    ("called while its file, or the package, is imported, by the thread that does so", [
        "cuda/launch.py:register_conversion", "dispatch/dispatcher.py:install", "distributions/kl/registry.py:register_kl.decorate", "kernels/optimizers/steps.py:step_formula",
        "ground/process/locks.py:held_over_forks", "ground/process/locks.py:in_child", "tensor/public_api/op_forms.py:set_namespace", "tensor/public_api/publish.py:function",
        "torch_compat/einops_backend.py:define",
    ]),
    ("a setting, or a stack of settings, of the whole process, as PyTorch's: the program says when", [
        "func/forward_ad.py:enter_dual_level", "func/forward_ad.py:exit_dual_level", "cuda/compiler/cubin_cache.py:forget",
        "cuda/streams/stream.py:_forget_streams", "debug/memory_history.py:_record_memory_history", "distributed/fsdp/wrap.py:enable_wrap",
        "distributed/initialisation.py:destroy_process_group", "distributed/initialisation.py:new_group", "io/safe_globals.py:add_safe_globals",
        "io/safe_globals.py:clear_safe_globals", "torch_compat/modules/backends.py:_sdp_kernel", "torch_compat/settings.py:use_deterministic_algorithms",
        "tensor/printing.py:set_printoptions", "ops/tuning/config_choice.py:noted", "ops/tuning/tuned.py:forget",
    ]),
    ("what it fills is one call's own, which no other thread has", [
        "cuda/driver/kernels.py:Kernels._attributes.attribute", "data/workers/dataset_pickle.py:DatasetPickle._pickle_contents.keep_in_band",
        "distributed/checkpoint/state_dict.py:_broadcast_state.send_header", "distributed/checkpoint/state_dict_loader.py:load.look",
        "func/functions.py:_make_mapped_function.jvp.one", "kernels/parts/tapes/cpu/kept_values.py:kept_values.ask", "nn/state.py:load.walk", "profiler/results/chrome_trace.py:_name_rows.name",
        "profiler/results/chrome_trace.py:_make_arrows.arrow", "tools/dry_run.py:_count_steps.counted.call", "tools/run_script.py:opened.note",
        "training/batch_size.py:find_batch_size.fits", "utils/checkpoint.py:_Frame.compute.pack",
    ]),
    ("a cache that is emptied when it is full: who has found or made an entry holds it himself", [
        "ground/device_errors.py:_site_of", "kernels/parts/tapes/on_cpu.py:_call_of", "ops/lazy_array.py:PendingStorage.learn", "cuda/emulator/type_cache.py:_block",
        "tensor/aliasing/windows.py:reshape_exactly",
    ]),
    ("a bag: one element is put in, and where it stands says nothing", [
        "cuda/compiler/compile_log.py:triton_listener.listen", "dispatch/plans/door_code.py:copy_function", "dispatch/plans/door_code.py:open_door", "distributed/backends/mpi/library.py:call_before_end", "io/safe_globals.py:add_value_class",
        "tensor/casting.py:warn_imaginary_dropped",
    ]),
    ("its callers hold a lock: the table's, the runtime's, that of profiles", [
        "cuda/emulator/interpreter.py:install", "profiler/recording.py:Patches.put", "profiler/recording.py:Patches.restore",
        "tensor/public_api/op_forms.py:OpForms.publish", "tensor/public_api/op_forms.py:OpForms.withdraw",
    ]),
    ("the entry belongs to the caller alone: his block, his range", ["cuda/driver/memory.py:DeviceStorage.__del__", "ground/nvtx.py:range_end"]),
    ("two threads that do it both are as good as one: packages are imported once, whoever asks", ["ops/table/lookup.py:read_plugins"]),
    ("a forked child has one thread", ["utils/tensorboard/event_file.py:_reset_in_child", "distributed/backends/nccl/watchdog.py:_in_child"]),
]  # fmt: skip
RIGHT = {place: reason for reason, places in REASONS for place in places}


class Step(NamedTuple):
    """One step on something shared: its line, what it is done to, whether it is whole by itself."""

    line: int
    name: str
    whole: bool


def container(value: ast.expr | None) -> bool:
    """Whether an expression makes a container."""
    if isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp):
        return True
    if not isinstance(value, ast.Call):
        return False
    function = value.func.value if isinstance(value.func, ast.Subscript) else value.func
    return getattr(function, "id", getattr(function, "attr", "")) in CONTAINERS


def bound(statements: list[ast.stmt]) -> set[str]:
    """The names that statements, and those in their ifs and tries, bind to containers."""
    found = set()
    for statement in statements:
        for n in ast.walk(statement) if isinstance(statement, ast.If | ast.Try) else [statement]:
            if isinstance(n, ast.Assign | ast.AnnAssign) and container(n.value):
                found |= {t.id for t in (n.targets if isinstance(n, ast.Assign) else [n.target]) if isinstance(t, ast.Name)}
    return found


INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def own(f: ast.AST, locked: bool = True) -> list[ast.AST]:
    """The nodes of a function that are not of another one inside, as they stand; without `locked` those outside of `with <a lock>:`."""
    found, rest = [], list(ast.iter_child_nodes(f))[::-1]
    while rest:
        n = rest.pop()
        if not locked and isinstance(n, ast.With) and any(ast.unparse(i.context_expr).rpartition(".")[2] in LOCKED for i in n.items):
            continue
        found.append(n)
        if not isinstance(n, INNER):
            rest += list(ast.iter_child_nodes(n))[::-1]
    return found


def targets(n: ast.AST) -> list[ast.expr]:
    """What a statement binds or deletes."""
    found = n.targets if isinstance(n, ast.Assign | ast.Delete) else [n.target] if isinstance(n, ast.AnnAssign | ast.AugAssign) else []
    return [e for t in found for e in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]


def steps_of(f: ast.FunctionDef, shared: set[str]) -> list[Step]:
    """The steps of a function on containers that others share, and on globals."""
    nodes = own(f)
    outer = {name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
    local = {a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)}
    local |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - outer
    shared = shared - local
    found: list[Step] = []
    for n in own(f, locked=False) if shared or outer else ():
        for t in targets(n):
            if isinstance(t, ast.Name) and t.id in outer:
                found.append(Step(n.lineno, t.id, not isinstance(n, ast.AugAssign)))
            elif isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) and t.value.id in shared:
                found.append(Step(n.lineno, t.value.id, isinstance(n, ast.Assign)))
        function = n.func if isinstance(n, ast.Call) else None
        if isinstance(n, ast.Call) and isinstance(function, ast.Attribute) and function.attr in STEPS:
            owner = function.value
            if isinstance(owner, ast.Name) and owner.id in shared:
                found.append(Step(n.lineno, owner.id, function.attr in WHOLE or (function.attr == "pop" and len(n.args) == 2)))
    return found


def in_steps(tree: ast.Module) -> list[tuple[str, int]]:
    """(function, line) of each function that takes several steps, or one that is not whole, without a lock."""
    found = []

    outermost = bound(tree.body)

    def visit(f: ast.FunctionDef, shared: set[str], name: str) -> None:
        steps = steps_of(f, shared)
        if any(not s.whole for s in steps) or len({s.name for s in steps}) > 1:
            found.append((name, steps[0].line))
        inside = shared | bound([n for n in own(f) if isinstance(n, ast.stmt)])
        for n in own(f):
            if isinstance(n, ast.FunctionDef):
                visit(n, inside, f"{name}.{n.name}")

    def look(statements: list[ast.stmt], lead: str) -> None:
        for n in statements:
            if isinstance(n, ast.FunctionDef):
                visit(n, outermost, lead + n.name)
            elif isinstance(n, ast.ClassDef):
                look(n.body, f"{lead}{n.name}.")

    look(tree.body, "")
    return found


BARE = {f"threading.{kind}" for kind in ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore")}


def bare_locks(tree: ast.Module) -> list[int]:
    """The lines that make a lock which a fork does not free."""
    return [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) in BARE and not n.args]


class Shared(NamedTuple):
    """What the package does with what threads share: the line of each function that takes several steps, and bare locks."""

    steps: dict[str, int]
    locks: list[str]


@pytest.fixture(scope="module")
def shared() -> Shared:
    found = Shared({}, [])
    for path in sources():
        file, tree = relative(path), ast.parse(text(path))
        found.steps.update({f"{file}:{name}": line for name, line in in_steps(tree)})
        found.locks.extend(f"{file}:{line}" for line in bare_locks(tree) if file != "ground/process/locks.py")
    return found


def test_what_threads_share_changes_in_one_step(shared: Shared) -> None:
    wrong = [f"{place} (line {line})" for place, line in shared.steps.items() if place not in RIGHT]
    assert not wrong, (
        "these change in several steps what threads share; put it there by one assignment, as a tuple, or hold one of tritensor.ground.process.locks around the "
        f"steps (`with _making:`): {', '.join(wrong)}"
    )


def test_each_reason_is_needed(shared: Shared) -> None:
    gone = RIGHT.keys() - shared.steps.keys()
    assert not gone, f"these take one step, or are gone: {sorted(gone)}"


def test_locks_are_made_where_forks_find_them(shared: Shared) -> None:
    """threading.Lock() stays locked in a forked child for ever, where another thread held it."""
    assert not shared.locks, f"take tritensor.ground.process.locks.lock() or rlock() in {', '.join(shared.locks)}"


# -- the rule itself
FAULTY = [
    # the fault: what is found is appended, by each thread
    "def quick(name):\n    found = []\n    def run(x):\n        if not found:\n            found.extend(look(name))\n        a, b = found\n    return run",
    "n = 0\ndef count():\n    global n\n    n += 1",
    "a = b = None\ndef fill():\n    global a, b\n    a = 1\n    b = 2",
    "known, order = {}, []\nknown = {}\norder = []\ndef note(k):\n    known[k] = len(order)\n    order.append(k)",
    "seen = {}\ndef forget(k):\n    if k in seen:\n        del seen[k]",
    "class A:\n    def run(self):\n        table.clear()\ntable = {}",
]
RIGHT_CODE = [
    "def quick(name):\n    found = None\n    def run(x):\n        nonlocal found\n        if found is None:\n            found = look(name)\n    return run",
    "n = 0\ndef count():\n    global n\n    with _counting:\n        n += 1",
    "known = {}\ndef look(k):\n    found = known.get(k)\n    if found is None:\n        found = known[k] = make(k)\n    return found",
    "told = set()\ndef tell(k):\n    if k not in told:\n        told.add(k)",
    "seen = {}\ndef forget(k):\n    seen.pop(k, None)",
    "def own():\n    found = []\n    found.append(1)\n    return found",
]


@pytest.mark.parametrize("code", FAULTY)
def test_several_steps_are_found(code: str) -> None:
    assert in_steps(ast.parse(code))


@pytest.mark.parametrize("code", RIGHT_CODE)
def test_one_step_is_let_through(code: str) -> None:
    assert not in_steps(ast.parse(code))
