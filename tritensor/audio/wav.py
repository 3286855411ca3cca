"""WAV files of whole numbers (PCM), read and written by Python's own `wave`."""

from __future__ import annotations

import os
import wave
from typing import IO, Any

import numpy as np

from tritensor.audio import tensors as T
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.tensor.core import Tensor

_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("u1"), 2: np.dtype("<i2"), 4: np.dtype("<i4")}  # by bytes of a sample; 3 bytes have no type


def _name(file: Any) -> Any:
    return os.fspath(file) if isinstance(file, str | os.PathLike) else file


def load(
    uri: str | os.PathLike[str] | IO[bytes], frame_offset: int = 0, num_frames: int = -1, normalize: bool = True, channels_first: bool = True,
    format: str | None = None, buffer_size: int = 4096, backend: str | None = None,
) -> tuple[Tensor, int]:  # fmt: skip
    """(waveform, sample rate) of a WAV file. The waveform is float32 (channels, frames) in -1 ... 1; with normalize=False of 16 and 32 bits the whole
    numbers, of 8 and 24 bits float32 all the same; channels_first=False transposes it. Raises ValueError for files of another kind."""
    if format not in (None, "wav") or backend is not None:
        raise ArgumentError(f"load: format={format!r}, backend={backend!r}; WAV files alone are read, by no backend")
    try:
        with wave.open(_name(uri), "rb") as f:
            channels, width, rate = f.getnchannels(), f.getsampwidth(), f.getframerate()
            f.setpos(min(frame_offset, f.getnframes()))
            data = f.readframes(f.getnframes() if num_frames < 0 else num_frames)
    except (wave.Error, EOFError) as error:
        raise ArgumentError(f"load: {uri!r} is no WAV file of whole numbers ({error}); convert it to 16-bit PCM") from error
    return _as_waveform(data, channels, width, normalize, channels_first), rate


def _as_waveform(data: bytes, channels: int, width: int, normalize: bool, channels_first: bool) -> Tensor:
    if width == 3:  # into the upper bytes of 32 bits
        whole = np.zeros((len(data) // 3, 4), np.uint8)
        whole[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        samples = whole.view("<i4")[:, 0]
    else:
        samples = np.frombuffer(data, _TYPES[width])
    if normalize or width in (1, 3):
        middle, scale = (128.0, 128.0) if width == 1 else (0.0, 32768.0 if width == 2 else 2147483648.0)
        samples = ((samples.astype(np.float64) - middle) / scale).astype(np.float32)
    frames = samples.reshape(-1, channels)
    made: Tensor = T.tensor(np.ascontiguousarray(frames.T if channels_first else frames))
    return made


def save(
    uri: str | os.PathLike[str] | IO[bytes], src: Tensor, sample_rate: int, channels_first: bool = True, format: str | None = None,
    encoding: str | None = None, bits_per_sample: int | None = None, buffer_size: int = 4096, backend: str | None = None, compression: Any = None,
) -> None:  # fmt: skip
    """Write a waveform (channels, frames), or (frames, channels) with channels_first=False, as a WAV file of 16 bits, or of `bits_per_sample` 32.

    Floating samples are clipped to -1 ... 1; int16 and int32 are written as they are. Raises ValueError for other formats.
    """
    bits = {"int16": 16, "int32": 32}.get(src.dtype.name) or bits_per_sample or 16
    if (
        format not in (None, "wav")
        or encoding not in (None, "PCM_S")
        or backend is not None
        or compression is not None
        or bits not in (16, 32)
    ):
        raise ArgumentError(
            f"save: format={format!r}, encoding={encoding!r}, bits_per_sample={bits_per_sample!r}; WAV files of 16 or 32 bits PCM_S are written"
        )
    if src.dim() != 2:
        raise ShapeError(f"save: the waveform is of shape {tuple(src.shape)}; give (channels, frames)")
    values = src.detach().cpu().numpy()
    if values.dtype.kind == "f":
        values = np.clip(np.rint(values.astype(np.float64) * 2.0 ** (bits - 1)), -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
    elif values.dtype.kind != "i":
        raise DTypeError(f"save: the waveform is {src.dtype.name}; give floats in -1 ... 1, int16 or int32")
    frames = (values.T if channels_first else values).astype(_TYPES[bits // 8])
    with wave.open(_name(uri), "wb") as f:
        f.setnchannels(frames.shape[1])
        f.setsampwidth(bits // 8)
        f.setframerate(int(sample_rate))
        f.writeframes(np.ascontiguousarray(frames).tobytes())
