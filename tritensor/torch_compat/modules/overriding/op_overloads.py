"""torch._ops: the classes of ops by PyTorch's names, for isinstance."""

from __future__ import annotations

from tritensor.torch_dispatch.overloads import Namespace as _OpNamespace  # noqa: F401
from tritensor.torch_dispatch.overloads import Overload as OpOverload
from tritensor.torch_dispatch.overloads import Packet as OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket"]
