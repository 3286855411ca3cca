"""Settings that a script makes for its whole process, put back behind it: other tests run in the same one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tritensor as tt


@contextlib.contextmanager
def settings_put_back() -> Iterator[None]:
    """The library's own settings hold again behind the block."""
    try:
        yield
    finally:
        tt.use_deterministic_algorithms(False)
        tt.set_printoptions(profile="default")
        tt.set_default_dtype(tt.float32)
        tt.set_float32_matmul_precision("highest")
        tt.set_grad_enabled(True)
        cudnn = tt.backends.cudnn
        cudnn.enabled, cudnn.benchmark, cudnn.deterministic = True, False, False
