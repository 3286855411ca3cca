"""Losses as modules: a class for each function."""
