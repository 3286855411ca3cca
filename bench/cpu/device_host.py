"""Host cost of an op on device cuda, floor and parts, beside torch's CPU op: run by `python -m bench host` in a process of its own.

Without a GPU the driver is the C stub of tests/stub, which answers and runs nothing: what is timed is all that Python, tritensor
and cuda-python do. With one, the queue is drained between rounds.
"""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

import tritensor as tt
from bench.cpu.host import chain
from bench.cpu.timing import line, paired, torch_or_none
from tritensor.cuda.launch import launch
from tritensor.cuda.runtime.active import runtime
from tritensor.ops.table import registry


def _drained(f, index):
    """f, and a wait at every 500th call, so that a real GPU's queue does not fill."""
    left = 500

    def call():
        nonlocal left
        f()
        left -= 1
        if left == 0:
            left = 500
            runtime().synchronize(index)

    return call


def main() -> None:
    torch = torch_or_none()
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 1.5, (4, 3)).astype(np.float32) for _ in range(2))
    x, y = (tt.tensor(v, device="cuda").requires_grad_() for v in (a, b))
    p, q = (torch.from_numpy(v.copy()).requires_grad_() for v in (a, b)) if torch else (None, None)
    plain, other = x.detach(), y.detach()
    plain_p, other_q = (p.detach(), q.detach()) if torch else (None, None)
    dropped, dropped_p = tt.nn.Dropout(0.1), torch.nn.Dropout(0.1) if torch else None
    x + y, plain.sum()
    add = registry["add"].forward
    recording = next(iter(add.recordings.values()))
    pair = (x._array, y._array)
    kernels = runtime().kernels
    made, _ = runtime().prepare(_add_launch())
    block, pointers = made.block, (x._array.pointer, y._array.pointer, x._array.pointer)
    into = tt.empty_like(plain)
    free_list = x._array.storage.free_list
    free = free_list.free

    def reuse():
        free.append(free_list.allocator.take(free_list))

    cases = {
        "cuLaunchKernelEx by cuda-python (the floor)": (lambda: kernels.start(made.config, made.loaded.function, block.address, 0), None),
        "pack three addresses": (lambda: block.pack(block.memory, 0, *pointers), None),
        "a block from the allocator and back": (reuse, None),
        "replay: block, launch, array": (lambda: recording(pair), None),
        "tt.launch of a kernel, 3 tensors, a size, a constant": (lambda: launch(_sum, (1,), plain, other, into, 12, BLOCK=16), None),
        "kernel[grid] of the same, Triton's own spelling": (lambda: _sum[(1,)](plain, other, into, 12, BLOCK=16), None),
        "kernel[grid] with a function for a grid": (lambda: _sum[_grid](plain, other, into, 12, BLOCK=16), None),
        "x + y, nothing recorded": (lambda: plain + other, lambda: plain_p + other_q),
        "x + y, gradient recorded": (lambda: x + y, lambda: p + q),
        "x * 2.0, gradient recorded": (lambda: x * 2.0, lambda: p * 2.0),
        "x.tanh(), gradient recorded": (lambda: x.tanh(), lambda: p.tanh()),
        "x.sum(), gradient recorded": (lambda: x.sum(), lambda: p.sum()),
        "x.mm(y.t()), gradient recorded": (lambda: x.mm(y.t()), lambda: p.mm(q.t())),
        "x.mul_(0.5), in place": (lambda: plain.mul_(0.5), lambda: plain_p.mul_(0.5)),
        "Dropout, gradient recorded": (lambda: dropped(x), lambda: dropped_p(p)),
        "chain of 100 ops, forward and backward": (lambda: chain(x, y), lambda: chain(p, q)),
    }
    print(f"host cost on device cuda ({tt.cuda.get_device_name(0)}), beside torch's CPU op")
    for label, (ours, peer) in cases.items():
        print(line(label, paired(_drained(ours, 0), peer if torch else None)), flush=True)


@triton.jit
def _sum(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def _grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def _add_launch():
    """What add's corner gives launch() for two (4, 3) tensors."""
    from tritensor.ground.thread_state import here
    from tritensor.ops.array import CudaArray
    from tritensor.ops.replay.recorder import Recorder

    u, v = (tt.zeros(4, 3, device="cuda")._array for _ in range(2))
    assert isinstance(u, CudaArray)
    here.recorder = Recorder((u, v))
    try:
        registry["add"].forward.function(*here.recorder.inputs)
        return here.recorder.calls[0]
    finally:
        here.recorder = None


if __name__ == "__main__":
    main()
