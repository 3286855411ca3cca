"""An op of the table recorded under several configs: its rule's, the rule's with one field changed, or those of the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.compared import Entry, Group
from bench.kernel_arguments import LAUNCH_OPTIONS, Refused, nearest
from bench.launches import calls_of, corners_of
from tritensor.cuda.compiler.recorded_call import Call
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.kernels.parts.launch_rules import forced
from tritensor.table import Op, Sample

# The names that kernels ask for configs by (see `forced`).
CONFIGURED = (
    "matmul", "conv2d", "conv2d_weight", "softmax", "layer_norm", "cross_entropy", "cumsum", "reduction", "reduction_join", "spread",
    "layer_norm_weight", "sort", "radix_sort", "radix_scan", "sum_parts",
)  # fmt: skip
TILES = {
    "block_m": 16,
    "block_n": 16,
    "block_k": 16,
    "BM": 1,
    "BN": 1,
    "warps": 1,
}  # fields that are doubled and halved, and the least of each
Rules = dict[str, Any]  # what each kernel's rule says, by name, in the order in which they ask


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

    rules = _rules(run)
    calls = run()
    if not calls:
        return None
    if configs:
        _check(op, rules, configs)
    main = next((r for r in rules.values() if hasattr(r, "_asdict")), None)
    changes = configs or [{}, *(variations(main) if main is not None else _warps(calls))]
    entries = [_entry(run, rules, c) for c in changes]
    shown = {k: v for k, v in main._asdict().items() if k in {f for c in changes for f in c}} if main is not None else {}
    return Group(f"{op.name} {corner}, {call}: {sample_text(sample, dtype)}", entries, shown)


def sample_text(sample: Sample, dtype: str) -> str:
    """The arrays of a call: "bfloat16[8192,4096]"."""
    arrays = [f"{dtype if x.dtype == 'float64' else x.dtype}[{','.join(map(str, x.shape))}]" for x in sample.inputs if hasattr(x, "shape")]
    return " ".join([*arrays, *(f"{k}={v}" for k, v in sample.attrs.items())])


def _rules(run: Callable[[], Any]) -> Rules:
    """What the rules of a call's kernels say."""
    found: Rules = {}

    def ask(name: str) -> Callable[[Any, Any], Any]:
        def keep(key: Any, default: Any) -> Any:
            found.setdefault(name, default)
            return default

        return keep

    with forced(**{name: ask(name) for name in CONFIGURED}):
        run()
    return found


def tunable(rule: Any) -> list[str]:
    """The fields of a config that may change: not the sizes that it is for."""
    return [f for f in rule._fields if not ("BM" in rule._fields and f in ("batch", "rows", "columns"))]


def _check(op: Op, rules: Rules, configs: list[dict[str, Any]]) -> None:
    fields = {f for rule in rules.values() if hasattr(rule, "_asdict") for f in rule._fields} | {
        n for n, r in rules.items() if isinstance(r, int)
    }
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


def variations(rule: Any) -> list[dict[str, Any]]:
    """A rule's config with one field changed: tiles and warps doubled and halved, a stage more and less; a row not held whole."""
    values = rule._asdict()
    fields = TILES | ({} if "BM" in values else {"rows": 1, "columns": 1})
    found: list[dict[str, Any]] = []
    for name, least in fields.items():
        if name not in values or (name == "BN" and values.get("whole")):
            continue
        found += [{name: n} for n in (values[name] // 2, 2 * values[name]) if n >= least and not (name == "warps" and n > 32)]
    if values.get("whole") and values["BN"] >= 2048:
        found.append({"whole": False, "BN": 2048})
    if "stages" in values:
        found += [{"stages": n} for n in (values["stages"] - 1, values["stages"] + 1) if n >= 1]
    return found


def _warps(calls: tuple[Call, ...]) -> list[dict[str, Any]]:
    """Other numbers of warps, for kernels without configs."""
    most = max(c.spec.num_warps for c in calls)
    return [{"num_warps": n} for n in (1, 2, 4, 8, 16) if n != most]
