"""Functionals and transforms of the second version, of samples of every kind."""
