"""Machine code that walks over rows or whole arrays and leaves less behind: sums, scans, reductions, softmaxes, programs of passes over a row."""
