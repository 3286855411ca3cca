"""opt_einsum's own released tests that take PyTorch's tensors, with ours in their place: `python -m tests.interop.opt_einsum_suite`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from tritensor.tools.run_script import opened


def contractions() -> int:
    """Every contraction of opt_einsum's list on our tensors under our own name, against numpy; returns how many were asked."""
    from opt_einsum import contract
    from opt_einsum.testing import build_views
    from opt_einsum.tests.test_backends import tests as equations

    for equation in equations:
        views = build_views(equation)
        ours = contract(equation, *[tt.from_numpy(v) for v in views])
        assert isinstance(ours, tt.Tensor), equation
        np.testing.assert_allclose(ours.numpy(), contract(equation, *views), rtol=1e-10, atol=1e-12)
    return len(equations)


def main() -> int:
    with opened():
        import opt_einsum.tests
        from opt_einsum.contract import _infer_backend_class_cached

        print(f"{contractions()} contractions of our tensors agree with numpy's")
        _infer_backend_class_cached.cache_clear()
        named, tt.Tensor.__module__ = tt.Tensor.__module__, "torch"  # opt_einsum calls a library by the module of its class
        folder = Path(opt_einsum.tests.__file__).parent
        files = [str(folder / f) for f in ("test_backends.py", "test_sharing.py")]
        failed = pytest.main(["-q", "-p", "no:cacheprovider", "-k", "torch and not cupy", "-c", os.devnull, *files])
        tt.Tensor.__module__ = named
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
