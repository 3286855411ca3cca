"""Optimizer steps: one launch over all parameters of a group, one pass of machine code on the CPU, from formulas of a few lines."""
