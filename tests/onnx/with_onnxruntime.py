"""The same in ONNX Runtime, which is no dependency: written here, run in any environment that has it.

python -m tests.onnx.with_onnxruntime write FOLDER        # where tritensor is: every op's samples and every layer, with their outputs
python tests/onnx/with_onnxruntime.py run FOLDER          # where onnxruntime and numpy are
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

# What the runtime does by itself, and the standard leaves open: NaN in maxima and orders, the mean of nothing, types that it cannot hand out
OPEN = {
    "amax", "amin", "argmax", "argmin", "max_dim", "min_dim", "cummax", "cummin", "mean", "gelu", "sign", "searchsorted", "cast", "full", "resample",
}  # fmt: skip


def written(folder: Path) -> int:
    """Write models, inputs and outputs; gives how many."""
    import tritensor as tt
    from tests.onnx.sampled import exported
    from tests.onnx.test_layers import CASES, MADE
    from tests.onnx.test_ops import CHANCE, LARGE, TRANSLATED
    from tritensor.ops.table import registry as ops
    from tritensor.testing.questions.cases import samples

    found: list[tuple[str, bytes, list[np.ndarray], list[np.ndarray]]] = []
    for name in [n for n in TRANSLATED if n not in CHANCE]:
        op = ops[name]
        dtype = "float32" if any(d.startswith("float") for d in op.dtypes) else op.dtypes[0]
        for k, sample in enumerate(samples(op)):
            if 0 < sum(getattr(x, "size", 0) for x in sample.inputs) <= LARGE:
                program, wanted, tensors = exported(op, sample, dtype)
                found.append((f"op {name} {k}", program.model_proto.SerializeToString(), [np.array(x.numpy()) for x in tensors], wanted))
    for name, cases in CASES.items():
        for k, (make, given) in enumerate(cases):
            tt.manual_seed(k)
            args = tuple([MADE[s]() if isinstance(s, str) else tt.randn(*s) for s in given])
            model = make().eval()
            program = tt.onnx.export(model, args)
            with tt.no_grad():
                outs = model(*[x.clone() for x in args])
            flat = [np.array(y.numpy()) for y in (outs if isinstance(outs, tuple) else (outs,)) if isinstance(y, tt.Tensor)]
            if len(flat) == len(program.outputs):
                found.append((f"layer {name} {k}", program.model_proto.SerializeToString(), [np.array(x.numpy()) for x in args], flat))
    (folder / "cases.pickle").write_bytes(pickle.dumps(found))
    return len(found)


def disagreements(folder: Path) -> tuple[int, list[str]]:
    """(how many cases, what is not the same)."""
    import onnxruntime  # type: ignore[import-not-found]

    onnxruntime.set_default_logger_severity(4)
    cases = pickle.loads((folder / "cases.pickle").read_bytes())
    wrong = []
    for name, model, inputs, wanted in cases:
        try:
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            got = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)})
        except Exception as error:  # of the runtime, which has classes of its own
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
            continue
        wrong += [f"{name}: {said}" for a, b in zip(got, wanted, strict=True) if (said := _apart(a, b))]
    return len(cases), [w for w in wrong if w.split()[1] not in OPEN]


def _apart(a: Any, b: Any) -> str:
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype} {a.shape}, and not {b.dtype} {b.shape}"
    same = np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-4, atol=1e-4, equal_nan=True)
    return "" if same else f"{a.reshape(-1)[:4]}, and not {b.reshape(-1)[:4]}"


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "write":
        print(written(where), "models")
    else:
        number, told = disagreements(where)
        print("\n".join([*told, f"{number - len(told)} of {number} agree"]))
        sys.exit(bool(told))
