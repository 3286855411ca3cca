"""Every entry of PyTorch's sample database with its tensors transposed, channels last and with gaps: results have PyTorch's strides, but where a reason is given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.peer.opinfo.resolve import key
from tests.peer.opinfo.variations import strides_differ

pytestmark = pytest.mark.peer

COLUMNS = "factors, inverses and solutions lie in C order, where LAPACK leaves columns (docs/differences.md)"
DIGITS = "values, of trigamma near its poles, where PyTorch's is less exact (tests/peer/opinfo/reasons.py)"
ROWS = "poolings of rows look at the layout of images alone where the batch is 1"
REASONS = {
    **dict.fromkeys((
        "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "lu", "lu_solve",
        "ormqr", "qr", "triangular_solve", "svd_lowrank", "pca_lowrank", "linalg.cholesky",
        "linalg.cholesky_ex", "linalg.eig", "linalg.eigh", "linalg.householder_product", "linalg.ldl_factor", "linalg.ldl_factor_ex",
        "linalg.ldl_solve", "linalg.lstsq", "linalg.lstsq/grad_oriented", "linalg.qr", "linalg.lu_factor", "linalg.lu_factor_ex",
        "linalg.lu_solve", "linalg.inv", "linalg.inv_ex", "linalg.solve", "linalg.solve_ex", "linalg.tensorinv",
    ), COLUMNS),
    **dict.fromkeys((
        "polygamma/polygamma_n_0", "polygamma/polygamma_n_1", "polygamma/polygamma_n_2", "polygamma/polygamma_n_3",
        "polygamma/polygamma_n_4", "special.polygamma/special_polygamma_n_0",
    ), DIGITS),
    **dict.fromkeys(("nn.functional.avg_pool1d", "nn.functional.max_pool1d"), ROWS),
    "ldexp": "2 ** x lies as x does (docs/differences.md)",
    "nn.functional.conv_transpose3d": "channels last stays so, as on a GPU in PyTorch, whose CPU puts it in C order",
    "_unsafe_masked_index": "a private operator, made of public ones here",
    "fft.rfft2": "dims that are not transformed lie by their strides among those that are",
}  # fmt: skip


@pytest.mark.parametrize("op", op_db, ids=key)
def test_results_of_other_layouts_lie_as_pytorchs(op: Any) -> None:
    torch.set_num_threads(1)
    found = strides_differ(op)
    if key(op) in REASONS:
        assert found, f"{key(op)} lies as PyTorch's: it needs no reason"
    else:
        assert not found, "\n".join(found[:5])
