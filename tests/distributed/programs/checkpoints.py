"""distributed.checkpoint: saved by some ranks, read by as many others; what is wrong is told on all ranks before anything is changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
import tritensor.distributed as dist
import tritensor.distributed.checkpoint as dcp
from tritensor import nn
from tritensor.distributed.checkpoint import state_dict as sd
from tritensor.distributed.checkpoint.boxes import part_like
from tritensor.distributed.fsdp import fully_shard

WHOLE = np.arange(7 * 3, dtype=np.float32).reshape(7, 3)


class Place:
    """Rows of WHOLE that a rank has: uneven, and with many ranks none."""

    def __init__(self, rank: int, size: int) -> None:
        n = -(-7 // size)
        self.first, self.end = min(rank * n, 7), min(rank * n + n, 7)
        self.global_shape, self.global_offset = (7, 3), (self.first, 0)

    def part(self, values: np.ndarray) -> tt.Tensor:
        return part_like(self, tt.from_numpy(values[self.first : self.end].copy()))


def make() -> nn.Module:
    tt.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


def step(model: nn.Module, optimizer: tt.optim.Optimizer, seed: int) -> float:
    rng = np.random.default_rng(seed)
    x, y = tt.tensor(rng.standard_normal((12, 4)), dtype=tt.float32), tt.tensor(rng.standard_normal((12, 3)), dtype=tt.float32)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def trained(sharded: bool) -> tuple[nn.Module, tt.optim.Optimizer]:
    model: nn.Module = make()
    model = fully_shard(model) if sharded else nn.parallel.DistributedDataParallel(model)
    return model, tt.optim.AdamW(model.parameters(), lr=0.01)


def state(model: nn.Module, optimizer: tt.optim.Optimizer, place: Place, values: np.ndarray) -> dict:
    of_model, of_optimizer = sd.get_state_dict(model, optimizer)
    return {
        "model": of_model, "optimizer": of_optimizer, "rows": place.part(values), "step": 3, "seen": (1, 2), "note": {"names": ["a", "b"], "none": None},
        "half": tt.arange(5).to(tt.bfloat16), "scalar": tt.tensor(2.5), "empty": tt.zeros(0, 2),
    }  # fmt: skip


def save(folder: str) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    for name, sharded in (("replicas", False), ("shards", True)):
        model, optimizer = trained(sharded)
        for seed in range(3):
            step(model, optimizer, seed)
        metadata = dcp.save(state(model, optimizer, Place(rank, size), WHOLE), checkpoint_id=f"{folder}/{name}")
        assert metadata.tensors["rows"].shape == (7, 3)
        if size > 1:
            assert len({p.file for s in metadata.tensors.values() for p in s.parts}) > 1, "one rank wrote all"
        if rank == 0:
            (Path(folder) / f"{name}.json").write_text(json.dumps([step(model, optimizer, 3)] if size == 1 else []))
        dist.barrier()
    sizes = {p.name: p.stat().st_size for p in Path(folder, "replicas").glob("part-*")}
    assert max(sizes.values()) < 0.8 * sum(sizes.values()) or size == 1, sizes
    behind(folder, rank, size)


class Failing:
    """A Stateful whose state fails to come on one rank."""

    def state_dict(self) -> dict:
        if dist.get_rank() == dist.get_world_size() - 1:
            raise KeyError("no state today")
        return {"x": 1}

    def load_state_dict(self, state_dict: dict) -> None:
        raise AssertionError("it is not loaded")


def behind(folder: str, rank: int, size: int) -> None:
    """async_save: what is written is the state at the call, while training and other saves go on; its errors come out of result() on all ranks."""
    model, optimizer = trained(False)
    live = state(model, optimizer, Place(rank, size), WHOLE)
    future = dcp.async_save(live, checkpoint_id=f"{folder}/behind")
    live["rows"].fill_(-1)  # it was copied
    step(model, optimizer, 0)
    again = dcp.async_save({"rows": Place(rank, size).part(WHOLE + 1)}, checkpoint_id=f"{folder}/more", process_group=dist.new_group())
    failing = dcp.async_save({"bad": Failing(), "x": tt.ones(1)}, checkpoint_id=f"{folder}/bad")
    t = tt.ones(3)
    dist.all_reduce(t)  # beside the thread's
    assert t.tolist() == [size] * 3
    assert set(future.result().tensors) >= {"rows", "half"}
    assert again.result().tensors["rows"].shape == (7, 3)
    with pytest.raises(KeyError if rank == size - 1 else ValueError, match="no state today"):
        failing.result()
    dist.barrier()


def load(folder: str) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    place = Place(rank, size)
    losses = {}
    for name in ("replicas", "shards", "behind"):
        for sharded in (False, True):
            model, optimizer = trained(sharded)
            found = state(model, optimizer, place, np.full_like(WHOLE, np.nan))
            found.update(step=0, seen=(), note={"names": [], "none": 1}, half=tt.zeros(5, dtype=tt.bfloat16), scalar=tt.tensor(0.0))
            dcp.load(found, checkpoint_id=f"{folder}/{name}")
            sd.set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"])
            assert found["rows"].tolist() == WHOLE[place.first : place.end].tolist()
            assert (found["step"], found["seen"], found["note"]) == (3, (1, 2), {"names": ["a", "b"], "none": None})
            assert found["half"].tolist() == [0, 1, 2, 3, 4]
            assert found["scalar"].item() == 2.5
            losses[name, sharded] = step(model, optimizer, 3)
    assert losses["replicas", True] == pytest.approx(losses["replicas", False], abs=1e-5), losses
    assert losses["shards", True] == pytest.approx(losses["replicas", False], abs=1e-4), losses
    whole = sd.get_model_state_dict(trained(True)[0], options=sd.StateDictOptions(full_state_dict=True))
    assert {k: tuple(v.shape) for k, v in whole.items()} == {k: tuple(v.shape) for k, v in make().state_dict().items()}
    model = trained(True)[0]
    kept = make().state_dict() if rank == 0 else {}
    sd.set_model_state_dict(model, kept, options=sd.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    for (key, value), want in zip(
        sd.get_model_state_dict(model, options=sd.StateDictOptions(full_state_dict=True)).items(), make().state_dict().values(), strict=True
    ):
        assert tt.equal(value, want), key
    optimizer_of_first(rank)
    only_what_is_needed(folder, place)
    wrong(folder, rank)
    alone_at_fault(folder, rank, dist.get_world_size())


def optimizer_of_first(rank: int) -> None:
    """Rank 0 alone has an optimizer's state, nested or flat; each rank of a sharded one takes its part."""
    for flat in (False, True):
        options = sd.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, flatten_optimizer_state_dict=flat)
        model, optimizer = trained(True)
        step(model, optimizer, 0)
        want = sd.get_optimizer_state_dict(model, optimizer, options=options)
        other, taking = trained(True)
        sd.set_optimizer_state_dict(other, taking, want if rank == 0 else {}, options=options)
        found = sd.get_optimizer_state_dict(other, taking, options=options)
        assert same(found, want), (found, want)


def same(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return tt.equal(a, b) if isinstance(a, tt.Tensor) and isinstance(b, tt.Tensor) else a == b


def only_what_is_needed(folder: str, place: Place) -> None:
    """A shard is put together from the files that hold some of it, and no other file is opened."""
    reader = dcp.FileSystemReader("nowhere")
    mine = {"rows": place.part(np.zeros_like(WHOLE))}
    dcp.load(mine, checkpoint_id=f"{folder}/more", storage_reader=reader)
    assert mine["rows"].tolist() == (WHOLE + 1)[place.first : place.end].tolist()
    parts = reader.read_metadata().tensors["rows"].parts
    needed = {p.file for p in parts if max(p.box.offset[0], place.first) < min(p.box.offset[0] + p.box.shape[0], place.end)}
    assert set(reader._open) == needed
    assert place.first or place.end == 7 or len(needed) < len(parts), "the first of several needs less than all"


def alone_at_fault(folder: str, rank: int, size: int) -> None:
    """What one rank does wrong before anything is agreed on; a file that one rank alone needs; parts that reach out."""
    last, place = rank == size - 1, Place(rank, size)
    for error, call in (
        (KeyError, lambda: dcp.save({"bad": Failing()}, checkpoint_id=f"{folder}/bad")),
        (KeyError, lambda: dcp.load({"bad": Failing()} if last else {"rows": place.part(WHOLE)}, checkpoint_id=f"{folder}/more")),
        (ValueError, lambda: dcp.save({"x": 1}, checkpoint_id=None if last else f"{folder}/bad")),
        (NotImplementedError, lambda: dcp.load({"rows": place.part(WHOLE)}, checkpoint_id=f"{folder}/more", planner=1 if last else None)),
    ):
        with pytest.raises(error if last else ValueError, match=None if last else f"rank {size - 1} failed: "):
            call()
    place.global_offset = (place.first + 7 * last, 0)
    with pytest.raises(ValueError, match="which reaches out of it; correct its global_offset"):
        dcp.save({"rows": place.part(WHOLE)}, checkpoint_id=f"{folder}/bad")
    dcp.save({"rows": Place(rank, size).part(WHOLE)}, checkpoint_id=f"{folder}/torn")
    metadata = dcp.FileSystemReader(f"{folder}/torn").read_metadata()
    dist.barrier()
    if rank == 0:
        Path(folder, "torn", metadata.tensors["rows"].parts[-1].file).unlink()
    dist.barrier()
    mine = {"rows": Place(rank, size).part(WHOLE + 5)}
    with pytest.raises(ValueError, match=r"is missing, and metadata.json names it"):
        dcp.load(mine, checkpoint_id=f"{folder}/torn")
    assert mine["rows"].tolist() == (WHOLE + 5)[Place(rank, size).first : Place(rank, size).end].tolist(), "it stayed what it was"


def wrong(folder: str, rank: int) -> None:
    """Every rank raises, also where one alone is at fault, and the state stays what it was."""
    rows = tt.full((7, 3), 9.0)
    for given, said in (
        ({"rows": rows, "absent": tt.ones(1)}, "has no absent"),
        ({"rows": rows, "half": tt.zeros(5)}, "half is bfloat16 (5,)"),
        ({"rows": tt.zeros(6, 3), "scalar": tt.tensor(1.0)}, "rows is float32 (7, 3)"),
    ):
        mine = given if rank == 0 else {"scalar": tt.tensor(0.0)}
        with pytest.raises(ValueError) as raised:
            dcp.load(mine, checkpoint_id=f"{folder}/replicas")
        assert said in str(raised.value) or (rank and "rank 0 failed" in str(raised.value)), raised.value
    assert rows[0, 0].item() == 9.0
    with pytest.raises(ValueError, match=r"no checkpoint was written there to its end|is no folder|rank 0 failed"):
        dcp.load({"rows": rows}, checkpoint_id=f"{folder}/nothing")
    with pytest.raises(
        ValueError, match=r"made is a set, which JSON does not say all of|rank 0 failed: CheckpointError: checkpoint: made is a set"
    ):
        dcp.save({"made": {1} if rank == 0 else 1}, checkpoint_id=f"{folder}/bad")
    if dist.get_world_size() > 1:
        with pytest.raises(ValueError, match=r"w is float32 \(2,\) on rank 1 and float32 \(3,\) on rank 0|w is float32"):
            dcp.save({"w": tt.zeros(3 - (rank == 1))}, checkpoint_id=f"{folder}/bad")
    assert not (Path(folder) / "bad" / "metadata.json").exists()


def main() -> None:
    dist.init_process_group("mpi", **({"rank": 0, "world_size": 1} if len(sys.argv) > 3 else {}))
    rank = dist.get_rank()
    {"save": save, "load": load}[sys.argv[1]](sys.argv[2])
    dist.destroy_process_group()
    print(f"rank {rank} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
