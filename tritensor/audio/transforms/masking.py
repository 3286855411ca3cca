"""Layers that mask stretches of spectrograms (..., freq, time) while training."""

from __future__ import annotations

from tritensor.audio import functional as F
from tritensor.ground.errors import ArgumentError
from tritensor.nn import Module
from tritensor.tensor.core import Tensor


class _AxisMasking(Module):
    def __init__(self, mask_param: int, axis: int, iid_masks: bool, p: float = 1.0) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p is {p}; give a share, 0 to 1")
        self.mask_param, self.axis, self.iid_masks, self.p = mask_param, axis, iid_masks, p

    def forward(self, specgram: Tensor, mask_value: float | Tensor = 0.0) -> Tensor:
        """(..., freq, time) -> the same."""
        axis = self.axis + specgram.dim() - 3
        if self.iid_masks:
            return F.mask_along_axis_iid(specgram, self.mask_param, mask_value, axis, self.p)
        return F.mask_along_axis(specgram, self.mask_param, float(mask_value), axis, self.p)


class FrequencyMasking(_AxisMasking):
    """A stretch of less than freq_mask_param frequencies set to a value; one of its own in each spectrogram with iid_masks."""

    def __init__(self, freq_mask_param: int, iid_masks: bool = False) -> None:
        super().__init__(freq_mask_param, 1, iid_masks)


class TimeMasking(_AxisMasking):
    """A stretch of less than time_mask_param frames, and at most a share p of them, set to a value."""

    def __init__(self, time_mask_param: int, iid_masks: bool = False, p: float = 1.0) -> None:
        super().__init__(time_mask_param, 2, iid_masks, p)


class SpecAugment(Module):
    """Several masks in time and in frequency, filled with the mean, or with 0 where zero_masking."""

    def __init__(
        self, n_time_masks: int, time_mask_param: int, n_freq_masks: int, freq_mask_param: int, iid_masks: bool = True, p: float = 1.0,
        zero_masking: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.n_time_masks, self.time_mask_param = n_time_masks, time_mask_param
        self.n_freq_masks, self.freq_mask_param = n_freq_masks, freq_mask_param
        self.iid_masks, self.p, self.zero_masking = iid_masks, p, zero_masking

    def forward(self, specgram: Tensor) -> Tensor:
        """(..., freq, time) -> the same."""
        filling: float | Tensor = 0.0 if self.zero_masking else specgram.mean()
        last = specgram.dim() - 1
        masks = [(self.time_mask_param, last)] * self.n_time_masks + [(self.freq_mask_param, last - 1)] * self.n_freq_masks
        for width, axis in masks:
            if last > 1 and self.iid_masks:
                specgram = F.mask_along_axis_iid(specgram, width, filling, axis, self.p)
            else:
                specgram = F.mask_along_axis(specgram, width, filling, axis, self.p)  # type: ignore[arg-type]
        return specgram
