"""Reductions and scans: sums, extrema, running sums."""
