"""GradScaler: losses are scaled up so that 16-bit gradients do not vanish; a step with an infinite or NaN gradient is left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import Enum
from typing import Any

from tritensor import cuda
from tritensor.autograd.modes import no_grad
from tritensor.ground.dtypes import float16, float32, float64, int32
from tritensor.nn.utils.gradients import scale_
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public


class OptState(Enum):
    """How far an optimizer is in a step."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Loss scaling for 16-bit training: scale(loss).backward(), step(optimizer), update().

    The scale grows by growth_factor after growth_interval steps without an infinite or NaN gradient, and shrinks by backoff_factor after one with;
    such a step is left out. The scale stays on the device and nothing waits for a GPU: this library's optimizers look at the flag there. Those
    that are no formula (LBFGS), and others' that do not say `_step_supports_amp_scaling`, cost one wait a step. Does nothing where it is not
    enabled, or where there is no GPU (device "cuda").
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn("GradScaler: CUDA is not available.  Disabling.", UserWarning, stacklevel=2)
            enabled = False
        if enabled and not growth_factor > 1.0:
            raise AssertionError(f"GradScaler: The growth factor must be > 1.0, and it is {growth_factor}")
        if enabled and not backoff_factor < 1.0:
            raise AssertionError(f"GradScaler: The backoff factor must be < 1.0, and it is {backoff_factor}")
        self._device, self._enabled, self._init_scale = device, bool(enabled), float(init_scale)
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._scale: Tensor | None = None  # both 0-d, on the device of the first output that is scaled
        self._growth_tracker: Tensor | None = None
        self._init_growth_tracker = 0
        self._found: dict[int, Tensor] = {}  # by an optimizer's id, whether its gradients were infinite or NaN: 0-d, above 0 where so
        self._stage: dict[int, OptState] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each of an iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._begin(outputs.device).to(outputs.device)
        if not isinstance(outputs, Iterable):
            raise ValueError(f"scale: outputs must be a Tensor or an iterable of Tensors, not a {type(outputs).__name__}; give the loss")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled  # type: ignore[call-arg]

    def _begin(self, device: Any) -> Tensor:
        if self._scale is None:
            # Made at the first output: until then the device is not known.
            self._scale = _make_number(self._init_scale, float32, device)
            self._growth_tracker = _make_number(self._init_growth_tracker, int32, device)
        return self._scale

    def _begun(self, who: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {who} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale. Raises RuntimeError the second time before update()."""
        if not self._enabled:
            return
        scale = self._begun("unscale_")
        stage = self._stage.get(id(optimizer), OptState.READY)
        if stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with no_grad():
            # The reciprocal in float64, rounded once: exact for powers of two.
            found = self._unscale(optimizer, scale.to(float64).reciprocal().to(float32), False)
        if found is not None:
            self._found[id(optimizer)] = found
        self._stage[id(optimizer)] = OptState.UNSCALED

    def _unscale(self, optimizer: Any, inverse: Tensor, allow_fp16: bool) -> Tensor | None:
        """Multiply the gradients by a number; whether one was infinite or NaN, above 0 where so, and None where there are none."""
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        # Unscaling in place could flush 16-bit gradients to 0, which scaling has just prevented.
        if not allow_fp16 and any(g.dtype is float16 for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        groups = _find_process_groups(optimizer)
        if not grads and not groups:
            return None
        found = _make_number(0.0, float32, inverse.device)
        for g in scale_(grads, inverse, found):
            finite = ops.all(public["isfinite"](g), dim=tuple(range(g.ndim)), keepdim=False)
            bad = ops.cast(ops.logical_not(finite), dtype=float32.numpy).to(inverse.device)
            found = ops.maximum(found, bad)
            g.mul_(inverse.to(g.device))
        for group in groups:  # parts of parameters: what one process has found all others must know
            from tritensor import distributed

            distributed.all_reduce(found, distributed.ReduceOp.MAX, group)
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(), unless a gradient was infinite or NaN; unscales first where that was not done.

        Raises RuntimeError for a closure, and the second time before update(); AssertionError where no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        scale = self._begun("step")
        key = id(optimizer)
        stage = self._stage.get(key, OptState.READY)
        if stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        # The optimizer's kernel divides by the scale and looks at the flag itself: no pass over the gradients, no wait.
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            if stage is OptState.READY:
                self._check_inf_per_device(optimizer)
            optimizer.grad_scale = None if stage is OptState.UNSCALED else scale
            optimizer.found_inf = self._found.get(key)
            try:
                result = optimizer.step(*args, **kwargs)
            finally:
                del optimizer.grad_scale, optimizer.found_inf
        else:
            if stage is OptState.READY:
                self.unscale_(optimizer)
            if key not in self._found:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            found = self._found[key]
            # The flag stays on the GPU: reading it here would wait for backward.
            if found.is_cuda and getattr(optimizer, "_takes_found_inf", False):
                optimizer.found_inf = found
                try:
                    result = optimizer.step(*args, **kwargs)
                finally:
                    del optimizer.found_inf
            else:
                result = None if found.item() else optimizer.step(*args, **kwargs)
        self._stage[key] = OptState.STEPPED
        return result

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Look for infinite and NaN gradients and leave them as they are."""
        scale = self._begun("_check_inf_per_device")
        with no_grad():
            found = self._unscale(optimizer, _make_number(1.0, float32, scale.device), True)
        if found is not None:
            self._found[id(optimizer)] = found
        return {} if found is None else {found.device: found}

    def update(self, new_scale: Any = None) -> None:
        """Set the scale for the next step: `new_scale`, a number or a tensor of one, or by what the gradients were."""
        if not self._enabled:
            return
        scale, tracker = self._begun("update"), self._growth_tracker
        assert tracker is not None
        with no_grad():
            if new_scale is not None:
                if isinstance(new_scale, Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                    raise AssertionError("update: new_scale should be a float or a 1-element tensor with requires_grad=False.")
                given = new_scale.detach().to(float32).reshape(()) if isinstance(new_scale, Tensor) else float(new_scale)
                scale.fill_(given)
            elif not self._found:
                raise AssertionError("No inf checks were recorded prior to update.")
            else:
                self._adjust(scale, tracker)
        self._found.clear()
        self._stage.clear()

    def _adjust(self, scale: Tensor, tracker: Tensor) -> None:
        """Shrink or grow the scale, and count, where it lies."""
        found = None
        for f in self._found.values():
            # Optimizers may live on several GPUs, the scale lies on one.
            here = f.to(scale.device)
            found = here if found is None else ops.maximum(found, here)
        assert found is not None
        bad = ops.gt(found, 0)
        held = ops.add(tracker, 1)
        # Computed on the device by selects: a branch would need the values on the host.
        full = ops.eq(held, self._growth_interval)
        grown = ops.mul(scale, self._growth_factor)
        # The scale stops below infinity, as PyTorch's kernel has it.
        grown = ops.where(public["isfinite"](grown), grown, scale)
        after = ops.where(bad, ops.mul(scale, self._backoff_factor), ops.where(full, grown, scale))
        count = ops.where(ops.logical_or(bad, full), 0, held)
        scale.copy_(after)
        tracker.copy_(count)

    def get_scale(self) -> float:
        """The scale; 1.0 where nothing is scaled. Waits for the GPU."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after growth_interval steps without an infinite gradient."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set that factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a step with an infinite or NaN gradient."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set that factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Steps without an infinite gradient after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many steps."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, its factors, and how many steps it has held; {} where nothing is scaled. Waits for the GPU."""
        if not self._enabled:
            return {}
        names = ("growth_factor", "backoff_factor", "growth_interval")
        return {"scale": self.get_scale(), **{n: getattr(self, "_" + n) for n in names}, "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state_dict. Raises RuntimeError for that of a scaler that was not enabled."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler; leave it out"
            )
        self._init_scale, self._init_growth_tracker = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
        # In place: steps that are queued read the tensors.
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
        for n in ("growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, "_" + n, state_dict[n])

    def __getstate__(self) -> dict[str, Any]:
        # Flags of a step under way lie on the device and are not in the state.
        if self._enabled and self._stage:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
            )
        kept = {**self.__dict__, "_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker()}
        return {**kept, "_scale": None, "_growth_tracker": None}


def _find_process_groups(optimizer: Any) -> list[Any]:
    """The groups of processes that hold the other parts of an optimizer's parameters; none where they are whole."""
    found = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            if hasattr(type(p), "process_group") and p.process_group is not None:
                found[id(p.process_group)] = p.process_group
    return list(found.values())


def _make_number(value: float, dtype: Any, device: Any) -> Tensor:
    made: Tensor = ops.full(shape=(), value=value, dtype=dtype.numpy, device=device)
    return made
