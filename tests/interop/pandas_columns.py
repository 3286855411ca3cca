"""pandas takes tensors as columns and gives them back: `python -m tests.interop.pandas_columns`."""

from __future__ import annotations

import pandas as pd

import tritensor as tt


def main() -> None:
    x, n = tt.tensor([1.5, 2.5, 3.5]), tt.tensor([3, 1, 2])
    frame = pd.DataFrame({"x": x, "n": n})
    assert frame.dtypes.astype(str).tolist() == ["float32", "int64"]
    frame["twice"] = x * 2
    assert frame.sort_values("n")["twice"].tolist() == [5.0, 7.0, 3.0]
    assert pd.Series(x).mean() == 2.5
    assert pd.DataFrame(tt.ones(2, 3)).shape == (2, 3)
    assert tt.as_tensor(frame["n"].to_numpy()).tolist() == [3, 1, 2]
    assert tt.tensor(frame["x"].values).tolist() == [1.5, 2.5, 3.5]
    print("pandas", pd.__version__, "takes tensors")


if __name__ == "__main__":
    main()
