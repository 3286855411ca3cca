"""torch.backends: flags that scripts set, and questions that they ask. TF32 sets the precision of float32 products; other flags are remembered."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any

from tritensor.ground.naming.named_module import NamedModule
from tritensor.ops.matmul_precision import get_float32_matmul_precision, set_float32_matmul_precision

# The flags of each backend and what they are before anyone sets them: PyTorch's values. Whatever they say, every op is deterministic, and no kernel is
# chosen by timing it. `enabled` switches nothing off: there is no second implementation behind it.
FLAGS: dict[str, dict[str, Any]] = {
    "cudnn": {"enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True},
    "mkldnn": {"enabled": True, "deterministic": False},
    "opt_einsum": {"enabled": True, "strategy": "auto"},
    "miopen": {"immediate": False},
}
# What attention may be computed by; there is one way here.
_SDP = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


class Backend(NamedModule):
    """A module of functions and flags."""

    def __init__(self, name: str, caption: str, **members: Any) -> None:
        super().__init__(f"tritensor.backends.{name}", caption)
        self.__dict__.update(members)
        sys.modules[self.__name__] = self  # `import torch.backends.cudnn as cudnn` finds it there

    def __getattr__(self, name: str) -> Any:
        from tritensor.torch_compat.finder import look_up

        return look_up(self.__name__.removeprefix("tritensor."), name)


class Products:
    """torch.backends.cuda.matmul: `allow_tf32` is set_float32_matmul_precision("high") or "highest"."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 products may use TF32."""
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        set_float32_matmul_precision("high" if value else "highest")  # one setting under two names, as in PyTorch

    @property
    def fp32_precision(self) -> str:
        """ "tf32" or "ieee"."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("tf32", "ieee", "none"):
            raise ValueError(f"fp32_precision: {value!r}; give 'ieee' or 'tf32'")
        self.allow_tf32 = value == "tf32"


def answers(value: Any, doc: str) -> Callable[..., Any]:
    """A function that gives one answer."""

    def answer(*_: Any) -> Any:
        return value

    answer.__doc__ = doc
    return answer


def _flags_context(name: str) -> Callable[..., Any]:
    @contextlib.contextmanager
    def flags(**values: Any) -> Iterator[None]:
        """Other flags within a `with`."""
        module: Any = sys.modules[f"tritensor.backends.{name}"]
        unknown = [k for k in values if k not in FLAGS[name]]  # as PyTorch, whose flags() has fixed parameters
        if unknown:
            raise TypeError(f"{name}.flags: no flag {unknown[0]!r}; there are {', '.join(FLAGS[name])}")
        before = {k: getattr(module, k) for k in values}  # the module's own: a script may have set them since
        vars(module).update(values)
        try:
            yield
        finally:
            vars(module).update(before)

    return flags


def _sdp_switch(name: str) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    def enable(enabled: bool) -> None:
        """Remembered; attention is computed in one way."""
        _SDP[name] = bool(enabled)

    def enabled() -> bool:
        """What was set last."""
        return _SDP[name]

    return enable, enabled


@contextlib.contextmanager
def _sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict[str, bool]]:
    """The older spelling of nn.attention.sdpa_kernel: other switches within a `with`."""
    before = dict(_SDP)
    _SDP.update(flash=bool(enable_flash), math=bool(enable_math), mem_efficient=bool(enable_mem_efficient), cudnn=bool(enable_cudnn))
    try:
        yield dict(_SDP)
    finally:
        _SDP.update(before)


def flags_frozen() -> bool:
    """False: flags can be set at any time."""
    return False


def __allow_nonbracketed_mutation() -> contextlib.AbstractContextManager[None]:
    """A block in which flags may be set outside of a `with flags(...)`: they may be anywhere here."""
    return contextlib.nullcontext()


no = answers(False, "False.")
cuda: Any = Backend("cuda", "CUDA", matmul=Products(), is_built=answers(True, "True: kernels for CUDA GPUs are compiled where one is."))
for _name in _SDP:
    _enable, _enabled = _sdp_switch(_name)
    setattr(cuda, f"enable_{_name}_sdp", _enable)
    setattr(cuda, f"{_name}_sdp_enabled", _enabled)
cuda.sdp_kernel = _sdp_kernel
cudnn: Any = Backend(
    "cudnn", "cuDNN: not used", **FLAGS["cudnn"], flags=_flags_context("cudnn"), version=answers(None, "None."), is_available=no
)
cudnn.is_acceptable = no
mps: Any = Backend("mps", "Apple's GPUs", is_available=no, is_built=no, is_macos_or_newer=no, is_macos13_or_newer=no)
mkl: Any = Backend("mkl", "Intel's MKL", is_available=no, VERBOSE_OFF=0, VERBOSE_ON=1)
mkldnn: Any = Backend("mkldnn", "oneDNN", **FLAGS["mkldnn"], is_available=no, flags=_flags_context("mkldnn"))
openmp: Any = Backend("openmp", "OpenMP", is_available=no)
miopen: Any = Backend("miopen", "MIOpen", **FLAGS["miopen"])
opt_einsum: Any = Backend(
    "opt_einsum", "opt_einsum: contraction orders for einsum", **FLAGS["opt_einsum"],
    is_available=lambda: importlib.util.find_spec("opt_einsum") is not None,
    get_opt_einsum=lambda: importlib.import_module("opt_einsum") if importlib.util.find_spec("opt_einsum") else None,
)  # fmt: skip
quantized: Any = Backend("quantized", "quantised kernels: none", engine="none", supported_engines=["none"])
mha: Any = Backend("mha", "attention's fast path: none", get_fastpath_enabled=no, set_fastpath_enabled=answers(None, "Accepted."))
cpu: Any = Backend("cpu", "the CPU", get_cpu_capability=answers("DEFAULT", "DEFAULT: numpy chooses its instructions itself."))
cusparselt: Any = Backend("cusparselt", "cuSPARSELt", is_available=no, version=answers(None, "None."))
kleidiai: Any = Backend("kleidiai", "KleidiAI", is_available=no)
nnpack: Any = Backend("nnpack", "NNPACK", is_available=no)
xnnpack: Any = Backend("xnnpack", "XNNPACK", enabled=False)
