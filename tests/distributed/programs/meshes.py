"""DeviceMesh: grids of processes, the groups along their lines, parts by name."""

from __future__ import annotations

import copy

import pytest

import tritensor as tt
import tritensor.distributed as dist
from tritensor.distributed.device_mesh import DeviceMesh, init_device_mesh


def main() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))  # which makes the process group
    rank = dist.get_rank()
    row, column = divmod(rank, 2)
    assert repr(mesh) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))"
    assert repr(mesh["dp"]) == "DeviceMesh((dp=2), 'cpu', stride=(2,))"
    assert (mesh.mesh.tolist(), mesh.mesh.dtype, mesh.get_rank()) == ([[0, 1], [2, 3]], tt.int32, rank)
    assert copy.deepcopy(mesh) == mesh
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.size(1)) == (2, (2, 2), 4, 2)
    assert mesh.get_coordinate() == (row, column)
    assert (mesh.get_local_rank("dp"), mesh.get_local_rank("tp"), mesh.get_local_rank(1)) == (row, column, column)
    for dim, others in (("dp", [column, column + 2]), ("tp", [2 * row, 2 * row + 1])):
        assert dist.get_process_group_ranks(mesh.get_group(dim)) == others
        t = tt.tensor([float(rank)])
        dist.all_reduce(t, group=mesh.get_group(dim))
        assert t.item() == sum(others)
        part = mesh[dim]
        assert (part.ndim, part.mesh.tolist(), part.get_local_rank()) == (1, others, mesh.get_local_rank(dim))
        assert part.get_group() is mesh.get_group(dim)
    assert mesh["dp", "tp"] == mesh
    assert hash(mesh["dp", "tp"]) == hash(mesh)
    assert len(mesh.get_all_groups()) == 2
    flat = init_device_mesh("cpu", (4,))
    assert flat.get_group() is dist.group.WORLD
    assert repr(flat) == "DeviceMesh((4,), 'cpu', stride=(1,))"
    some = DeviceMesh("cpu", tt.tensor([3, 1]))
    assert some.get_coordinate() == {3: (0,), 1: (1,)}.get(rank)
    assert some.get_local_rank() == {3: 0, 1: 1}.get(rank, -1)
    few = init_device_mesh("cpu", (2,))  # the others stand outside
    assert few.get_coordinate() == ((rank,) if rank < 2 else None)
    assert rank < 2 or few.get_group() == dist.GroupMember.NON_GROUP_MEMBER
    deep = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("pp", "dp", "tp"))
    assert deep["pp", "tp"].mesh.tolist() == [[0, 1], [2, 3]]
    row_of = deep["dp", "tp"]._flatten()
    assert (row_of.mesh.tolist(), row_of.mesh_dim_names, row_of.size()) == ([2 * row, 2 * row + 1], ("dp_tp",), 2)
    assert deep["dp_tp"] is row_of
    assert deep["dp", "tp"]._flatten() is row_of
    assert dist.get_process_group_ranks(row_of.get_group()) == [2 * row, 2 * row + 1]
    assert deep._flatten("all").get_group() is dist.group.WORLD
    assert repr(deep["all"]) == "DeviceMesh((all=4), 'cpu', stride=(1,))"
    assert mesh["dp"]["dp"].get_group() is mesh.get_group("dp")
    again = DeviceMesh.from_group(mesh.get_group("tp"), "cpu", mesh_dim_names=("tp",))
    assert again == mesh["tp"]
    assert DeviceMesh.from_group(mesh.get_all_groups(), "cpu", [[0, 1], [2, 3]]).get_local_rank(0) == row
    for call, error, said in (
        (lambda: init_device_mesh("cpu", (5,)), ValueError, "holds 5 processes, and the world has 4"),
        (lambda: init_device_mesh("cpu", 4), TypeError, r"give a tuple of whole numbers, \(4,\)"),
        (lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names="ab"), TypeError, "mesh_dim_names is 'ab'"),
        (lambda: DeviceMesh("cpu"), TypeError, "mesh is None"),
        (lambda: DeviceMesh("cpu", [[0, 1], [2]]), ValueError, "rows of several lengths"),
        (lambda: DeviceMesh("cpu", [0], backend_override=("gloo",)), NotImplementedError, "backend_override is not in tritensor"),
        (lambda: DeviceMesh.from_group(mesh.get_all_groups(), "cpu"), ValueError, "2 groups and no mesh"),
        (
            lambda: DeviceMesh.from_group(mesh.get_all_groups()[::-1], "cpu", [[0, 1], [2, 3]]),
            ValueError,
            "give the groups in the order of the dimensions",
        ),
        (lambda: DeviceMesh.from_group(mesh.get_group("tp"), "cpu", [0, 3]), ValueError, r"mesh \[0, 3\] is not the group's"),
        (lambda: deep["dp"]._flatten("pp"), RuntimeError, "'pp' is another dimension"),
        (lambda: mesh.get_local_rank(5), IndexError, "dimension 5 of a mesh of 2"),
        (lambda: init_device_mesh("cuda:0", (4,)), ValueError, "device_type 'cuda:0'"),
        (lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a",)), ValueError, "give a name of its own for each dimension"),
        (lambda: DeviceMesh("cpu", [0, 7]), ValueError, "this world has ranks 0 to 3"),
        (lambda: DeviceMesh("cpu", [0, 0]), ValueError, "holds a rank twice"),
        (lambda: mesh.get_group(), RuntimeError, "the mesh has 2 dimensions; name one"),
        (lambda: mesh["pp"], KeyError, "'pp' is no dimension"),
        (lambda: mesh["tp", "dp"], KeyError, "in the order of"),
        (lambda: flat["dp"], RuntimeError, "the dimensions have none"),
    ):
        with pytest.raises(error, match=said):
            call()
    model = tt.nn.parallel.DistributedDataParallel(tt.nn.Linear(1, 1, bias=False), device_mesh=mesh["dp"])
    model(tt.full((1, 1), float(rank))).sum().backward()
    assert model.module.weight.grad.item() == column + 1.0  # the mean over the line
    dist.destroy_process_group()
    print(f"rank {rank} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
