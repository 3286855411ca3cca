"""One call of every kernel family, for compute-sanitizer to watch: `compute-sanitizer python -m tests.gpu.families [OP ...]`.

`representatives()` says which ops: the fewest that launch every kernel of the table, found by recording without a device.
"""

from __future__ import annotations

import sys

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.gpu.calls import Call, calls
from tritensor import cuda
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.ops.table import Op, registry


def _run(call: Call) -> None:
    backward = call.backward(call.forward())
    if backward is not None:
        backward()


def launched(op: Op) -> set[str]:
    """The kernels that an op's first samples launch, by module and name. Needs a process without TRITON_INTERPRET."""
    recorder = RecordingRuntime()
    before = active.use(recorder)
    try:
        for call in calls(op, sizes=False):
            _run(call)
    finally:
        active.use(before)
    return {f"{spec.kernel.fn.__module__}.{spec.kernel.fn.__name__}" for spec in recorder.launches}


def representatives() -> list[str]:
    """Ops that together launch every kernel of the table; the one with the most new kernels is taken each time."""
    kernels = {name: launched(op) for name, op in registry.items() if op.forward is not None}
    wanted, chosen = set().union(*kernels.values()), []
    while wanted:
        name = max(kernels, key=lambda n: len(kernels[n] & wanted))
        chosen.append(name)
        wanted -= kernels[name]
    return chosen


def main() -> int:
    """Run the samples of the ops named; of none, of the representatives."""
    for name in sys.argv[1:] or representatives():
        n = 0
        for call in calls(registry[name], sizes=False):
            _run(call)
            cuda.synchronize()
            n += 1
        print(f"{name}: {n} samples", flush=True)
    print("all ran", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
