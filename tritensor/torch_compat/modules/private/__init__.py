"""Modules of PyTorch whose names begin with an underscore and that scripts import all the same."""
