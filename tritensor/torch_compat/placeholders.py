"""Names of PyTorch's that scripts import and rarely use: they are there, and say what is missing when they are called."""

from __future__ import annotations

from typing import Any

from tritensor.torch_compat.hints import hint_for
from tritensor.torch_compat.recorded_names import Name

_PLANNED = "save and load take a state and a folder, and plan by themselves"
_LAUNCHED = "ranks are started by python -m tritensor.launch"

# Modules of which every public name can be imported, and why using one raises.
NAMES_ONLY = {
    "distributed": "processes find one another through MPI and talk over MPI or NCCL; hooks of backends and options of theirs are not here",
    "distributed.algorithms": "Join, Joinable and JoinHook are",
    "distributed.checkpoint": _PLANNED,  # from here on: what there is, or what takes the place
    "distributed.checkpoint.default_planner": _PLANNED,
    "distributed.checkpoint.state_dict": "get_state_dict, set_state_dict and their options are",
    "distributed.elastic.multiprocessing": _LAUNCHED,
    "distributed.elastic.multiprocessing.errors": _LAUNCHED + ", which tells the first error",
    "distributed.fsdp": "fully_shard and FullyShardedDataParallel are",
    "distributed.optim": "ZeroRedundancyOptimizer is",
    "distributed.tensor": "tensors are cut by fully_shard alone; DeviceMesh is in distributed.device_mesh",
    "distributed.tensor.parallel": "layers are not cut over processes; fully_shard and DistributedDataParallel are",
    "fx": "nothing is traced; a module's forward is plain Python",
    "jit": "nothing is compiled; run the function or the module itself",
    "nested": hint_for("nested", ""),
    "sparse": hint_for("sparse", ""),
    "sparse.semi_structured": hint_for("sparse", ""),
    "utils.cpp_extension": "nothing is built against PyTorch's C++; write the op in Triton, or use the program's plain form of it",
}
# The same of single names, {path: {name: (kind, why)}}: what makes tensors of layouts that are not here; classes for isinstance and annotations.
_SPARSE_MAKERS = [f"sparse_{layout}_tensor" for layout in ("coo", "csr", "csc", "bsr", "bsc", "compressed")]
_SPARSE_TYPES = ["BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"]
_NOT_TRACED = "nothing is traced, a size is a number"
SINGLE_NAMES = {
    "": {
        **dict.fromkeys(_SPARSE_MAKERS, ("function", NAMES_ONLY["sparse"])),
        **dict.fromkeys(("SymInt", "SymFloat", "SymBool"), ("class", _NOT_TRACED)),
        **dict.fromkeys(("TensorType", "DeviceObjType"), ("class", "a type of PyTorch's compiler; nothing is compiled")),
    },
    "sparse": {
        **dict.fromkeys([f"{kind}Tensor" for kind in _SPARSE_TYPES], ("class", NAMES_ONLY["sparse"])),
        "spdiags": ("function", NAMES_ONLY["sparse"]),
    },
}


def find_placeholder(path: str, name: str, noted: Name | None) -> Any:
    """A function or a class of the name that raises NotImplementedError when it is called, where the name is to stand for what is not here; else None."""
    if noted is not None and path in NAMES_ONLY and noted.kind != "value":  # a value that is made up would be believed
        return make_placeholder(path, name, noted.kind, NAMES_ONLY[path])
    single = SINGLE_NAMES.get(path, {}).get(name)
    return single and make_placeholder(path, name, *single)


def make_placeholder(path: str, name: str, kind: str, why: str) -> Any:
    """A function or a class of the name that raises NotImplementedError when it is called."""
    said = f"{path}.{name}".strip(".") + f": not in tritensor: {why}"

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(said)

    if kind == "class":
        # A class: scripts subclass it, and ask isinstance.
        return type(name, (), {"__new__": refuse, "__doc__": said, "__module__": f"tritensor.{path}".strip(".")})
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__, refuse.__module__ = said, f"tritensor.{path}".strip(".")
    return refuse
