"""Automatic mixed precision: autocast, GradScaler, decorators for a Function of one's own."""

from tritensor.amp.autocast_mode import autocast as autocast
from tritensor.amp.autocast_mode import custom_bwd as custom_bwd
from tritensor.amp.autocast_mode import custom_fwd as custom_fwd
from tritensor.amp.autocast_mode import is_autocast_available as is_autocast_available
from tritensor.amp.grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
