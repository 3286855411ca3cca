"""einops' own released tests of operations, with our backend: `python -m tests.interop.einops_suite`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

FILES = ("test_ops.py", "test_einsum.py", "test_packing.py", "test_parsing.py", "test_other.py")
# Tests of other libraries, or of another library's compiler.
LEFT_OUT = "not torch_compile and not layers and not torch_jit and not torch_scripting and not backends_installed"


def main() -> int:
    os.environ["EINOPS_TEST_BACKENDS"] = "tritensor"
    import einops.tests

    import tritensor  # noqa: F401

    def collect(symbolic: bool = False, layers: bool = False) -> list[Any]:
        backend = next(b for b in einops._backends.AbstractBackend.__subclasses__() if b.framework_name == "tritensor")
        return [] if symbolic or layers else [backend()]

    einops.tests.collect_test_backends = collect
    folder = Path(einops.tests.__file__).parent
    return int(
        pytest.main(["-q", "-p", "no:cacheprovider", "-W", "default", "-k", LEFT_OUT, "-c", os.devnull, *(str(folder / f) for f in FILES)])
    )


if __name__ == "__main__":
    sys.exit(main())
