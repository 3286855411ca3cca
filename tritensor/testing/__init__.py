"""For tests: `assert_close` and `make_tensor`, as PyTorch's."""

from tritensor.testing.comparison import assert_close as assert_close
from tritensor.testing.drawn import make_tensor as make_tensor

__all__ = ["assert_close", "make_tensor"]
