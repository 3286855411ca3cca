"""Names of PyTorch's that scripts import and rarely use: they are there, and say what is missing when they are called."""

from __future__ import annotations

from typing import Any

_ONE_PROCESS = "tritensor communicates among one process yet"

# Modules of which every public name can be imported, and why using one raises.
NAMES_ONLY = {
    "distributed": _ONE_PROCESS,
    "distributed.algorithms": _ONE_PROCESS,
    "distributed.checkpoint": _ONE_PROCESS + "; save the state_dict",
    "distributed.checkpoint.default_planner": _ONE_PROCESS + "; save the state_dict",
    "distributed.checkpoint.state_dict": _ONE_PROCESS + "; save the state_dict",
    "distributed.elastic.multiprocessing": _ONE_PROCESS,
    "distributed.elastic.multiprocessing.errors": _ONE_PROCESS,
    "distributed.fsdp": _ONE_PROCESS,
    "distributed.fsdp.wrap": _ONE_PROCESS,
    "distributed.optim": _ONE_PROCESS,
    "distributed.tensor": _ONE_PROCESS,
    "distributed.tensor.parallel": _ONE_PROCESS,
    "fx": "nothing is traced; a module's forward is plain Python",
    "jit": "nothing is compiled; run the function or the module itself",
    "utils.cpp_extension": "nothing is built against PyTorch's C++; write the op in Triton, or use the program's plain form of it",
}


def stand_in(path: str, name: str, kind: str) -> Any:
    """A function or a class of the name that raises NotImplementedError when it is called."""
    said = f"{path}.{name}: not in tritensor: {NAMES_ONLY[path]}"

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(said)

    if kind == "class":
        return type(name, (), {"__new__": refuse, "__doc__": said, "__module__": f"tritensor.{path}"})
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__, refuse.__module__ = said, f"tritensor.{path}"
    return refuse
