"""Names of PyTorch's that libraries of training import: what they name is there, and does what it says."""

from __future__ import annotations

import datetime
import importlib
import re
from typing import Any

import pytest

import tritensor as tt
from tritensor.ground.errors import CheckpointError, DeviceError


def _module(path: str) -> Any:
    return importlib.import_module("tritensor." + path)


def test_names_without_a_module_of_their_own() -> None:
    assert tt.torch is tt
    assert tt._C._TensorMeta is type(tt.Tensor)
    assert tt.ScriptModule is tt.jit.ScriptModule
    tt._assert(tt.ones(1) > 0, "not reached")
    with pytest.raises(AssertionError, match="of one size"):
        tt._assert(False, "of one size")
    assert tt.serialization.DEFAULT_PROTOCOL == 2
    assert tt.distributed.ReduceOp.RedOpType.SUM is tt.distributed.ReduceOp.SUM
    assert isinstance(tt.distributed.ReduceOp.SUM, tt.distributed.ReduceOp.RedOpType)
    constants = _module("distributed.constants")
    assert constants.default_pg_timeout == datetime.timedelta(minutes=30)
    assert constants.default_pg_nccl_timeout is None
    pattern = _module("utils.data._utils.collate").np_str_obj_array_pattern
    assert [bool(pattern.search(code)) for code in ("<U3", "|S2", "O", "<f4")] == [True, True, True, False]


def test_rank_not_in_group_is_asked_under_both_paths() -> None:
    assert tt.distributed._rank_not_in_group is _module("distributed.distributed_c10d")._rank_not_in_group


def test_nothing_is_traced() -> None:
    fakes = _module("_subclasses.fake_tensor")
    assert fakes.is_fake(tt.ones(1)) is False
    assert isinstance(tt.ones(1), fakes.FakeTensor) is False
    with pytest.raises(NotImplementedError, match="FakeTensorMode: not in tritensor"):
        _module("_subclasses").FakeTensorMode()
    with pytest.raises(NotImplementedError, match="FakeTensor: not in tritensor"):
        fakes.FakeTensor()
    assert _module("fx.experimental.proxy_tensor").get_proxy_mode() is None


def test_clipped_sigmoid_keeps_off_0_and_1() -> None:
    out = _module("distributions.transforms")._clipped_sigmoid(tt.tensor([-200.0, 0.0, 200.0]))
    assert 0 < float(out[0]) < 1e-37
    assert float(out[1]) == 0.5
    assert 1 - 2e-7 < float(out[2]) < 1


@pytest.mark.parametrize("kind", ["mps", "xpu", "hpu", "xla"])
def test_autocast_is_off_on_devices_that_are_not_here(kind: str) -> None:
    assert tt.is_autocast_enabled(kind) is False
    assert tt.get_autocast_dtype(kind) is (tt.bfloat16 if kind in ("hpu", "xla") else tt.float16)
    tt.set_autocast_enabled(kind, False)
    with pytest.raises(RuntimeError, match=f"a device of type '{kind}' is not here"):
        tt.set_autocast_enabled(kind, True)
    with pytest.raises(RuntimeError, match=f"a device of type '{kind}' is not here"):
        tt.set_autocast_dtype(kind, tt.float16)
    with pytest.raises(DeviceError, match="'nowhere' is not a device"):
        tt.is_autocast_enabled("nowhere")


def test_devices_that_are_not_here_say_so() -> None:
    xpu = _module("xpu")
    assert [xpu.is_available(), xpu.is_initialized(), xpu.is_bf16_supported(), xpu.device_count()] == [False, False, False, 0]
    xpu.manual_seed_all(3)  # seeding every kind of device is no error
    xpu.empty_cache()
    assert xpu.memory_allocated() == 0
    assert _module("mtia").is_available() is False
    assert _module("mps").is_available() is False


def test_iterators_of_loaders_are_of_the_classes_that_libraries_ask() -> None:
    path = _module("utils.data.dataloader")
    loader = tt.utils.data.DataLoader(range(5), batch_size=2)
    found = iter(loader)
    assert isinstance(found, path._BaseDataLoaderIter)
    assert isinstance(found, path._SingleProcessDataLoaderIter)
    assert not isinstance(found, path._MultiProcessingDataLoaderIter)
    assert len(found) == 3

    class Stream(tt.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter([1, 2, 3])

    streamed = iter(tt.utils.data.DataLoader(Stream(), batch_size=2))
    assert isinstance(streamed, path._BaseDataLoaderIter)
    assert [b.tolist() for b in streamed] == [[1, 2], [3]]
    workers = _module("data.workers.iterator").WorkerIterator
    assert issubclass(workers, path._MultiProcessingDataLoaderIter)
    assert issubclass(_module("data.workers.pin_thread").PinnedIterator, path._MultiProcessingDataLoaderIter)


def test_trees_by_kind() -> None:
    pytree = _module("utils._pytree")
    Pair = __import__("collections").namedtuple("Pair", "a b")
    kind = pytree._get_node_type(Pair(1, [2]))
    children, context = pytree.SUPPORTED_NODES[kind].flatten_fn(Pair(1, [2]))
    spec = pytree.TreeSpec(kind, context, [pytree.LeafSpec(), pytree.TreeSpec(list, None, [pytree.LeafSpec()])])
    assert list(children) == [1, [2]]
    assert pytree.tree_unflatten([5, 6], spec) == Pair(5, [6])
    assert pytree._get_node_type(3) not in pytree.SUPPORTED_NODES
    assert pytree._get_node_type({}) in pytree.SUPPORTED_NODES


def test_records_of_a_checkpoint_are_read_one_by_one(tmp_path: Any) -> None:
    file = tmp_path / "x.pt"
    tt.save({"a": tt.arange(3.0)}, file)
    reader = tt.PyTorchFileReader(str(file))
    assert {"data.pkl", "data/0", "version"} <= set(reader.get_all_records())
    assert reader.has_record("data/0")
    assert not reader.has_record("data/1")
    assert reader.get_record("data/0") == tt.arange(3.0).numpy().tobytes()
    assert reader.get_record_size("data/0") == 12
    assert file.read_bytes()[reader.get_record_offset("data/0") :][:12] == reader.get_record("data/0")
    kept = reader.get_storage_from_record("data/0", 12, tt.uint8)
    assert kept.view(tt.float32).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match=re.escape("has no record 'data/9'; get_all_records() lists them")):
        reader.get_record("data/9")
    with pytest.raises(RuntimeError, match="has 12 bytes, and 13 are asked for"):
        reader.get_storage_from_record("data/0", 13, tt.uint8)
    file.write_bytes(b"PK\x03\x04nothing")
    with pytest.raises(CheckpointError):
        tt.PyTorchFileReader(file)


def test_arguments_of_to_are_told() -> None:
    parse = tt._C._nn._parse_to
    assert parse("cpu", tt.float16) == (tt.device("cpu"), tt.float16, False, None)
    assert parse(tt.ones(1, dtype=tt.float64)) == (tt.device("cpu"), tt.float64, False, None)
    assert parse(dtype=tt.float64, non_blocking=True, memory_format=tt.channels_last) == (None, tt.float64, True, tt.channels_last)
    assert parse(None) == (None, None, False, None)


class _Duck:
    """The attributes of a DataLoader that libraries give to PyTorch's iterators of loaders."""

    generator = worker_init_fn = multiprocessing_context = prefetch_factor = None
    timeout, drop_last, num_workers = 0, False, 1

    def __init__(self, dataset: Any, kind: int, batches: Any) -> None:
        self.dataset, self._dataset_kind, self._auto_collation = dataset, kind, batches is not None
        self._index_sampler = batches if batches is not None else range(len(dataset))
        self.batch_size = 2

    def collate_fn(self, x: Any) -> Any:
        return list(x) if self._auto_collation else -x


@pytest.mark.parametrize("kind", [0, 1])
def test_another_object_is_iterated_over_as_a_loader(kind: int) -> None:
    path = _module("utils.data.dataloader")
    assert path._DatasetKind.Iterable == 1
    assert list(path._SingleProcessDataLoaderIter(_Duck([4, 5, 6], kind, None))) == [-4, -5, -6]
    assert list(path._SingleProcessDataLoaderIter(_Duck([4, 5, 6], kind, [[0, 1], [2, 0]]))) == [[4, 5], [6] if kind else [6, 4]]
    assert [tt.utils.data.DataLoader([1])._dataset_kind, path._DatasetKind.Map] == [0, 0]


def test_another_object_is_read_by_workers() -> None:
    path = _module("utils.data.dataloader")
    duck = _Duck([4, 5, 6], 1, None)
    duck.multiprocessing_context = "fork"
    found = path._MultiProcessingDataLoaderIter(duck)
    assert isinstance(found, path._BaseDataLoaderIter)
    assert list(found) == [-4, -5, -6]


def test_accelerators_are_chosen_by_number() -> None:
    accelerator = _module("accelerator")
    with accelerator.device_index(None):
        before = accelerator.current_device_index()
    with accelerator.device_index(0):
        assert accelerator.current_device_index() == 0
    assert accelerator.current_device_index() == before
    free, total = accelerator.get_memory_info()
    assert 0 <= free <= total
    accelerator.empty_host_cache()


def test_flags_of_backends_may_be_set_plainly() -> None:
    backends = _module("backends")
    before = backends.cudnn.benchmark
    with getattr(backends, "__allow_nonbracketed_mutation")():
        backends.cudnn.benchmark = True
    assert backends.cudnn.benchmark is True
    assert backends.flags_frozen() is False
    backends.cudnn.benchmark = before
