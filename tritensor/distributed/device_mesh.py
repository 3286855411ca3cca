"""DeviceMesh: processes in a grid of one or more dimensions, with a group along each line of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.distributed.initialisation import init_process_group, new_group
from tritensor.distributed.process_group import (
    GroupMember,
    ProcessGroup,
    asks_outside,
    get_process_group_ranks,
    get_rank,
    is_initialized,
    joined,
)
from tritensor.errors import ArgumentError
from tritensor.tensor.core import Tensor


class DeviceMesh:
    """Processes of the world as an array of their numbers; each dimension may have a name.

    All processes make the same meshes in the same order, as with new_group. `mesh["dp"]` is the part along one dimension in which this
    process stands, `mesh["dp", "tp"]` along several.

    Args:
        device_type: "cpu" or "cuda".
        mesh: numbers of processes, nested lists or a tensor.
        mesh_dim_names: a name for each dimension.

    Raises ValueError for numbers that the world has not or that stand there twice, and for names that are not as many as dimensions.
    """

    def __init__(self, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None, **given: Any) -> None:
        ranks = np.array(mesh.tolist() if isinstance(mesh, Tensor) else mesh, dtype=np.int64)
        _check("DeviceMesh", device_type, ranks.shape, mesh_dim_names)
        if not is_initialized():
            init_process_group()
        world = joined("DeviceMesh")
        if ranks.size != len(set(ranks.flat)):
            raise ArgumentError(f"DeviceMesh: mesh {ranks.tolist()} holds a rank twice; each process stands in one place")
        if ranks.min() < 0 or ranks.max() >= world.size():
            raise ArgumentError(f"DeviceMesh: mesh {ranks.tolist()}; this world has ranks 0 to {world.size() - 1}")
        self._set(device_type, ranks, mesh_dim_names, [_groups(ranks, d, world) for d in range(ranks.ndim)])

    def _set(self, device_type: str, ranks: np.ndarray, names: tuple[str, ...] | None, groups: list[Any]) -> None:
        self.device_type, self._ranks, self.mesh_dim_names = device_type, ranks, None if names is None else tuple(names)
        self._lines = groups
        here = np.argwhere(ranks == get_rank())
        self._place = tuple(int(i) for i in here[0]) if len(here) else None

    @classmethod
    def _made(cls, device_type: str, ranks: np.ndarray, names: tuple[str, ...] | None, groups: list[Any]) -> DeviceMesh:
        made = cls.__new__(cls)
        made._set(device_type, ranks, names, groups)
        return made

    @classmethod
    def from_group(
        cls, group: ProcessGroup | Sequence[ProcessGroup], device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> DeviceMesh:  # fmt: skip
        """A mesh over groups that are there: one group, or with `mesh` one for each of its dimensions."""
        if isinstance(group, ProcessGroup):
            ranks = np.array(get_process_group_ranks(group))
            if mesh is not None and np.array(mesh).tolist() != ranks.tolist():
                raise ArgumentError(
                    f"DeviceMesh.from_group: mesh {np.array(mesh).tolist()} is not the group's {ranks.tolist()}; leave it out"
                )
            _check("DeviceMesh.from_group", device_type, ranks.shape, mesh_dim_names)
            return cls._made(device_type, ranks, mesh_dim_names, [group])
        groups = list(group)
        if mesh is None:
            raise ArgumentError("DeviceMesh.from_group: several groups need mesh, which says where each process stands")
        ranks = np.array(mesh.tolist() if isinstance(mesh, Tensor) else mesh, dtype=np.int64)
        _check("DeviceMesh.from_group", device_type, ranks.shape, mesh_dim_names)
        if len(groups) != ranks.ndim:
            raise ArgumentError(f"DeviceMesh.from_group: {len(groups)} groups for a mesh of {ranks.ndim} dimensions; give one for each")
        return cls._made(device_type, ranks, mesh_dim_names, groups)

    @property
    def mesh(self) -> Tensor:
        """The processes' numbers, an int64 tensor of the mesh's shape."""
        return Tensor.wrap(self._ranks.copy())

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes stand along each dimension."""
        return self._ranks.shape

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return self._ranks.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, or along one dimension."""
        return self._ranks.size if mesh_dim is None else self.shape[self._dim("size", mesh_dim)]

    def get_rank(self) -> int:
        """This process' number in the world."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process stands, None where it does not."""
        return self._place

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process stands along a dimension. Raises RuntimeError where several are there and none is named."""
        return get_rank(self.get_group(mesh_dim))

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group along a dimension in which this process stands. Raises RuntimeError where several are there and none is named."""
        if mesh_dim is None:
            if self.ndim > 1:
                raise ArgumentError(f"DeviceMesh.get_group: the mesh has {self.ndim} dimensions; name one, by number or name")
            mesh_dim = 0
        return self._lines[self._dim("get_group", mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The groups along all dimensions in which this process stands."""
        return list(self._lines)

    def _dim(self, name: str, dim: int | str) -> int:
        if isinstance(dim, str):
            if dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"DeviceMesh.{name}: {dim!r} is no dimension; the names are {self.mesh_dim_names}")
            assert self.mesh_dim_names is not None
            return self.mesh_dim_names.index(dim)
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(f"DeviceMesh.{name}: dimension {dim} of a mesh of {self.ndim}; give 0 to {self.ndim - 1}, or a name")
        return dim % self.ndim

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part along the named dimensions, in their order in this mesh, in which this process stands."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if self.mesh_dim_names is None:
            raise ArgumentError(
                f"DeviceMesh: mesh[{names}] asks for names, and the dimensions have none; give mesh_dim_names where it is made"
            )
        dims = [self._dim("__getitem__", n) for n in names]
        if dims != sorted(set(dims)):
            raise KeyError(f"DeviceMesh: mesh[{names}]: name each dimension once, in the order of {self.mesh_dim_names}")
        place = self._place if self._place is not None else (0,) * self.ndim
        index = tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))
        return self._made(self.device_type, self._ranks[index], names, [self._lines[d] for d in dims])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (
            self.device_type == other.device_type and self.mesh_dim_names == other.mesh_dim_names and np.array_equal(self._ranks, other._ranks)
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, self.shape, self._ranks.tobytes()))

    def __repr__(self) -> str:
        if self.mesh_dim_names is None:
            return f"DeviceMesh({self._ranks.tolist()}, '{self.device_type}')"
        sizes = ", ".join(f"{n}={k}" for n, k in zip(self.mesh_dim_names, self.shape, strict=True))
        return f"DeviceMesh(({sizes}), '{self.device_type}')"


def _check(name: str, device_type: str, shape: Sequence[int], names: Sequence[str] | None) -> None:
    if device_type not in ("cpu", "cuda"):
        raise ArgumentError(f"{name}: device_type {device_type!r}; give 'cpu' or 'cuda', without a number")
    if not shape or not all(n > 0 for n in shape):
        raise ArgumentError(f"{name}: a mesh of shape {tuple(shape)}; give sizes of 1 and more")
    if names is not None and (len(names) != len(shape) or len(set(names)) != len(names)):
        raise ArgumentError(
            f"{name}: mesh_dim_names {tuple(names)} for a mesh of shape {tuple(shape)}; give a name of its own for each dimension"
        )


def _groups(ranks: np.ndarray, dim: int, world: ProcessGroup) -> Any:
    """Make the groups of all lines along a dimension; the one in which this process stands."""
    if ranks.ndim == 1 and ranks.tolist() == list(range(world.size())):
        return world
    mine: Any = GroupMember.NON_GROUP_MEMBER
    for line in np.moveaxis(ranks, dim, -1).reshape(-1, ranks.shape[dim]):
        made = new_group([int(r) for r in line], sort_ranks=False)
        if not asks_outside(made):
            mine = made
    return mine


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None
) -> DeviceMesh:  # fmt: skip
    """The processes 0, 1, ... in a grid of `mesh_shape`. Makes the process group, where there is none yet.

    Raises ValueError where the shape does not hold as many processes as the world has.
    """
    _check("init_device_mesh", device_type, mesh_shape, mesh_dim_names)
    if backend_override is not None:
        raise NotImplementedError(
            "init_device_mesh: backend_override is not in tritensor; the groups have the world's backends, leave it out"
        )
    if not is_initialized():
        init_process_group()
    size = joined("init_device_mesh").size()
    if math.prod(mesh_shape) != size:
        raise ArgumentError(
            f"init_device_mesh: mesh_shape {tuple(mesh_shape)} holds {math.prod(mesh_shape)} processes, and the world has {size}; give a shape of {size}"
        )
    return DeviceMesh(device_type, np.arange(size).reshape(mesh_shape), mesh_dim_names=mesh_dim_names)
