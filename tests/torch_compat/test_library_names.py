"""Names that libraries of language models take from torch: collectives as functions, paths of trees, types that nothing holds."""

from __future__ import annotations

import importlib
from collections import OrderedDict, deque, namedtuple

import pytest

import tritensor as tt
from tritensor.utils import _pytree as tree

Pair = namedtuple("Pair", "x y")


def test_paths_of_a_tree_lead_to_its_leaves() -> None:
    given = {"a": [1, (2, Pair(3, 4))], "b": OrderedDict(c=5), "d": deque([6])}
    found, spec = tree.tree_flatten_with_path(given)
    assert [tree.keystr(p) for p, _ in found] == ["['a'][0]", "['a'][1][0]", "['a'][1][1].x", "['a'][1][1].y", "['b']['c']", "['d'][0]"]
    assert all(tree.key_get(given, p) == leaf for p, leaf in found)
    assert spec == tree.tree_structure(given)
    doubled = tree.tree_map_with_path(lambda path, x, y: (len(path), x + y), given, given)
    assert doubled["a"][1][1] == Pair((4, 6), (4, 8))


def test_a_library_registers_its_own_dictionary() -> None:
    class Outputs(dict):
        pass

    tree.register_pytree_node(Outputs, tree._dict_flatten, lambda values, keys: Outputs(zip(keys, values, strict=True)))
    assert tree.SUPPORTED_NODES[Outputs].flatten_fn(Outputs(a=1)) == ([1], ["a"])
    assert type(tree.tree_map(lambda x: x + 1, Outputs(a=1))) is Outputs

    class Keyed(dict):
        pass

    tree._register_pytree_node(
        Keyed, tree._dict_flatten, tree._dict_unflatten, serialized_type_name="Keyed", flatten_with_keys_fn=tree._dict_flatten_with_keys
    )
    assert tree.tree_leaves_with_path(Keyed(a=1)) == [((tree.MappingKey("a"),), 1)]

    class Bare:
        pass

    tree.register_pytree_node(Bare, lambda b: ([1], None), lambda values, _: Bare())
    with pytest.raises(ValueError, match="Bare was registered without keys"):
        tree.tree_leaves_with_path([Bare()])


@pytest.mark.parametrize("name", ["float8_e8m0fnu", "float4_e2m1fn_x2", "uint4", "int1"])
def test_a_type_that_nothing_holds_is_named_and_refused(name: str) -> None:
    dtype = getattr(tt, name)
    assert dtype is getattr(tt, name)
    assert isinstance(dtype, tt.dtype)
    assert dtype.itemsize == 1
    assert {dtype: 1}[dtype] == 1
    assert dtype.is_floating_point == name.startswith("float")
    assert dtype.is_signed == (name in ("float4_e2m1fn_x2", "int1"))
    for use in (lambda: tt.empty(2, dtype=dtype), lambda: tt.ones(2).to(dtype), lambda: tt.tensor([1], dtype=dtype)):
        with pytest.raises(TypeError, match=f"cannot hold .*{name}"):
            use()


def test_collectives_as_functions_give_new_tensors() -> None:
    calls = importlib.import_module("tritensor.distributed._functional_collectives")
    x = tt.arange(6.0).reshape(2, 3)
    tt.distributed.init_process_group(rank=0, world_size=1)
    try:
        group = tt.distributed.group.WORLD
        for y in (
            calls.all_reduce(x, "sum", group), calls.broadcast(x, 0, group), calls.all_gather_tensor(x, 1, group),
            calls.reduce_scatter_tensor(x, "avg", 1, group), calls.all_to_all_single(x, None, None, group), calls.all_to_all_single(x, [2], [2], group),
            calls.all_to_all_single_autograd(x, None, None, group),
        ):  # fmt: skip
            assert calls.wait_tensor(y).tolist() == x.tolist()
            assert y.data_ptr() != x.data_ptr()
        mesh = tt.distributed.init_device_mesh("cpu", (1,))
        layout = importlib.import_module("tritensor.distributed.tensor._utils")
        shard = importlib.import_module("tritensor.distributed.tensor").Shard
        assert layout.compute_local_shape_and_global_offset((5, 4), mesh, [shard(0)]) == ((5, 4), (0, 0))
    finally:
        tt.distributed.destroy_process_group()
    assert not isinstance(x, calls.AsyncCollectiveTensor)
    with pytest.raises(NotImplementedError, match="when the call returns"):
        calls.AsyncCollectiveTensor(x)


class Mesh:
    """Stands for a mesh of many processes as one of them sees it."""

    def __init__(self, shape: tuple[int, ...], place: tuple[int, ...] | None) -> None:
        self.shape, self.place = shape, place

    def get_coordinate(self) -> tuple[int, ...] | None:
        return self.place


@pytest.mark.parametrize(
    ("shape", "place", "expected"),
    [
        ((2, 2), (0, 1), ((2, 1), (0, 2))),
        ((2, 2), (1, 0), ((2, 1), (0, 3))),
        ((4, 4), (3, 3), ((2, 0), (0, 5))),
        ((2, 2), None, ((0,), ())),
    ],
)
def test_a_part_of_a_tensor_that_is_cut_twice(shape, place, expected) -> None:
    layout = importlib.import_module("tritensor.distributed.tensor._utils")
    shard = importlib.import_module("tritensor.distributed.tensor").Shard
    assert layout.compute_local_shape_and_global_offset((2, 5), Mesh(shape, place), [shard(1), shard(1)]) == expected


def test_older_paths_lead_to_what_stands_elsewhere() -> None:
    from tritensor.distributed._composable.fsdp import fully_shard

    assert fully_shard is tt.distributed.fsdp.fully_shard
    assert isinstance(tt.cuda.stream(None), tt.cuda.StreamContext)
    assert tt.Stream is tt.cuda.Stream
    assert tt.Event is tt.cuda.Event
    storage = importlib.import_module("tritensor.distributed.checkpoint.hf_storage")
    with pytest.raises(NotImplementedError, match="HuggingFaceStorageReader"):
        storage.HuggingFaceStorageReader("folder")
    pipes = importlib.import_module("tritensor.utils.data.datapipes.iter.combinatorics")
    assert not isinstance([], pipes.ShufflerIterDataPipe)
    with pytest.raises(NotImplementedError, match="shuffle=True"):
        pipes.ShufflerIterDataPipe([])
    with importlib.import_module("tritensor._dynamo._trace_wrapped_higher_order_op").TransformGetItemToIndex():
        assert tt.ones(2)[1].item() == 1


def test_half_precision_complex_numbers_are_a_name() -> None:
    assert tt.chalf is tt.complex32
    assert tt.complex32 != tt.complex64
    assert (tt.complex32.is_complex, tt.complex32.itemsize) == (True, 4)
    with pytest.raises(tt.DTypeError, match=r"cannot hold .*complex32; complex64 and complex128 hold complex numbers"):
        tt.zeros(2, dtype=tt.complex32)


def test_a_tracers_graph_is_named_and_not_made() -> None:
    internals = importlib.import_module("tritensor._C")
    assert internals.Value is not internals.Graph
    with pytest.raises(NotImplementedError, match=r"_C\.Value: .* nothing is traced"):
        internals.Value()


def test_wrappers_of_activations_are_found_by_their_path_and_may_be_nested() -> None:
    import tritensor.distributed.algorithms._checkpoint.checkpoint_wrapper as wrappers

    x = tt.ones(2, 3)
    layer = tt.nn.Sequential(tt.nn.Linear(3, 3), tt.nn.Tanh())
    plain = tt.autograd.grad(layer(x).sum(), layer[0].weight)[0]
    wrapped = wrappers.offload_wrapper(wrappers.checkpoint_wrapper(layer))
    assert tt.equal(tt.autograd.grad(wrapped(x).sum(), layer[0].weight)[0], plain)
    assert list(wrapped.state_dict()) == ["0.weight", "0.bias"]
