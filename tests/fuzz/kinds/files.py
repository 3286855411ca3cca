"""Files both ways: nested states of views, shared storages, types and empties through save and load, safetensors, numpy, pickle, deepcopy."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.drawing import FLOATS, INTEGERS, Writer, literal, shape, view
from tests.fuzz.judges import Judge, beside_torch, equal_pairs, errors, foreign_files
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program

TYPES = (*FLOATS, *INTEGERS, "bool", "complex64", "complex128", "uint16", "float8_e4m3fn", "float8_e5m2")
ROADS = {
    "save": [
        "buffer = io.BytesIO()",
        "saved = tt.save(state, buffer)",
        "left0 = state",
        "right0 = (saved, buffer.seek(0), tt.load(buffer))[2]",
    ],
    "full": [
        "buffer = io.BytesIO()",
        "saved = tt.save(state, buffer)",
        "left0 = state",
        "right0 = (saved, buffer.seek(0), tt.load(buffer, weights_only=False))[2]",
    ],
    "pickle": ["drawnbytes = pickle.dumps(state)", "left0 = state", "right0 = pickle.loads(drawnbytes)"],
    "deepcopy": ["left0 = state", "right0 = copy.deepcopy(state)"],
}


def _state(w: Writer, names: list[str], deep: int = 0) -> str:
    """A nested value as text."""
    rng = w.rng
    pick = rng.random()
    if pick < 0.5 or deep > 2:
        return rng.choice(names)
    inner = [_state(w, names, deep + 1) for _ in range(rng.randint(0, 3))]
    if pick < 0.7:
        return "{" + ", ".join(f"{rng.choice((repr(f'k{k}'), repr(f'deep.{k}'), str(k)))}: {v}" for k, v in enumerate(inner)) + "}"
    if pick < 0.85:
        return "[" + ", ".join(inner) + "]"
    return rng.choice((f"({', '.join(inner)},)" if inner else "()", "None", "3", "'text'", "1.5", "True", "2 ** 70", "b'bytes'", "nan"))


def draw(rng: random.Random) -> Program:
    """Tensors, views of them, a state, a road there and back; then a write, which the copy must not see."""
    w = Writer(rng, errors=0.0)
    for _ in range(rng.randint(1, 3)):
        dtype = rng.choice(TYPES)
        sizes = shape(rng, 0, 3)
        if dtype.startswith("float8"):
            w.put(f"{literal(rng, sizes, 'float32')}.to(tt.{dtype})")
        else:
            w.put(literal(rng, sizes, dtype, grad="float" in dtype and rng.random() < 0.2, special="float" in dtype and rng.random() < 0.3))
    for _ in range(rng.randint(0, 3)):
        name = w.any()
        if name and "float8" not in str(w.scope[name].dtype):
            w.put(
                view(rng, w.scope[name], name).replace(".expand(", ".reshape(-1).detach().expand(")
                if rng.random() < 0.1
                else view(rng, w.scope[name].detach(), f"{name}.detach()")
            )
    names = w.tensors() or ["tt.ones(2)"]
    if rng.random() < 0.2:
        w.put(f"nn.Parameter({literal(rng, (2,), 'float32')})")
    flat = "{" + ", ".join(f"'{n}': {n}.detach()" for n in rng.sample(names, rng.randint(1, len(names)))) + "}"
    road = rng.choice([*ROADS, "safetensors", "numpy"])
    state = flat if road in ("safetensors", "numpy") else f"[{_state(w, names)}, {_state(w, names)}]"
    w.statements.append(f"state = {state}")
    if road == "safetensors":
        w.statements += [
            "from tritensor.io import load_file, save_file",
            "left0 = {k: v.clone() for k, v in state.items()}",
            "folder = tempfile.TemporaryDirectory()",
            "saved = save_file(left0, folder.name + '/a.safetensors')",
            "right0 = (saved, load_file(folder.name + '/a.safetensors'))[1]",
        ]
    elif road == "numpy":
        w.statements += [
            "left0 = [v.clone() for v in state.values() if 'float8' not in str(v.dtype) and 'bfloat16' not in str(v.dtype)]",
            "right0 = [tt.from_numpy(v.numpy()) for v in left0]",
        ]
    else:
        w.statements += ROADS[road]
    if names[0] in w.scope and road != "numpy":
        w.statements += ["before = copy.deepcopy(right0)", f"with tt.no_grad(): {names[0]}.zero_()", "left1 = before", "right1 = right0"]
    return Program(tuple(w.statements))


def judges(torch: Any) -> list[Judge]:
    return [equal_pairs, beside_torch(torch), foreign_files(torch)] if torch is not None else [errors, equal_pairs]


KIND = Kind("files", draw, judges, weight=4)
