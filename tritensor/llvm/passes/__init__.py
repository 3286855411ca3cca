"""Machine code that walks over rows or whole arrays and leaves less behind: sums, scans, folds, softmaxes, programs of passes over a row."""
