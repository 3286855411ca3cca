"""Tensor maps: the 128 bytes by which the hardware knows an array and its tiles, encoded by the driver and kept by address and form."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.driver.calls import Driver
from tritensor.ground.errors import LaunchError

NBYTES = 128  # of a map, and what its address must divide by
KEPT = 1024  # maps of one form, and forms
_SINCE = 12000  # the version of the driver that learnt to encode
_PROMOTE_128 = 2  # CU_TENSOR_MAP_L2_PROMOTION_L2_128B, as Triton's launcher asks
_FILL_NAN = 1  # CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
_TF32 = 11  # CU_TENSOR_MAP_DATA_TYPE_TFLOAT32: float32 that is rounded on its way
# The element types as kernels number them (metadata) and as the host does: the same but for these.
_HOST_TYPES = {8: 10, 9: 8, 10: 9}


class Form(NamedTuple):
    """All of a map but the address. Sizes innermost first, as the hardware counts; strides in bytes, without the innermost."""

    type: int
    itemsize: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    fill: int


def form_of(descriptor: TensorDescriptor, wanted: dict[str, Any], kernel: str) -> Form:
    """The form of a descriptor for a kernel; `wanted` is what the compiler says of that argument. Raises LaunchError."""
    if wanted.get("fp4_padded") or wanted.get("is_im2col"):
        what = "4-bit floats" if wanted.get("fp4_padded") else "convolution windows (im2col)"
        raise LaunchError(f"{kernel}: wants a tensor map of {what}, which tritensor does not make")
    itemsize = descriptor.array.dtype.itemsize
    if wanted["elem_size"] != itemsize:
        raise LaunchError(f"{kernel}: was compiled for elements of {wanted['elem_size']} bytes, {descriptor!r} has {itemsize}")
    kind = _TF32 if descriptor.rounds else wanted["elem_type"]
    strides = tuple([s * itemsize for s in reversed(descriptor.strides[:-1])])
    fill = _FILL_NAN if descriptor.padding == "nan" else 0
    box = tuple(reversed(wanted["block_size"]))
    return Form(_HOST_TYPES.get(kind, kind), itemsize, descriptor.shape[::-1], strides, box, wanted["swizzle"], fill)


class TensorMaps:
    """Encodes maps and keeps them. Used under the lock of `Kernels`.

    The driver's function is called at the address that cuda-python finds, with memory of our own: cuda-python's CUtensorMap lies
    at multiples of 16, and the driver wants 64.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._forms: dict[Form, dict[int, bytes]] = {}
        self._function: Callable[..., int] | None = None
        self._old = False  # whether the driver marks small arrays wrongly
        self._memory = ctypes.create_string_buffer(2 * NBYTES)
        self._place = ctypes.addressof(self._memory) + -ctypes.addressof(self._memory) % NBYTES

    def encoder(self, form: Form, kernel: str) -> Callable[[int], bytes]:
        """What gives the map of a form for an address; the last addresses are remembered."""
        if len(self._forms) >= KEPT:
            self._forms.clear()
        kept = self._forms.setdefault(form, {})

        def encoded(address: int) -> bytes:
            found = kept.get(address)
            if found is None:
                if len(kept) >= KEPT:
                    # the oldest: a program that allocates anew each step would fill it for ever
                    del kept[next(iter(kept))]
                found = kept[address] = self._encode(form, address, kernel)
            return found

        return encoded

    def _encode(self, form: Form, address: int, kernel: str) -> bytes:
        function = self._function or self._find()
        rank = len(form.sizes)
        sizes, strides = (ctypes.c_uint64 * rank)(*form.sizes), (ctypes.c_uint64 * rank)(*form.strides)
        box, steps = (ctypes.c_uint32 * rank)(*form.box), (ctypes.c_uint32 * rank)(*([1] * rank))
        status = self.driver.api.CUresult(
            function(self._place, form.type, rank, address, sizes, strides, box, steps, 0, form.swizzle, _PROMOTE_128, form.fill)
        )
        if status != self.driver.ok:
            doing = (
                f"{kernel}: tensor map of {address:#x}: sizes {form.sizes}, strides {form.strides} bytes, box {form.box}, innermost first"
            )
            raise self.driver.error("cuTensorMapEncodeTiled", status, f"{doing}, swizzle {form.swizzle}, type {form.type}")
        if self._old and _span(form) < 128 * 1024:
            # Drivers to 13.1 set a bit for arrays below 128 KiB that makes the hardware read wrongly; CUTLASS and Triton clear it too.
            second = ctypes.c_uint64.from_address(self._place + 8)
            second.value &= ~(1 << 21)
        return ctypes.string_at(self._place, NBYTES)

    def _find(self) -> Callable[..., int]:
        """The driver's encoder; every driver that tritensor takes has it."""
        self._old = int(self.driver.call("cuDriverGetVersion")) <= 13010
        u64, u32 = ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint32)
        number, pointer = ctypes.c_int, ctypes.c_void_p
        types = (pointer, number, ctypes.c_uint32, pointer, u64, u64, u32, u32, number, number, number, number)
        self._function = self.driver.function("cuTensorMapEncodeTiled", _SINCE, *types)
        return self._function


def _span(form: Form) -> int:
    """Bytes from an array's first element to its last one, and one more."""
    return 1 + sum([(n - 1) * step for n, step in zip(form.sizes, (form.itemsize, *form.strides), strict=True)])
