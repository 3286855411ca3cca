"""The doctor's probe of the devices themselves: what they are, a kernel against numpy, what a launch costs."""

from __future__ import annotations

import importlib
import json
import time
from typing import Any, NamedTuple

import numpy as np

from tritensor.cuda.compiler import compile_log, precompile
from tritensor.cuda.runtime import active
from tritensor.ops.table import ops
from tritensor.tensor.core import new_tensor


class Check(NamedTuple):
    """One finding. `status` is "ok", "note" (worth knowing), "warn" (may go wrong) or "fail" (no GPU can be used so); `fix` says what to do."""

    group: str
    name: str
    status: str
    value: str
    fix: str = ""


def probe() -> None:
    """Print a JSON list per finding about each device, as they are found."""

    def say(check: Check) -> None:
        print(json.dumps(check), flush=True)  # what was found before a crash is to arrive

    try:
        runtime = active.runtime()
        count = 1 if active.emulated() else runtime.device_count()
    except Exception as error:  # whatever the driver or its bindings raise is the finding
        say(Check("device", "cuda", "fail", f"{type(error).__name__}: {error}", _advice(str(error))))
        return
    for index in range(count):
        for step in (_properties, _kernel, _timing):
            try:
                say(step(runtime, index))
            except Exception as error:  # the same; the next device may work
                say(Check("device", f"cuda:{index}", "fail", f"{type(error).__name__}: {error}", _advice(str(error))))
                break


def _advice(text: str) -> str:
    """What to do about an error of the driver or compiler, where its own message does not say."""
    if "NO_BINARY_FOR_GPU" in text or "INVALID_IMAGE" in text or "UNSUPPORTED_PTX" in text:
        return "the driver is older than Triton's ptxas: update it, or set TRITON_PTXAS_PATH and TRITON_PTXAS_BLACKWELL_PATH to older ones"
    if "OUT_OF_MEMORY" in text or "OutOfMemory" in text:
        return "another process fills the GPU; nvidia-smi shows which"
    return "see the message; nvidia-smi and dmesg may tell more"


def _properties(runtime: Any, index: int) -> Check:
    p = runtime.properties(index)
    free, total = runtime.allocator(index).info()
    arch = 10 * p.capability[0] + p.capability[1]
    text = f"{p.name}, sm_{arch}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free, {p.multi_processor_count} multiprocessors"
    name = f"cuda:{index}"
    if active.emulated():
        return Check("device", name, "note", f"{text}: emulated, no GPU is used")
    if arch < min(precompile.ARCHS):  # the driver would refuse the cubin, with a code that says less
        return Check("device", name, "fail", text, f"Triton compiles for sm_{min(precompile.ARCHS)} and later; use a newer GPU")
    api = importlib.import_module("cuda.bindings.driver")
    mode = api.cuDeviceGetAttribute(api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, index)[1]
    text += {2: ", no process may use it (prohibited mode)", 3: ", one process at a time (exclusive mode)"}.get(int(mode), "")
    if free < 512 << 20:
        return Check("device", name, "warn", text, "little memory is free; nvidia-smi shows who holds it")
    return Check("device", name, "ok", text)


def _kernel(runtime: Any, index: int) -> Check:
    """x * y + x and its gradient through the whole road, against numpy, to the bit."""
    n = 1000 if active.emulated() else 100_003
    a, b = (np.random.default_rng(i).integers(-8, 9, n).astype(np.float32) for i in (0, 1))  # small integers: sums and products are exact
    start = time.perf_counter()
    x, y = (new_tensor(v).to(f"cuda:{index}") for v in (a, b))
    x.requires_grad = True
    z = ops.add(ops.mul(x, y), x)
    z.backward(new_tensor(np.ones(n, np.float32)).to(f"cuda:{index}"))
    assert x.grad is not None
    found, gradient = z.detach().cpu()._array, x.grad.cpu()._array
    took = time.perf_counter() - start  # with the compilation: that is what a first call costs here
    for name, got, want in (("x * y + x", found, a * b + a), ("its gradient", gradient, b + 1)):
        wrong = int((got != want).sum())
        if wrong:
            at = int(np.flatnonzero(got != want)[0])
            value = f"{name} is wrong in {wrong} of {n} places: {got[at]} in place of {want[at]} at {at}"
            fix = "the GPU or its memory is faulty, or this is a bug of tritensor: please report it"
            return Check("device", f"cuda:{index} kernel", "fail", value, fix)
    sources = [e.source for e in compile_log.entries()]
    how = ", ".join(f"{sources.count(s)} {what}" for s, what in _SOURCES.items() if s in sources)
    value = f"x * y + x and its gradient equal numpy's; first call {took:.2f} s{f' (kernels: {how})' if how else ''}"
    return Check("device", f"cuda:{index} kernel", "ok", value)


_SOURCES = {"compiled": "compiled", "triton": "from Triton's cache", "disk": "from tritensor's cache", "pack": "from a pack"}


def _timing(runtime: Any, index: int) -> Check:
    """Microseconds of an add on the host, and of an add with the wait for its end."""
    calls = 3 if active.emulated() else 2000
    x = new_tensor(np.ones(256, np.float32)).to(f"cuda:{index}")
    for _ in range(calls // 10 + 2):  # compiled, recorded and warm before the clock runs
        ops.add(x, x)
    runtime.synchronize(index)
    start = time.perf_counter()
    for _ in range(calls):
        ops.add(x, x)
    host = (time.perf_counter() - start) / calls
    runtime.synchronize(index)
    start = time.perf_counter()
    for _ in range(calls // 10 + 1):
        ops.add(x, x)
        runtime.synchronize(index)
    both = (time.perf_counter() - start) / (calls // 10 + 1)
    value = f"an add of 256 numbers takes the host {1e6 * host:.1f} us, and {1e6 * both:.1f} us until it is done"
    return Check("device", f"cuda:{index} launch", "ok", value)
