"""torch.amp: GradScaler, and autocast as far as it changes nothing."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import Any

from tritensor import cuda
from tritensor.dtypes import as_dtype
from tritensor.paths.autocast import get_autocast_dtype, refuse
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import public


def is_autocast_available(device_type: str) -> bool:
    """False: ops run in the types that they are given."""
    return False


class autocast:
    """A context in which nothing is cast: autocast(enabled=False), or for a GPU that is not there, which warns as PyTorch does.

    Raises NotImplementedError where ops would have to be cast; convert the model (`model.bfloat16()`) instead.
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"autocast: device_type {device_type!r} is not a string; give 'cuda' or 'cpu'")
        if enabled and device_type == "cuda" and not cuda.is_available():
            warnings.warn("autocast: CUDA is not available; nothing is cast", UserWarning, stacklevel=2)
            enabled = False
        if enabled:
            refuse("autocast")
        self.device, self.fast_dtype = device_type, as_dtype(dtype) if dtype is not None else get_autocast_dtype(device_type)

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call


class cuda_autocast(autocast):
    """`torch.cuda.amp.autocast(enabled=True, ...)`: autocast("cuda", ...)."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class cpu_autocast(autocast):
    """`torch.cpu.amp.autocast(enabled=True, ...)`: autocast("cpu", ...)."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler:
    """Loss scaling for 16-bit training: scale(loss).backward(), step(optimizer), update().

    The scale grows by growth_factor after growth_interval steps without an infinite or NaN gradient, and shrinks by backoff_factor after one with;
    such a step is left out. Does nothing where it is not enabled, or where there is no GPU (device "cuda").
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn("GradScaler: CUDA is not available; nothing is scaled", UserWarning, stacklevel=2)
            enabled = False
        if enabled and not (growth_factor > 1.0 > backoff_factor):
            raise ValueError(f"GradScaler: growth_factor {growth_factor} must be above 1 and backoff_factor {backoff_factor} below it")
        self._enabled, self._scale, self._growth_tracker = enabled, float(init_scale), 0
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._found: dict[int, bool] = {}  # whether the gradients of an optimizer, by id, were infinite when they were unscaled
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each of an iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if not isinstance(outputs, Iterable):
            raise ValueError(f"scale: a {type(outputs).__name__}; give a tensor or an iterable of tensors")
        return type(outputs)(self.scale(x) for x in outputs)  # type: ignore[call-arg]

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale. Raises RuntimeError the second time before update()."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for g in grads:
            g.mul_(1.0 / self._scale)
        self._found[id(optimizer)] = any(not bool(public["isfinite"](g).all()) for g in grads)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(), unless a gradient was infinite or NaN; unscales first where that was not done."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Set the scale for the next step: `new_scale`, or by what the gradients were."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._found.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """The scale; 1.0 where nothing is scaled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, its factors, and how many steps it has held; {} where nothing is scaled."""
        if not self._enabled:
            return {}
        names = ("growth_factor", "backoff_factor", "growth_interval")
        return {"scale": self._scale, **{n: getattr(self, "_" + n) for n in names}, "_growth_tracker": self._growth_tracker}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state_dict. Raises RuntimeError for that of a scaler that was not enabled."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("load_state_dict: the source state dict is empty, of a GradScaler that was not enabled")
        self._scale, self._growth_tracker = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
        for n in ("growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, "_" + n, state_dict[n])


class CudaGradScaler(GradScaler):
    """`torch.cuda.amp.GradScaler(init_scale=65536.0, ...)`: GradScaler("cuda", ...)."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None) -> Any:
    """A decorator of a Function's forward that changes nothing: nothing is cast outside of it either. Raises NotImplementedError for cast_inputs."""
    if cast_inputs is not None:
        raise NotImplementedError("custom_fwd: cast_inputs; ops run in the types that they are given, convert them in forward")
    return fwd if fwd is not None else lambda f: f


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    """A decorator of a Function's backward that changes nothing."""
    return bwd if bwd is not None else lambda f: f
