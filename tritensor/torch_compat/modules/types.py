"""torch.types: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence

from tritensor.ground.device import device as _device
from tritensor.ground.dtypes import DType as _dtype
from tritensor.ground.strides import MemoryFormat as _MemoryFormat
from tritensor.tensor.core import Tensor as Tensor
from tritensor.tensor.public_api.layout import layout as _layout
from tritensor.tensor.size import Size as _Size

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
Number = int | float | bool
Device = _device | str | int | None
FileLike = str | os.PathLike[str]
_TensorOrTensors = Tensor | Sequence[Tensor]
_size = _Size | list[int] | tuple[int, ...]
__all__ = ["Device", "FileLike", "Number", "Tensor", "_MemoryFormat", "_device", "_dtype", "_layout", "_size"]
