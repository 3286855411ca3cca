"""Kernels in a GPU's memory: loaded from cubins, their parameter blocks packed once, launched with nothing but new addresses."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.cuda.compiler.arguments import DESCRIPTOR, Specialization, check_options
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor, rounding_is_known
from tritensor.cuda.driver.devices import Devices
from tritensor.cuda.driver.tensor_maps import NBYTES, TensorMaps, form_of
from tritensor.ground import dtypes
from tritensor.ground.errors import LaunchError
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here

_STATIC_SHARED = 48 * 1024  # bytes of shared memory a kernel may have without asking
_ALLOCATED_AT = 256  # what addresses of allocations divide by, on every GPU
# One 8-byte slot per parameter, so that each is aligned whatever came before.
_SLOTS = {"*": "Q", "i1": "?7x", "i8": "b7x", "u8": "B7x", "i16": "h6x", "u16": "H6x", "i32": "i4x", "u32": "I4x", "i64": "q", "u64": "Q",
          "fp16": "e6x", "bf16": "H6x", "fp32": "f4x", "fp64": "d", "fp8e4nv": "B7x", "fp8e5": "B7x"}  # fmt: skip
_FLOATS: dict[str, Any] = {"fp16": np.float16, "fp32": np.float32}
_AS_BITS = {d.triton: d.numpy for d in dtypes.ALL if d.triton in ("bf16", "fp8e4nv", "fp8e5")}


class Loaded:
    """A kernel in the memory of GPU `index`. `scratch` bytes of global memory per block are its own; `attributes` go with each launch;
    `maps` says, for each tensor descriptor it takes, what its tensor map must be (none where it takes addresses instead)."""

    __slots__ = ("attributes", "clusters", "function", "index", "maps", "name", "scratch", "shared", "threads")

    def __init__(self, function: Any, cubin: Any, attributes: list[Any], index: int) -> None:
        self.function = function
        self.index = index
        self.maps = cubin.tensordesc
        self.name = cubin.name
        self.scratch = cubin.global_scratch_size
        self.shared = cubin.shared
        self.threads = 32 * cubin.num_warps
        self.clusters = cubin.num_ctas
        self.attributes = attributes


class Block:
    """The parameters of one launch in memory: addresses of arrays one after the other, then the numbers, which are packed once.

    `address` is that of the array of pointers to parameters, in the kernel's order, that the driver takes. `pack(memory, 0, *pointers)`
    takes the addresses of the arrays and of what tensor maps describe, in the kernel's order. Maps stand before the addresses.
    """

    __slots__ = ("_addresses", "_kinds", "_layout", "_numbers_at", "address", "memory", "pack", "types")

    def __init__(self, types: tuple[str, ...], values: list[Any], encoders: Sequence[Callable[[int], bytes]] = ()) -> None:
        """`types`: the kernel's parameters in order, "*" for an address, "*u32" for a number that is packed with the addresses, "map" for a
        tensor map; `values`: the other numbers, in order; `encoders`: for each map, what makes it of an address."""
        self.types = types
        arrays = [i for i, t in enumerate(types) if t[0] == "*"]
        maps = [i for i, t in enumerate(types) if t == "map"]
        numbers = [i for i, t in enumerate(types) if t[0] != "*" and t != "map"]
        self.memory = ctypes.create_string_buffer(max(8 * len(types), 8) + NBYTES * (len(maps) + 1 if maps else 0))
        start = ctypes.addressof(self.memory)
        first = -start % NBYTES if maps else 0
        offset = first + NBYTES * len(maps)
        place = {i: start + first + NBYTES * k for k, i in enumerate(maps)}
        place |= {i: start + offset + 8 * k for k, i in enumerate((*arrays, *numbers))}
        self._addresses = (ctypes.c_void_p * max(len(types), 1))(*(place[i] for i in range(len(types))))
        self.address = ctypes.addressof(self._addresses)
        self.pack: Callable[..., None] = struct.Struct(f"<{len(arrays)}Q").pack_into
        if maps:
            order = sorted((*arrays, *maps))
            self.pack = _pack_maps(
                first, [(order.index(i), e) for i, e in zip(maps, encoders, strict=True)], [order.index(i) for i in arrays]
            )
        self._kinds = [types[i] for i in numbers]
        self._layout = struct.Struct("<" + "".join([_SLOTS[t] for t in self._kinds]))
        self._numbers_at = offset + 8 * len(arrays)
        self.put(values)

    def put(self, values: list[Any]) -> None:
        """Pack the numbers, in order. Raises LaunchError for one that does not fit its type."""
        values = [_bits_of(v, t) if t in _AS_BITS else v for v, t in zip(values, self._kinds, strict=True)]
        try:
            try:
                self._layout.pack_into(self.memory, self._numbers_at, *values)
            except OverflowError:  # a float beyond its type is infinite there, as it is to numpy and to Triton's own launcher
                values = [_round_to(v, t) if t in _FLOATS else v for v, t in zip(values, self._kinds, strict=True)]
                self._layout.pack_into(self.memory, self._numbers_at, *values)
        except struct.error as error:
            raise LaunchError(f"launch: values {values} do not fit the kernel's parameters {self.types}: {error}") from None


def _pack_maps(first: int, maps: list[tuple[int, Callable[[int], bytes]]], plain: list[int]) -> Callable[..., None]:
    """A block's `pack` where some pointers are of described arrays: their maps go to offset `first`, the plain addresses behind them.

    `maps` and `plain` hold positions among the pointers. Maps depend on the address, so each replay looks its own up.
    """
    pack_into = struct.Struct("<" + f"{NBYTES}s" * len(maps) + f"{len(plain)}Q").pack_into

    def pack(memory: Any, offset: int, *pointers: int) -> None:
        pack_into(memory, first, *[encoded(pointers[i]) for i, encoded in maps], *[pointers[i] for i in plain])

    return pack


def _round_to(value: Any, kind: str) -> float:
    """A number as the nearest one of a floating type, perhaps infinity."""
    with np.errstate(over="ignore"):
        return float(_FLOATS[kind](value))


def _bits_of(value: Any, kind: str) -> int:
    """A number of a type that struct does not know, as the unsigned integer of its bits."""
    dtype = _AS_BITS[kind]
    return np.asarray(value, dtype).view(f"u{dtype.itemsize}").item()


def _add(types: list[str], values: list[Any], more: list[tuple[str, Any]]) -> None:
    """Append parameters to lists of types and of the numbers among them."""
    types += [kind for kind, _ in more]
    values += [value for kind, value in more if kind != "*"]


def _as_pointers(d: TensorDescriptor) -> list[tuple[str, Any]]:
    """The parameters of a descriptor on a GPU without tensor maps: triton.backends.nvidia.driver.make_tensordesc_arg without metadata."""
    numbers = [("i64", n) for n in (*d.shape, *d.strides)]
    flags = [("i1", d.padding == "nan")] + ([("i1", d.rounds)] if rounding_is_known() else [])
    return [("*", d.array), *numbers, *flags]


def _zeros(loaded: Loaded) -> list[int]:
    """The values of the scratch pointers that are not needed."""
    return [0] if loaded.scratch else [0, 0]


class Launch:
    """A launch of which everything is settled but the addresses and the stream."""

    __slots__ = ("_parts", "block", "busy", "config", "doing", "grid", "kernels", "loaded", "stream")

    def __init__(
        self, kernels: Kernels, loaded: Loaded, grid: tuple[int, ...], types: tuple[str, ...], values: list[Any],
        encoders: Sequence[Callable[[int], bytes]] = (),
    ) -> None:  # fmt: skip
        """`types`, `values` and `encoders` as Block takes them; `Kernels.lower` makes them."""
        self.kernels = kernels
        self.loaded = loaded
        self.grid = grid
        self.doing = here.doing  # the op and corner that launches, for error messages
        self.busy = False  # between packing and the driver's taking the parameters over
        self._parts = (types, values, encoders)
        # Triton's kernels end with two scratch pointers, global and profile; what is not needed is 0.
        own = ("*", "u64") if loaded.scratch else ("u64", "u64")
        self.block = Block((*types, *own), [*values, *_zeros(loaded)], encoders)
        x, y, z = (*grid, 1, 1)[:3]
        config = kernels.driver.api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = x * loaded.clusters, y, z
        config.blockDimX, config.blockDimY, config.blockDimZ = loaded.threads, 1, 1
        config.sharedMemBytes = loaded.shared
        config.hStream = 0
        if loaded.attributes:
            config.attrs = loaded.attributes
        config.numAttrs = len(loaded.attributes)
        self.config = config
        self.stream = 0

    def scratch(self) -> int:
        """Bytes of global memory that the programs of this launch need for themselves."""
        x, y, z = (*self.grid, 1, 1)[:3]
        return self.loaded.scratch * x * y * z * self.loaded.clusters

    def renew(self, values: list[Any]) -> None:
        """Give it other numbers; their types and order are the same."""
        self.block.put([*values, *_zeros(self.loaded)])

    def again(self) -> Launch:
        """The same launch with a parameter block of its own."""
        made = Launch(self.kernels, self.loaded, self.grid, *self._parts)
        made.doing = self.doing
        return made

    def turn(self, stream: int) -> None:
        """Send it to another stream from now on."""
        self.config.hStream = stream
        self.stream = stream

    def fire(self, pointers: Sequence[int], stream: int) -> None:
        """Launch on a stream. `pointers`: of the arrays, described ones too, in the kernel's order, then of the scratch area if there is one.

        Another thread, or a finalizer that the garbage collector runs in between, may come here while the block is in use: it takes
        a copy. Nothing can come between the look at `busy` and its setting: CPython switches threads and collects at calls only.
        """
        if self.busy:
            self.again().fire(pointers, stream)
            return
        self.busy = True
        try:
            if stream != self.stream:
                self.turn(stream)
            block = self.block
            block.pack(block.memory, 0, *pointers)
            (status,) = self.kernels.start(self.config, self.loaded.function, block.address, 0)
        finally:
            self.busy = False
        if status is not self.kernels.ok:
            raise self.failed(status)

    def failed(self, status: Any) -> Exception:
        """The error of a launch that the driver refused."""
        k = self.loaded
        of = f"{self.doing}: " if self.doing else ""
        doing = f"{of}launch {k.name}: grid {self.grid}, {k.threads} threads, {k.shared} bytes of shared memory"
        if k.clusters != 1:
            doing += f", clusters of {k.clusters}"
        if status.name == "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE":
            doing += f", at most {self.kernels.resident(k)} programs at once on cuda:{k.index}"
        return self.kernels.driver.error("cuLaunchKernelEx", status, doing)


class Kernels:
    """The kernels that this process has loaded, by specialization and GPU."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        self.driver = devices.driver
        self.start = self.driver.api.cuLaunchKernelEx
        self.ok = self.driver.ok
        self.maps = TensorMaps(self.driver)
        self._loading = locks.lock()
        self._loaded: dict[tuple[Specialization, int], Loaded] = {}

    def get(self, spec: Specialization, index: int) -> Loaded:
        """The kernel of a specialization on a GPU, compiled and loaded at its first use there."""
        found = self._loaded.get((spec, index))
        if found is None:
            with self._loading:
                found = self._loaded.get((spec, index))
                if found is None:
                    found = self._loaded[spec, index] = self._load(spec, index)
        return found

    def _load(self, spec: Specialization, index: int) -> Loaded:
        from tritensor.cuda.compiler.cubin_cache import find_cubin

        self.devices.enter(index)  # a module is loaded into the context that is current
        properties = self.devices.properties(index)
        check_options(spec.kernel, spec.options, properties.capability, f"cuda:{index}")
        cubin = find_cubin(spec, 10 * properties.capability[0] + properties.capability[1])
        most = properties.shared_memory_per_block_optin
        if cubin.shared > most:
            raise LaunchError(
                f"{cubin.name}: needs {cubin.shared} bytes of shared memory, a block on cuda:{index} may have {most}; use smaller tiles or fewer stages"
            )
        if cubin.profile_scratch_size:
            raise LaunchError(f"{cubin.name}: was compiled for Triton's profiler, which tritensor does not serve; unset its variables")
        if cubin.global_scratch_align > _ALLOCATED_AT:
            raise LaunchError(
                f"{cubin.name}: wants scratch memory at multiples of {cubin.global_scratch_align}; allocations lie at {_ALLOCATED_AT}"
            )
        doing = f"{here.doing}: " if here.doing else ""
        doing += f"loading kernel {cubin.name} ({len(cubin.image)} bytes) on cuda:{index}"
        # never unloaded: recorded launches and graphs hold its function
        module = self.driver.do(doing, "cuModuleLoadData", cubin.image)
        try:
            function = self._function(doing, module, cubin)
        except BaseException:
            self.driver.status("cuModuleUnload", module)  # the first error is the one to tell
            raise
        return Loaded(function, cubin, self._attributes(cubin), index)

    def _function(self, doing: str, module: Any, cubin: Any) -> Any:
        """The kernel in a loaded module, allowed what it needs."""
        do, attributes = self.driver.do, self.driver.api.CUfunction_attribute
        function = do(doing, "cuModuleGetFunction", module, cubin.name.encode())
        if cubin.shared > _STATIC_SHARED:
            do(doing, "cuFuncSetAttribute", function, attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, cubin.shared)
        if cubin.num_ctas > 8:  # more than 8 blocks in a cluster are not portable, and must be asked for
            do(doing, "cuFuncSetAttribute", function, attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
        return function

    def lower(self, loaded: Loaded, typed: list[tuple[str, Any]]) -> tuple[tuple[str, ...], list[Any], list[Callable[[int], bytes]]]:
        """What specialize() says of a launch's values, as a Block takes it: types, numbers, encoders of tensor maps."""
        if loaded.maps and len(loaded.maps) != sum(kind == DESCRIPTOR for kind, _ in typed):
            raise LaunchError(
                f"{loaded.name}: was compiled for {len(loaded.maps)} tensor maps, which the launch does not give; clear its cache"
            )
        types: list[str] = []
        values: list[Any] = []
        encoders: list[Callable[[int], bytes]] = []
        for kind, value in typed:
            if kind == DESCRIPTOR:
                if loaded.maps:
                    form = form_of(value, loaded.maps[len(encoders)], loaded.name)
                    encoders.append(self.maps.encoder(form, loaded.name))
                    types.append("map")
                else:
                    _add(types, values, _as_pointers(value))
                n = len(value.shape)
                _add(types, values, [*zip(["i32"] * n + ["i64"] * n, (*value.shape, *value.strides), strict=True)])
            else:
                types.append(kind)
                if kind[0] != "*":
                    values.append(value)
        return tuple(types), values, encoders

    def resident(self, loaded: Loaded) -> int:
        """How many blocks of a kernel its GPU holds at once."""
        each = self.driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", loaded.function, loaded.threads, loaded.shared)
        return int(each) * self.devices.properties(loaded.index).multi_processor_count

    def _attributes(self, cubin: Any) -> list[Any]:
        """What the driver must be told with each launch of a kernel: cluster, cooperation, programmatic dependence."""
        api = self.driver.api
        found = []

        def attribute(name: str) -> Any:
            made = api.CUlaunchAttribute()
            made.id = getattr(api.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
            found.append(made)
            return made.value

        if cubin.num_ctas != 1:
            value = attribute("CLUSTER_DIMENSION")
            value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cubin.num_ctas, 1, 1
            value = attribute("CLUSTER_SCHEDULING_POLICY_PREFERENCE")
            value.clusterSchedulingPolicyPreference = api.CUclusterSchedulingPolicy.CU_CLUSTER_SCHEDULING_POLICY_SPREAD
        if cubin.cooperative:
            attribute("COOPERATIVE").cooperative = 1
        if cubin.pdl:
            attribute("PROGRAMMATIC_STREAM_SERIALIZATION").programmaticStreamSerializationAllowed = 1
        return found
