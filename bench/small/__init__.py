"""Programs of many small ops, and what the host costs in them beside torch, numpy and jax: `python -m bench small`."""
