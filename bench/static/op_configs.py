"""An op of the table recorded under several configs: its rule's, those that its kernel declares worth trying, or those of the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bench.static.kernel_arguments import LAUNCH_OPTIONS, Refused, nearest
from bench.static.launches import calls_of, corners_of
from tritensor.cuda.compiler.recorded_call import Call
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.ops.table import Op, Sample
from tritensor.ops.tuning.config_choice import Choice, forced, noted
from tritensor.ops.tuning.tunables import known

_MOST = 12  # configs of an op beside its rule's, where none are named
Rules = dict[str, Choice]  # what each kernel takes by its rule, by name, in the order in which they ask


class Entry(NamedTuple):
    """One config of a call: the fields that make it, the launches that it leads to (what it cannot be launched for in `failure`, then there is none)."""

    config: dict[str, Any]
    calls: tuple[Call, ...]
    failure: str = ""


class Group(NamedTuple):
    """One call under several configs. `rule`: the fields that configs change, as they are without; `timed`: whether the grid is known."""

    name: str
    entries: list[Entry]
    rule: dict[str, Any]
    timed: bool = True


def groups(
    op: Op, recorder: RecordingRuntime, dtype: str | None, corners: tuple[str, ...], sizes: list[int], configs: list[dict[str, Any]]
) -> list[Group]:
    """The op's timed sizes (its first sample where it has none), forward and backward, each under all configs.

    Args:
        dtype: None takes bfloat16 where the op does, else its first type. sizes: which of the timed sizes; none for all.
        configs: fields of the op's configs and what they become, num_warps or num_stages of its launches; none for variations of the rule.
    Raises Refused for a type or size that the op does not have, a field that no config of it has, an op without kernels.
    """
    kind = dtype or ("bfloat16" if "bfloat16" in op.dtypes else op.dtypes[0])
    if op.forward is None:
        raise Refused(f"--compare: {op.name} is a view: it launches nothing")
    if kind not in op.dtypes:
        raise Refused(f"--dtype: {op.name} does not take {kind}; it takes {', '.join(op.dtypes)}")
    calls = calls_of(op)
    timed = [c for c in calls if c[0].startswith("size")] or calls[:1]
    for n in sizes:
        if not 0 <= n < len(timed):
            raise Refused(f"--size: {op.name} has {len(timed)} timed sizes, 0 to {len(timed) - 1}; {n} was asked for")
    found = []
    for name, sample in [timed[n] for n in sizes] or timed:
        for corner in corners:
            group = _group(op, recorder, kind, corner, name, sample, configs)
            if group is not None:
                found.append(group)
    if not found:
        raise Refused(f"--compare: {op.name} launches nothing in {' and '.join(corners)}")
    return found


def _group(
    op: Op, recorder: RecordingRuntime, dtype: str, corner: str, call: str, sample: Sample, configs: list[dict[str, Any]]
) -> Group | None:
    def run() -> tuple[Call, ...]:
        recorder.calls = []
        for reached in corners_of(op, sample, dtype):
            if reached == corner:
                break
            recorder.calls = []
        else:
            return ()
        found, recorder.calls = tuple(recorder.calls), None
        return found

    with noted() as asked:
        calls = run()
    rules: Rules = {}
    for one in asked:
        rules.setdefault(one.kernel, one)
    if not calls:
        return None
    if configs:
        _check(op, rules, configs)
    main = next((c for c in rules.values() if c.kernel in known), None)
    if configs:
        changes, entries = configs, [_entry(run, rules, c) for c in configs]
    elif main is not None:
        changes = [{}, *variations(main)]
        entries = [_entry(run, {main.kernel: main}, c) for c in changes]
    else:
        changes = [{}, *_warps(calls)]
        entries = [_entry(run, {}, c) for c in changes]
    shown = {k: v for k, v in fields_of(main).items() if k in {f for c in changes for f in c}} if main is not None else {}
    return Group(f"{op.name} {corner}, {call}: {sample_text(sample, dtype)}", entries, shown)


def sample_text(sample: Sample, dtype: str) -> str:
    """The arrays of a call: "bfloat16[8192,4096]"."""
    arrays = [f"{dtype if x.dtype == 'float64' else x.dtype}[{','.join(map(str, x.shape))}]" for x in sample.inputs if hasattr(x, "shape")]
    return " ".join([*arrays, *(f"{k}={v}" for k, v in sample.attrs.items())])


def fields_of(choice: Choice) -> dict[str, Any]:
    """A rule's config by field; one that is a number goes by its kernel's name."""
    rule = choice.heuristic
    return rule._asdict() if hasattr(rule, "_asdict") else {choice.kernel: rule}


def _check(op: Op, rules: Rules, configs: list[dict[str, Any]]) -> None:
    fields = {f for choice in rules.values() for f in fields_of(choice)}
    for config in configs:
        for name in config:
            if name not in fields and name not in ("num_warps", "num_stages"):
                known = [*sorted(fields), "num_warps", "num_stages"]
                raise Refused(f"--config: no config of {op.name} has {name}{nearest(name, known)}; they have {', '.join(known)}")


def _entry(run: Callable[[], tuple[Call, ...]], rules: Rules, config: dict[str, Any]) -> Entry:
    """The launches of a call whose configs have these fields."""

    def change(name: str) -> Callable[[Any, Any], Any]:
        def changed(key: Any, default: Any) -> Any:
            if not hasattr(default, "_replace"):
                return config.get(name, default)
            return default._replace(**{k: v for k, v in config.items() if k in default._fields})

        return changed

    try:
        with forced(**{name: change(name) for name in rules}):
            calls = run()
    except Exception as error:  # a config that the op cannot be launched with: the others are compared
        return Entry(config, (), " ".join(f"{type(error).__name__}: {error}".split())[:200])
    options = {k: v for k, v in config.items() if k in LAUNCH_OPTIONS}
    return Entry(config, tuple(c._replace(spec=c.spec._replace(**options)) for c in calls))


def variations(choice: Choice) -> list[dict[str, Any]]:
    """The configs worth trying, as their kernel declares them, each by the fields in which it differs from the rule's."""
    rule = choice.heuristic
    found = []
    for config in known[choice.kernel].space(choice.key, rule):
        if hasattr(config, "_asdict"):
            found.append({k: v for k, v in config._asdict().items() if v != getattr(rule, k)})
        else:
            found.append({choice.kernel: config})
    return [c for c in found if c][:_MOST]


def _warps(calls: tuple[Call, ...]) -> list[dict[str, Any]]:
    """Other numbers of warps, for kernels without configs."""
    most = max(c.spec.num_warps for c in calls)
    return [{"num_warps": n} for n in (1, 2, 4, 8, 16) if n != most]
