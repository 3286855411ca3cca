"""A kernel of a file, `file.py:kernel`, recorded under several configs: from --args and --grid, or from the file's own example()."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from triton.runtime.jit import JITFunction, KernelInterface

from bench.static.kernel_arguments import LAUNCH_OPTIONS, Refused, Unknown, arguments, check_names, grid_of, known_value, nearest
from bench.static.op_configs import Entry, Group
from tritensor.cuda.compiler.arguments import LaunchCall, parameters
from tritensor.cuda.compiler.recorded_call import Call, call_of
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime

EXAMPLE = "example"  # the function of a file that calls its kernels once


class Kernel(NamedTuple):
    """A kernel of a file: as it stands there (perhaps under @triton.autotune), and the function itself."""

    module: Any
    outer: Any
    function: JITFunction[Any]

    @property
    def names(self) -> list[str]:
        return [p.name for p in parameters(self.function.fn)]

    @property
    def configs(self) -> list[dict[str, Any]]:
        """The configs that @triton.autotune gives; none without it."""
        found: list[dict[str, Any]] = []
        layer = self.outer
        while not isinstance(layer, JITFunction):
            for one in getattr(layer, "configs", ()):
                options = {k: getattr(one, k, None) for k in LAUNCH_OPTIONS}
                defaults = {"num_warps": None, "num_ctas": 1}
                found.append({**one.kwargs, **{k: v for k, v in options.items() if v is not None and v != defaults.get(k)}})
            layer = layer.fn
        return found

    def heuristics(self, named: dict[str, Any]) -> dict[str, Any]:
        """The values that @triton.heuristics calculates, the outermost first."""
        found: dict[str, Any] = {}
        layer = self.outer
        while not isinstance(layer, JITFunction):
            for name, of in (getattr(layer, "values", None) or {}).items():
                found[name] = of({**named, **found})
            layer = layer.fn
        return found


def load(path: str, name: str) -> Kernel:
    """The kernel `name` of the Python file at `path`, which is run. Raises Refused for a file that is not there or raises, and for no such kernel."""
    file = Path(path)
    if not file.is_file():
        raise Refused(f"--compare {path}:{name}: no such file as {path}")
    stem = file.stem
    called = stem if stem not in sys.modules and importlib.util.find_spec(stem) is None else f"kernels_of_{stem}"
    spec = importlib.util.spec_from_file_location(called, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[called] = module  # kernels find the functions they call through their module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file raises: it is theirs to mend
        raise Refused(f"--compare {path}: the file raises when it is run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(file.resolve().parent))
    kernels = [k for k, v in vars(module).items() if isinstance(v, KernelInterface)]
    outer = getattr(module, name, None)
    if not isinstance(outer, KernelInterface):
        raise Refused(
            f"--compare: {path} has no kernel {name}{nearest(name, kernels)}; its kernels are {', '.join(kernels) or 'none (@triton.jit)'}"
        )
    function: Any = outer
    while not isinstance(function, JITFunction):
        function = function.fn
    return Kernel(module, outer, function)


def groups(kernel: Kernel, recorder: RecordingRuntime, given: str | None, grid: str | None, configs: list[dict[str, Any]]) -> list[Group]:
    """The kernel's launches, each under all configs: those given, else those of @triton.autotune, else the one that is launched.

    Args:
        given: --args, or None for the file's example(). grid: --grid, which takes the place of example()'s own.
    Raises Refused for a config with a foreign name, arguments that are missing, a file without example() and no --args.
    """
    configs = configs or kernel.configs or [{}]
    for one in configs:
        check_names(one, kernel.names, kernel.function.__name__)
    if given is not None:
        named = arguments(given)
        for name in named:
            if name not in kernel.names:
                raise Refused(
                    f"--args: {kernel.function.__name__} has no parameter {name}{nearest(name, kernel.names)}; it takes {', '.join(kernel.names)}"
                )
        made = _Launched(named, grid, {})
        return [Group(kernel.function.__name__, [_entry(kernel, made, c) for c in configs], {}, grid is not None)]
    example = getattr(kernel.module, EXAMPLE, None)
    if example is None:
        raise Refused(
            f"--compare: say what {kernel.function.__name__}({', '.join(kernel.names)}) is launched with: --args 'x=*bf16[4096,4096],n=4096' "
            f"and --grid, or write a function {EXAMPLE}() into the file that calls the kernel once"
        )
    return _from_example(kernel, recorder, example, grid, configs)


class _Launched(NamedTuple):
    """`kernel[grid](...)` as it was called: arguments by name, a grid (numbers, a function of the arguments, or text), launch options."""

    named: dict[str, Any]
    grid: Any
    options: dict[str, Any]


def _entry(kernel: Kernel, made: _Launched, config: dict[str, Any]) -> Entry:
    """One config of a launch. What is missing for all configs is refused; what one config alone cannot be launched with is its failure."""
    named = {**made.named, **{k: v for k, v in config.items() if k not in LAUNCH_OPTIONS}}
    named |= kernel.heuristics(named)
    options = {**made.options, **{k: v for k, v in config.items() if k in LAUNCH_OPTIONS}}
    missing = [p for p in parameters(kernel.function.fn) if p.name not in named and p.default is inspect.Parameter.empty]
    if missing:
        constant = [p.name for p in missing if p.constexpr]
        mend = f"--config {','.join(f'{n}=...' for n in constant)}" if constant else f"--args '{missing[0].name}=*fp32[1024]'"
        raise Refused(f"--compare: no value for {', '.join(p.name for p in missing)} of {kernel.function.__name__}; give {mend}")
    grid = made.grid
    if isinstance(grid, str):
        grid = grid_of(grid, named)
    try:
        grid = (1,) if grid is None else tuple(grid(named)) if callable(grid) else tuple(grid)
        return Entry(config, (_call(kernel, named, tuple(int(n) for n in grid), options),))
    except Exception as error:  # a config that its grid or its types do not fit: the others are compared
        return Entry(config, (), f"{type(error).__name__}: {error}")


def _call(kernel: Kernel, named: dict[str, Any], grid: tuple[int, ...], options: dict[str, Any]) -> Call:
    more = tuple((k, options[k]) for k in ("num_ctas", "maxnreg") if options.get(k) not in (None, 1))
    plain = {k: _bare(known_value(v)) for k, v in named.items()}
    found = call_of(LaunchCall(kernel.function, grid, (), plain, options.get("num_warps", 4), options.get("num_stages", 3), more))
    typed = {p.name: t for p, t in zip(parameters(kernel.function.fn), found.spec.types, strict=True)}
    places = [n for n, t in typed.items() if isinstance(t, str) and t != "constexpr"]
    if len(places) != len(found.values):  # tuples among the arguments: all of them are known
        return found
    kept = [(kind, None if isinstance(named.get(n), Unknown) else value) for n, (kind, value) in zip(places, found.values, strict=True)]
    return found._replace(values=tuple(kept))


def _bare(value: Any) -> Any:
    """A tensor's array; whatever else is as it is."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_bare(v) for v in value)
    return getattr(value, "_array", value) if type(value).__name__ in ("Tensor", "Parameter") else value


def _from_example(
    kernel: Kernel, recorder: RecordingRuntime, example: Callable[..., Any], grid: str | None, configs: list[dict[str, Any]]
) -> list[Group]:
    """Run example() with `kernel[grid](...)` written down instead of done; what goes through tritensor's launch() is recorded, too."""
    asked = [p.name for p in inspect.signature(example).parameters.values()]
    runs: list[tuple[list[_Launched], list[Call]]] = []
    for config in configs:
        runs.append(_run(kernel, recorder, example, {k: v for k, v in config.items() if k in asked}))
        if not asked:  # one run tells all
            runs *= len(configs)
            break
    count = max(len(made) + len(calls) for made, calls in runs)
    if count == 0:
        raise Refused(
            f"--compare: {EXAMPLE}() launches {kernel.function.__name__} not once; call {kernel.function.__name__}[grid](...) in it"
        )
    found = []
    for n in range(count):
        entries = []
        for config, (made, calls) in zip(configs, runs, strict=True):
            if n < len(made):
                launched = made[n]._replace(grid=grid) if grid is not None else made[n]
                entries.append(_entry(kernel, launched, config))
            elif n - len(made) < len(calls):
                entries.append(
                    Entry(config, (_changed(kernel, calls[n - len(made)], {k: v for k, v in config.items() if k not in asked}),))
                )
            else:
                entries.append(Entry(config, (), f"{EXAMPLE}() launches it {len(made) + len(calls)} times with this config, not {n + 1}"))
        found.append(Group(kernel.function.__name__ + (f", launch {n + 1} of {EXAMPLE}()" if count > 1 else ""), entries, {}))
    return found


def _run(
    kernel: Kernel, recorder: RecordingRuntime, example: Callable[..., Any], given: dict[str, Any]
) -> tuple[list[_Launched], list[Call]]:
    made: list[_Launched] = []
    names = kernel.names

    def note(*args: Any, grid: Any, warmup: bool = False, **named: Any) -> None:
        options = {k: named.pop(k) for k in LAUNCH_OPTIONS if k in named}
        made.append(_Launched({**dict(zip(names, args, strict=False)), **named}, grid, options))

    recorder.calls = []
    others = [v for v in vars(kernel.module).values() if isinstance(v, KernelInterface) and v is not kernel.outer]
    for other in others:
        other.run = lambda *args, **named: None  # another kernel's launches are not asked for, and there is no GPU for them
    kernel.outer.run = note
    try:
        example(**given)
    except Exception as error:  # theirs to mend
        raise Refused(f"--compare: {EXAMPLE}() raises {type(error).__name__}: {error}") from error
    finally:
        for patched in (kernel.outer, *others):
            patched.__dict__.pop("run", None)
    calls = [c for c in recorder.calls if c.spec.kernel is kernel.function]
    recorder.calls = None
    return made, calls


def _changed(kernel: Kernel, call: Call, config: dict[str, Any]) -> Call:
    """A recorded launch with a config's values in place of its own. The grid stays: an example() that takes the config's names makes its own."""
    place: dict[str, tuple[int, ...]] = {p.name: (i,) for i, p in enumerate(parameters(kernel.function.fn))}
    changed = {place[k]: v for k, v in config.items() if k in place}
    spec = call.spec
    constants = tuple((path, changed.get(path, value)) for path, value in spec.constants)
    typed = tuple(type(value) if path in changed else t for (path, value), t in zip(constants, spec.typed, strict=True))
    more = tuple((k, config[k]) for k in ("num_ctas", "maxnreg") if k in config)
    options = tuple(pair for pair in spec.options if pair[0] not in dict(more)) + more
    return call._replace(
        spec=spec._replace(
            constants=constants, typed=typed, options=options, num_warps=config.get("num_warps", spec.num_warps),
            num_stages=config.get("num_stages", spec.num_stages),
        )
    )  # fmt: skip
