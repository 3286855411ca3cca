"""Optimizer steps as ops that update parameters in place."""
