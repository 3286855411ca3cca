"""Formulas and cells written by hand, op by op: what lazy evaluation and compilation make of them, beside eager, torch.compile and jax.jit."""
