"""One rank of tests/gpu/test_nccl.py: `python -m tests.gpu.nccl_rank RANK SIZE ID`, on the GPU of that number; "-" for what NCCL_COMM_ID says."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import tritensor as tt
from tritensor.distributed.backends.agreement import check_same_call
from tritensor.distributed.backends.nccl import NcclBackend, unique_id
from tritensor.distributed.calls import Call
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground import dtypes
from tritensor.ground.device import gpu
from tritensor.ops.array import CudaArray, empty, from_host, to_host

N = 1000


def _call(name: str) -> Call:
    return Call(name, 1, "test")


def _there(backend: NcclBackend, values: object, dtype: str = "float32") -> CudaArray:
    return from_host(np.asarray(values).astype(getattr(dtypes, dtype).numpy), gpu(backend.rank))  # type: ignore[no-any-return]


def _same(name: str, array: CudaArray, wanted: object) -> None:
    np.testing.assert_array_equal(to_host(array).astype(np.float64), np.asarray(wanted, np.float64), err_msg=name)


def reductions(b: NcclBackend) -> None:
    for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"):
        given = [np.arange(N) % 5 + r + 1 for r in range(b.size)]
        wanted = {
            ReduceOp.SUM: sum(given), ReduceOp.PRODUCT: np.prod(given, 0), ReduceOp.MIN: np.min(given, 0), ReduceOp.MAX: np.max(given, 0),
            ReduceOp.AVG: sum(given) // b.size if "int" in dtype else sum(given) / b.size,
        }  # fmt: skip
        for op, want in wanted.items():
            x = _there(b, given[b.rank], dtype)
            b.all_reduce(_call("all_reduce"), op, x).wait()
            _same(f"all_reduce {dtype} {op.name}", x, want)
            x = _there(b, given[b.rank], dtype)
            b.reduce(_call("reduce"), op, b.size - 1, x).wait()
            _same(f"reduce {dtype} {op.name}", x, want if b.rank == b.size - 1 else given[b.rank])
    whole = _there(b, np.arange(b.size * N))
    part = empty((N,), whole.dtype, gpu(b.rank))
    b.reduce_scatter(_call("reduce_scatter"), ReduceOp.SUM, whole, part).wait()
    _same("reduce_scatter", part, b.size * np.arange(b.rank * N, (b.rank + 1) * N))


def movements(b: NcclBackend) -> None:
    for dtype in ("bool_", "int16", "float32", "float8_e5m2"):
        given = [(np.arange(N) + r) % 2 for r in range(b.size)]
        x = _there(b, given[b.rank], dtype)
        whole = empty((b.size * N,), x.dtype, gpu(b.rank))
        b.all_gather(_call("all_gather"), x, whole).wait()
        _same(f"all_gather {dtype}", whole, np.concatenate(given))
        b.broadcast(_call("broadcast"), b.size - 1, x).wait()
        _same(f"broadcast {dtype}", x, given[-1])
        b.gather(_call("gather"), 0, x, whole if b.rank == 0 else None).wait()
        b.scatter(_call("scatter"), 0, whole if b.rank == 0 else None, x).wait()
        _same(f"gather and scatter {dtype}", x, given[-1])
    give = [b.rank + 1] * b.size
    take = [r + 1 for r in range(b.size)]
    got = empty((sum(take),), np.dtype(np.float32), gpu(b.rank))
    b.all_to_all(_call("all_to_all"), _there(b, np.full(sum(give), b.rank)), give, got, take).wait()
    _same("all_to_all", got, np.repeat(np.arange(b.size), take))


def messages(b: NcclBackend) -> None:
    after, before = (b.rank + 1) % b.size, (b.rank - 1) % b.size
    got = empty((N,), np.dtype(np.float32), gpu(b.rank))
    with b.together():
        b.send(_call("send"), after, 0, _there(b, np.full(N, b.rank)))
        received = b.receive(_call("recv"), before, 0, got)
    received.wait()
    _same("together", got, np.full(N, before))
    if b.size > 1 and b.rank < 2:
        pending = b.send(_call("send"), 1, 0, got) if b.rank == 0 else b.receive(_call("recv"), 0, 0, got)
        pending.wait(60.0)
        _same("send and recv", got, np.full(N, b.size - 1))


def order(b: NcclBackend) -> None:
    """Work before and after a call, on a stream of its own, a hundred times; memory comes and goes meanwhile."""
    with tt.cuda.stream(tt.cuda.Stream()):
        for step in range(100):
            x = tt.full((1 << 20,), float(step), device=f"cuda:{b.rank}")
            b.all_reduce(_call("all_reduce"), ReduceOp.SUM, x._array).wait()
            y = x + 1.0
            del x
            assert y.max().item() == y.min().item() == b.size * step + 1.0, step


def groups(b: NcclBackend) -> None:
    check_same_call(b, _call("all_reduce"), range(b.size))
    half = b.split(_call("new_group"), [b.size - 1])
    assert (half is None) == (b.rank != b.size - 1)
    if half is not None:
        half.all_reduce(_call("all_reduce"), ReduceOp.SUM, _there(b, np.ones(N))).wait()
        half.barrier(_call("barrier")).wait()
        half.close()
    b.barrier(_call("barrier")).wait()
    b.close()


PARTS: tuple[Callable[[NcclBackend], None], ...] = (reductions, movements, messages, order, groups)


def main() -> None:
    rank, size = int(sys.argv[1]), int(sys.argv[2])
    tt.cuda.set_device(rank)
    identity = unique_id() if sys.argv[3] == "-" else bytes.fromhex(sys.argv[3])
    backend = NcclBackend(rank, size, identity, rank, 60.0)
    for part in PARTS:
        part(backend)
    print("all right")


if __name__ == "__main__":
    main()
