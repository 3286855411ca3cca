"""Libraries that dispatch to the array API, given tensors: `SCIPY_ARRAY_API=1 python -m tests.array_api.libraries [sklearn] [scipy]`."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

import tritensor as tt
from tritensor import array_api as xp


def close(name: str, found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    """A result that must be a tensor of numpy's values."""
    assert isinstance(found, tt.Tensor), f"{name} gave a {type(found).__name__}, no tensor"
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=tolerance, atol=tolerance, err_msg=name)


def scikit_learn() -> None:
    """Estimators fitted and asked on tensors give what they give on arrays, as tensors."""
    from sklearn import config_context
    from sklearn.datasets import load_iris
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge
    from sklearn.metrics import mean_squared_error, r2_score
    from sklearn.metrics.pairwise import euclidean_distances
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

    x, y = load_iris(return_X_y=True)
    tx, ty = xp.asarray(x), xp.asarray(y)
    asked = (
        (LinearDiscriminantAnalysis(), "predict"),
        (LinearDiscriminantAnalysis(), "predict_proba"),
        (LinearDiscriminantAnalysis(), "transform"),
        (Ridge(solver="svd"), "predict"),
        (PCA(2, svd_solver="full"), "transform"),
        (PCA(2, svd_solver="covariance_eigh"), "transform"),
        (StandardScaler(), "transform"),
        (MinMaxScaler(), "transform"),
        (PolynomialFeatures(), "transform"),
    )
    for estimator, method in asked:
        wanted = getattr(estimator.fit(x, y), method)(x)
        with config_context(array_api_dispatch=True):
            close(f"{estimator}.{method}", getattr(estimator.fit(tx, ty), method)(tx), wanted, 1e-8)
    with config_context(array_api_dispatch=True):
        for score in (r2_score, mean_squared_error):
            np.testing.assert_allclose(score(tx[:, 0], tx[:, 1]), score(x[:, 0], x[:, 1]))
        close("euclidean_distances", euclidean_distances(tx), euclidean_distances(x), 1e-6)
        assert [tuple(t.shape) for t in train_test_split(tx, ty, random_state=0)] == [(112, 4), (38, 4), (112,), (38,)]
    print(f"scikit-learn: {len(asked)} estimators, scores, distances and splits take tensors and give tensors")


def scipy() -> None:
    """Functions of scipy.special, scipy.stats, scipy.fft and scipy.signal on tensors give what they give on arrays, as tensors."""
    from scipy import fft, signal, special, stats

    z = xp.linspace(0.1, 0.9, 40, dtype=xp.float64)
    a, b = (np.random.default_rng(seed).normal(size=40) for seed in (0, 1))
    unary = "erf erfc gammaln expit logit ndtr ndtri log_ndtr entr i0 i1 j0 j1 logsumexp softmax log_softmax"
    asked: list[tuple[str, Any, tuple[Any, ...]]] = [(f"special.{n}", getattr(special, n), (z,)) for n in unary.split()]
    asked += [(f"special.{n}", getattr(special, n), (z, z + 1)) for n in ("xlogy", "rel_entr", "betaln")]
    spread = "skew kurtosis zscore gmean hmean moment variation sem tmean entropy iqr differential_entropy"
    asked += [(f"stats.{n}", getattr(stats, n), (z,)) for n in spread.split()]
    asked += [("fft.rfft", fft.rfft, (z,)), ("signal.detrend", signal.detrend, (z,)), ("signal.convolve", signal.convolve, (z, z))]
    for name, f, given in asked:
        close(name, f(*given), f(*[np.asarray(g) for g in given]))
    tests = [stats.skewtest, stats.kurtosistest, stats.normaltest, stats.jarque_bera]
    pairs = [stats.ttest_ind, stats.ttest_rel, stats.pearsonr, stats.bartlett]
    for test in tests:
        close(test.__name__, test(xp.asarray(a)).pvalue, test(a).pvalue)
    for test in pairs:
        close(test.__name__, test(xp.asarray(a), xp.asarray(b)).pvalue, test(a, b).pvalue)
    print(f"scipy: {len(asked) + len(tests) + len(pairs)} functions take tensors and give tensors")


def main(names: list[str]) -> None:
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        sys.exit("set SCIPY_ARRAY_API=1: scipy reads it when it is imported")
    for name in names or ["sklearn", "scipy"]:
        {"sklearn": scikit_learn, "scipy": scipy}[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
