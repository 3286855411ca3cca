"""Publication of functions: names, signatures, `out=` and in-place forms, validation of arguments."""
