"""DeviceMesh: processes in a grid of one or more dimensions, with a group along each line of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.cuda.availability import gpus
from tritensor.cuda.devices import set_device
from tritensor.distributed.environment import read_local_rank
from tritensor.distributed.initialisation import init_process_group, new_group
from tritensor.distributed.process_group import (
    GroupMember,
    ProcessGroup,
    get_process_group_ranks,
    get_rank,
    is_initialized,
    is_outside,
    require_group,
)
from tritensor.ground.errors import ArgumentError
from tritensor.ground.thread_state import here
from tritensor.tensor.core import Tensor


class DeviceMesh:
    """Processes of the world as an array of their numbers; each dimension may have a name.

    All processes make the same meshes in the same order, as with new_group. `mesh["dp"]` is the part along one dimension in which this
    process stands, `mesh["dp", "tp"]` along several. Where there is no process group yet, one is made.

    Args:
        device_type: "cpu" or "cuda".
        mesh: numbers of processes, nested lists or a tensor.
        mesh_dim_names: a name for each dimension.

    Raises:
        ValueError: numbers that the world has not or that stand there twice; names that are not as many as dimensions.
        TypeError: a mesh that is no array of whole numbers, names that are no text.
    """

    def __init__(
        self, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None
    ) -> None:  # fmt: skip
        ranks = _to_ranks("DeviceMesh", mesh)
        _check("DeviceMesh", device_type, ranks.shape, mesh_dim_names)
        _refuse_override("DeviceMesh", backend_override)
        world = _require_world("DeviceMesh", device_type)
        # A process has one coordinate, by which its groups are found.
        if ranks.size != len(set(ranks.flat)):
            raise ArgumentError(f"DeviceMesh: mesh {ranks.tolist()} holds a rank twice; each process stands in one place")
        if ranks.min() < 0 or ranks.max() >= world.size():
            raise ArgumentError(f"DeviceMesh: mesh {ranks.tolist()}; this world has ranks 0 to {world.size() - 1}")
        self._set_fields(device_type, ranks, mesh_dim_names, [_make_groups(ranks, d, world) for d in range(ranks.ndim)])

    def _set_fields(
        self, device_type: str, ranks: np.ndarray, names: tuple[str, ...] | None, groups: list[Any], root: DeviceMesh | None = None,
        dims: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.device_type, self._ranks, self.mesh_dim_names = device_type, ranks, None if names is None else tuple(names)
        self._lines = groups
        # The mesh that this is a part of, and which of its dimensions; what _flatten made is found by its name from the root.
        self._root, self._dims = self if root is None else root, tuple(dims) if root is not None else tuple(range(ranks.ndim))
        self._flattened: dict[str, DeviceMesh] = {}
        mine = np.argwhere(ranks == get_rank())
        self._coordinate = tuple(int(i) for i in mine[0]) if len(mine) else None

    @classmethod
    def _create(
        cls, device_type: str, ranks: np.ndarray, names: tuple[str, ...] | None, groups: list[Any], root: DeviceMesh | None = None,
        dims: Sequence[int] = (),
    ) -> DeviceMesh:  # fmt: skip
        made = cls.__new__(cls)
        made._set_fields(device_type, ranks, names, groups, root, dims)
        return made

    @classmethod
    def from_group(
        cls, group: ProcessGroup | Sequence[ProcessGroup], device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> DeviceMesh:  # fmt: skip
        """A mesh over groups that are there: one group, or with `mesh` one for each of its dimensions.

        Raises ValueError where the groups are not those of the mesh's lines, or not as many as its dimensions.
        """
        if isinstance(group, ProcessGroup):
            ranks = np.array(get_process_group_ranks(group))
            if mesh is not None and (given := _to_ranks("DeviceMesh.from_group", mesh)).tolist() != ranks.tolist():
                raise ArgumentError(f"DeviceMesh.from_group: mesh {given.tolist()} is not the group's {ranks.tolist()}; leave it out")
            _check("DeviceMesh.from_group", device_type, ranks.shape, mesh_dim_names)
            return cls._create(device_type, ranks, mesh_dim_names, [group])
        groups = list(group)
        if mesh is None:
            raise ArgumentError(
                f"DeviceMesh.from_group: {len(groups)} groups and no mesh, which says where each process stands; give mesh as well"
            )
        ranks = _to_ranks("DeviceMesh.from_group", mesh)
        _check("DeviceMesh.from_group", device_type, ranks.shape, mesh_dim_names)
        if len(groups) != ranks.ndim:
            raise ArgumentError(f"DeviceMesh.from_group: {len(groups)} groups for a mesh of {ranks.ndim} dimensions; give one for each")
        made = cls._create(device_type, ranks, mesh_dim_names, groups)
        place = made._coordinate
        for dim, one in enumerate(groups if place is not None else ()):
            line = ranks[tuple(slice(None) if d == dim else n for d, n in enumerate(place or ()))].tolist()
            theirs = get_process_group_ranks(one)
            if sorted(theirs) != sorted(line):
                raise ArgumentError(
                    f"DeviceMesh.from_group: group {dim} has ranks {theirs}, and this process' line along dimension {dim} of mesh "
                    f"{ranks.tolist()} is {line}; give the groups in the order of the dimensions"
                )
        return made

    @property
    def mesh(self) -> Tensor:
        """The processes' numbers, an int32 tensor of the mesh's shape."""
        return Tensor.wrap(self._ranks.astype(np.int32))

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
        return self._ranks.size if mesh_dim is None else self.shape[self._find_dim("size", mesh_dim)]

    def get_rank(self) -> int:
        """This process' number in the world."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process stands, None where it does not."""
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process stands along a dimension, -1 outside of the mesh. Raises RuntimeError where several are there and none is named."""
        return get_rank(self.get_group(mesh_dim))

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group along a dimension in which this process stands, GroupMember.NON_GROUP_MEMBER outside of the mesh.

        Raises RuntimeError where several dimensions are there and none is named.
        """
        if mesh_dim is None:
            if self.ndim > 1:
                raise ArgumentError(f"DeviceMesh.get_group: the mesh has {self.ndim} dimensions; name one, by number or name")
            mesh_dim = 0
        return self._lines[self._find_dim("get_group", mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The groups along all dimensions in which this process stands."""
        return list(self._lines)

    def _find_dim(self, name: str, dim: int | str) -> int:
        if isinstance(dim, str):
            if dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"DeviceMesh.{name}: {dim!r} is no dimension; the names are {self.mesh_dim_names}")
            assert self.mesh_dim_names is not None
            return self.mesh_dim_names.index(dim)
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(f"DeviceMesh.{name}: dimension {dim} of a mesh of {self.ndim}; give 0 to {self.ndim - 1}, or a name")
        return dim % self.ndim

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part along the named dimensions, in their order in this mesh, in which this process stands; or what _flatten gave a name."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if len(names) == 1 and names[0] in self._flattened:
            return self._flattened[names[0]]
        if self.mesh_dim_names is None:
            raise ArgumentError(
                f"DeviceMesh: mesh[{names}] asks for names, and the dimensions have none; give mesh_dim_names where it is made"
            )
        dims = [self._find_dim("__getitem__", n) for n in names]
        if dims != sorted(set(dims)):
            raise KeyError(f"DeviceMesh: mesh[{names}]: name each dimension once, in the order of {self.mesh_dim_names}")
        place = self._coordinate if self._coordinate is not None else (0,) * self.ndim
        index = tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))
        return self._create(
            self.device_type, self._ranks[index], names, [self._lines[d] for d in dims], self._root, [self._dims[d] for d in dims]
        )

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """The processes of this mesh along one dimension, by default named "dp_tp" of ("dp", "tp"); `root[name]` is the same mesh from then on.

        All processes of the mesh that this is a part of call it. Raises RuntimeError where that mesh has a dimension of the name.
        """
        root = self._root
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        if not name:
            raise ArgumentError("DeviceMesh._flatten: the dimensions have no names to make one of; give mesh_dim_name")
        known = root._flattened.get(name)
        if known is not None and known._dims == self._dims:
            return known
        if self.ndim == 1 and self.mesh_dim_names == (name,):
            return self
        if known is not None or name in (root.mesh_dim_names or ()):
            raise ArgumentError(f"DeviceMesh._flatten: {name!r} is another dimension of {root!r}; give another name")
        rest = [d for d in range(root.ndim) if d not in self._dims]
        lines = root._ranks.transpose([*rest, *self._dims]).reshape(-1, self.size())
        group = _make_groups(lines[0] if len(lines) == 1 else lines, -1, require_group("DeviceMesh._flatten"))
        made = self._create(self.device_type, self._ranks.reshape(-1), (name,), [group], root, self._dims)
        root._flattened[name] = made
        return made

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this is a part of, or this one."""
        return self._root

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceMesh:
        return self  # groups are of this process, and nothing of a mesh changes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (
            self.device_type == other.device_type and self.mesh_dim_names == other.mesh_dim_names and np.array_equal(self._ranks, other._ranks)
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, self.shape, self._ranks.tobytes()))

    def __repr__(self) -> str:
        """As PyTorch writes it: how far the numbers of neighbours along a dimension are apart, where those of the root are counted on."""
        counted = np.arange(self._root.size()).reshape(self._root.shape).strides
        steps = tuple(counted[d] // np.dtype(int).itemsize for d in self._dims[-self.ndim :])
        if self.mesh_dim_names is None:
            return f"DeviceMesh({self.shape}, '{self.device_type}', stride={steps})"
        sizes = ", ".join(f"{n}={k}" for n, k in zip(self.mesh_dim_names, self.shape, strict=True))
        return f"DeviceMesh(({sizes}), '{self.device_type}', stride={steps})"


def _to_ranks(name: str, mesh: Any) -> np.ndarray:
    """A mesh's numbers as an array. Raises TypeError for what is no array of whole numbers."""
    try:
        ranks = np.array(mesh.tolist() if isinstance(mesh, Tensor) else mesh)
    except ValueError as ragged:
        raise ArgumentError(f"{name}: mesh {mesh!r} has rows of several lengths ({ragged}); give a full grid") from ragged
    if ranks.dtype.kind not in "iu" and ranks.size:
        raise TypeError(f"{name}: mesh is {mesh!r}; give the numbers of processes, nested lists or a tensor of integers")
    return ranks.astype(np.int64)


def _refuse_override(name: str, given: Any) -> None:
    if given is not None:
        raise NotImplementedError(f"{name}: backend_override is not in tritensor; the groups have the world's backends, leave it out")


def _require_world(name: str, device_type: str) -> ProcessGroup:
    """The group of all processes, made where there is none; for "cuda" each process of a machine has a GPU of its own before that."""
    if not is_initialized():
        own = read_local_rank()
        if device_type == "cuda" and own is not None and here.index == 0 and gpus() > 1:  # another number than 0: the program has chosen
            set_device(own % gpus())
        init_process_group()
    return require_group(name)


def _check(name: str, device_type: str, shape: Sequence[int], names: Sequence[str] | None) -> None:
    if device_type not in ("cpu", "cuda"):
        raise ArgumentError(f"{name}: device_type {device_type!r}; give 'cpu' or 'cuda', without a number")
    if not shape or not all(n > 0 for n in shape):
        raise ArgumentError(f"{name}: a mesh of shape {tuple(shape)}; give sizes of 1 and more")
    if isinstance(names, str) or not all(isinstance(n, str) for n in names or ()):
        raise TypeError(f"{name}: mesh_dim_names is {names!r}; give a tuple of texts, one for each dimension")
    if names is not None and (len(names) != len(shape) or len(set(names)) != len(names)):
        raise ArgumentError(
            f"{name}: mesh_dim_names {tuple(names)} for a mesh of shape {tuple(shape)}; give a name of its own for each dimension"
        )


def _make_groups(ranks: np.ndarray, dim: int, world: ProcessGroup) -> Any:
    """Make the groups of all lines along a dimension; the one in which this process stands."""
    if ranks.ndim == 1 and ranks.tolist() == list(range(world.size())):
        return world
    mine: Any = GroupMember.NON_GROUP_MEMBER
    for line in np.moveaxis(ranks, dim, -1).reshape(-1, ranks.shape[dim]):
        # All lines on all processes: new_group is a call of the whole world. The mesh's order numbers a group, not the ranks'.
        made = new_group([int(r) for r in line], sort_ranks=False)
        if not is_outside(made):
            mine = made
    return mine


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None
) -> DeviceMesh:  # fmt: skip
    """The processes 0, 1, ... in a grid of `mesh_shape`. Makes the process group, where there is none yet; those behind the grid stand outside.

    Args:
        device_type: "cpu" or "cuda".
        mesh_shape: how many processes stand along each dimension.
        mesh_dim_names: a name for each dimension.

    Raises:
        ValueError: the shape holds more processes than the world has, or names are not as many as dimensions.
        TypeError: a shape that is no tuple of whole numbers, names that are no text.
    """
    if not isinstance(mesh_shape, Sequence) or not all(isinstance(n, int) for n in mesh_shape):
        raise TypeError(f"init_device_mesh: mesh_shape is {mesh_shape!r}; give a tuple of whole numbers, ({mesh_shape},) for one dimension")
    _check("init_device_mesh", device_type, mesh_shape, mesh_dim_names)
    _refuse_override("init_device_mesh", backend_override)
    size, asked = _require_world("init_device_mesh", device_type).size(), math.prod(mesh_shape)
    if asked > size:
        raise ArgumentError(
            f"init_device_mesh: mesh_shape {tuple(mesh_shape)} holds {asked} processes, and the world has {size}; give a shape of {size} or less"
        )
    return DeviceMesh(device_type, np.arange(asked).reshape(mesh_shape), mesh_dim_names=mesh_dim_names)
