"""Every collective against numpy: all types, sizes from 0 to 16 MB, contiguous and not, the same values on every rank from one seed."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np

import tritensor as tt
import tritensor.distributed as dist

NUMBERS = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"]
MOVED = [*NUMBERS, "float8_e4m3fn", "float8_e5m2"]
SIZES = [0, 1, 7, 1000]
LARGE = (16 << 20) // 4  # float32 elements of 16 MB
OPS = {"SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum}
BITS = {"BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def values(n: int, name: str, seed: int) -> np.ndarray:
    """What rank `seed` gives: small numbers, of which a product of four still fits into 8 bits."""
    rng = np.random.default_rng([n, seed])
    whole = rng.integers(0, 4, n) if name.startswith(("u", "b")) and name != "bfloat16" else rng.integers(-3, 4, n)
    if name.startswith("complex"):
        return (whole + 1j * rng.integers(-3, 4, n)).astype(name)
    if "float" in name and not name.startswith("float8"):
        return (whole * 0.5).astype(numpy_type(name))
    return whole.astype(numpy_type(name))


def strided(a: np.ndarray) -> tt.Tensor:
    """The same values in every second cell of twice the memory."""
    t = tt.zeros(2 * a.size, dtype=tt.from_numpy(a.copy()).dtype)[::2]
    t.copy_(tt.from_numpy(a.copy()))
    return t


def same(got: tt.Tensor, want: np.ndarray, what: str) -> None:
    have = got.contiguous()._array
    assert have.dtype == want.dtype, f"{what}: {have.dtype} for {want.dtype}"
    if have.dtype.kind == "c":  # of a product, the sign of a zero depends on the order
        assert np.array_equal(have, np.reshape(want, have.shape)), f"{what}: {have} for {want}"
        return
    assert have.tobytes() == np.ascontiguousarray(want).reshape(have.shape).tobytes(), f"{what}: {have} for {want}"


def reduced(all_values: list[np.ndarray], op: str) -> np.ndarray:
    """op over the ranks; the numbers are such that every order gives the same bits, which rounds nowhere."""
    kind = all_values[0].dtype
    if op == "AVG":
        total = reduced(all_values, "SUM")
        if kind.kind in "iu":
            return np.trunc(total.astype(np.float64) / len(all_values)).astype(kind)
        return (total.astype(np.float32) / np.float32(len(all_values))).astype(kind) if kind.itemsize == 2 else total / len(all_values)
    function = {**OPS, **BITS}[op]
    if kind.kind == "b":
        function = {"SUM": np.logical_or, "MAX": np.logical_or, "PRODUCT": np.logical_and, "MIN": np.logical_and}.get(op, function)
    out = all_values[0]
    for a in all_values[1:]:
        out = function(out, a).astype(kind)
    return out


def reductions(rank: int, size: int) -> None:
    for name in NUMBERS:
        ops = ["SUM", "PRODUCT"]
        ops += [] if name.startswith("complex") else ["MIN", "MAX"]
        ops += [] if name == "bool" else ["AVG"]
        ops += list(BITS) if name == "bool" or "int" in name else []
        for n in SIZES:
            given = [values(n, name, r) for r in range(size)]
            for op in ops:
                want, how = reduced(given, op), dist.ReduceOp[op]
                for make in (lambda a: tt.from_numpy(a.copy()), strided):
                    t = make(given[rank])
                    dist.all_reduce(t, how)
                    same(t, want, f"all_reduce {name} {n} {op}")
                    t = make(given[rank])
                    dist.reduce(t, size - 1, how)
                    same(t, want if rank == size - 1 else given[rank], f"reduce {name} {n} {op}")
                parts = [values(n * size, name, r).reshape(size, n) for r in range(size)]
                out = tt.from_numpy(np.zeros(n, numpy_type(name)))
                dist.reduce_scatter_tensor(out, tt.from_numpy(parts[rank].copy()), how)
                same(out, reduced([p[rank] for p in parts], op), f"reduce_scatter_tensor {name} {n} {op}")
                out = strided(np.zeros(n, numpy_type(name)))
                dist.reduce_scatter(out, [strided(p) for p in parts[rank]], how)
                same(out, reduced([p[rank] for p in parts], op), f"reduce_scatter {name} {n} {op}")


def moves(rank: int, size: int) -> None:
    for name in MOVED:
        for n in SIZES:
            given = [values(n, name, r) for r in range(size)]
            zero = np.zeros(n, numpy_type(name))
            for make in (lambda a: tt.from_numpy(a.copy()), strided):
                t = make(given[rank])
                dist.broadcast(t, src=1)
                same(t, given[1], f"broadcast {name} {n}")
                outs = [make(zero) for _ in range(size)]
                dist.all_gather(outs, make(given[rank]))
                for r in range(size):
                    same(outs[r], given[r], f"all_gather {name} {n}")
                whole = tt.from_numpy(np.zeros((size, n), numpy_type(name)))
                dist.all_gather_into_tensor(whole, make(given[rank]))
                same(whole, np.stack(given), f"all_gather_into_tensor {name} {n}")
                outs = [make(zero) for _ in range(size)] if rank == 1 else None
                dist.gather(make(given[rank]), outs, dst=1)
                for r, out in enumerate(outs or ()):
                    same(out, given[r], f"gather {name} {n}")
                out = make(zero)
                dist.scatter(out, [make(a) for a in given] if rank == 1 else None, src=1)
                same(out, given[rank], f"scatter {name} {n}")
                # rank r gives rank k r + k + 1 elements
                rows = [[values(r + k + 1, name, 10 * r + k) for k in range(size)] for r in range(size)]
                outs = [make(np.zeros(r + rank + 1, numpy_type(name))) for r in range(size)]
                dist.all_to_all(outs, [make(a) for a in rows[rank]])
                for r in range(size):
                    same(outs[r], rows[r][rank], f"all_to_all {name}")
                out = make(np.concatenate([np.zeros(r + rank + 1, numpy_type(name)) for r in range(size)]))
                given_sizes, taken = [rank + k + 1 for k in range(size)], [r + rank + 1 for r in range(size)]
                dist.all_to_all_single(out, make(np.concatenate(rows[rank])), taken, given_sizes)
                same(out, np.concatenate([rows[r][rank] for r in range(size)]), f"all_to_all_single {name}")


def large(rank: int, size: int) -> None:
    given = [values(LARGE, "float32", r) for r in range(size)]
    t = tt.from_numpy(given[rank].copy())
    at = t.data_ptr()
    work = dist.all_reduce(t, async_op=True)
    assert work.wait()
    assert t.data_ptr() == at
    same(t, reduced(given, "SUM"), "all_reduce of 16 MB")
    t = tt.from_numpy(given[rank].astype(ml_dtypes.bfloat16))
    dist.all_reduce(t)
    same(t, reduced([g.astype(ml_dtypes.bfloat16) for g in given], "SUM"), "all_reduce of 8 MB in bfloat16")
    t = tt.from_numpy(given[rank].copy())
    dist.broadcast(t, src=0)
    same(t, given[0], "broadcast of 16 MB")
    whole = tt.from_numpy(np.zeros((size, LARGE), "float32"))
    dist.all_gather_into_tensor(whole, tt.from_numpy(given[rank].copy()))
    same(whole, np.stack(given), "all_gather of 16 MB each")
    out = tt.from_numpy(np.zeros(LARGE // size, "float32"))
    dist.reduce_scatter_tensor(out, tt.from_numpy(given[rank].copy()))
    same(out, reduced(given, "SUM").reshape(size, -1)[rank], "reduce_scatter of 16 MB")


def odd(rank: int, size: int) -> None:
    """0-d, several dimensions, views of columns, NaN, versions, and memory that is not copied."""
    t = tt.tensor(float(rank + 1))
    before = t._version
    dist.all_reduce(t)
    assert t.item() == size * (size + 1) / 2
    assert t._version > before
    outs = [tt.tensor(0.0) for _ in range(size)]
    dist.all_gather(outs, tt.tensor(float(rank)))
    assert [o.item() for o in outs] == list(range(size))
    dist.scatter(t, [tt.tensor(10.0 + r) for r in range(size)] if rank == 0 else None, src=0)
    assert t.item() == 10 + rank
    dist.reduce_scatter(t, [tt.tensor(float(r)) for r in range(size)])
    assert t.item() == size * rank
    base = tt.zeros(4, 6)
    base[:, 2] = rank + 1.0
    dist.all_reduce(base[:, 2])
    assert base.sum().item() == 4 * size * (size + 1) / 2
    for op in ("MIN", "MAX"):
        for kind in ("float16", "bfloat16", "float32", "float64"):
            a = np.ones(3)
            a[1] = np.nan if rank == size - 1 else 1
            t = tt.from_numpy(a.astype(numpy_type(kind)))
            dist.all_reduce(t, dist.ReduceOp[op])
            assert np.isnan(t.float().numpy()).tolist() == [False, True, False], f"{op} of {kind} with a NaN: {t}"
    a = np.full(5, rank + 1.0)
    dist.all_reduce(tt.from_numpy(a))
    assert a.tolist() == [size * (size + 1) / 2] * 5  # straight in numpy's memory
    p = tt.nn.Parameter(tt.full((3,), float(rank)))
    dist.broadcast(p, src=1)
    assert p.tolist() == [1.0] * 3


def shared(rank: int, size: int) -> None:
    """What is given lies in the memory of what is written: a rank's own place in it, or beside that."""
    every = [2 * r + i for r in range(size) for i in (0, 1)]
    for start in (2 * rank, 0, 1):
        whole = tt.zeros(2 * size)
        part = whole[start : start + 2]
        part.copy_(tt.tensor([2.0 * rank, 2.0 * rank + 1]))
        dist.all_gather_into_tensor(whole, part)
        assert whole.tolist() == every, f"all_gather_into_tensor from {start}: {whole}"
        whole = tt.tensor(every).float()
        part = whole[start : start + 2]
        dist.reduce_scatter_tensor(part, whole)
        assert part.tolist() == [size * v for v in every[2 * rank : 2 * rank + 2]], f"reduce_scatter_tensor into {start}: {part}"
        whole = tt.tensor(every).float()
        part = whole[start : start + 2]
        dist.scatter(part, list(whole.chunk(size)) if rank == 0 else None)
        assert part.tolist() == every[2 * rank : 2 * rank + 2], f"scatter into {start}: {part}"
    whole = tt.tensor([10.0 * rank + k for k in range(size)])
    dist.all_to_all_single(whole, whole)
    assert whole.tolist() == [10.0 * r + rank for r in range(size)]
    rows = list(tt.full((size, 2), float(rank)))
    dist.gather(rows[rank], rows if rank == 0 else None)
    assert [row.tolist() for row in rows] == [[float(r if rank == 0 else rank)] * 2 for r in range(size)]


def main() -> None:
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    {"reductions": reductions, "moves": moves, "large": large, "odd": odd, "shared": shared}[sys.argv[1]](rank, size)
    dist.destroy_process_group()
    print(f"rank {rank} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
