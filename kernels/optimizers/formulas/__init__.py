"""Formulas of the optimizers, a few lines each."""
