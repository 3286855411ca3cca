"""Foundations that import nothing of the rest: errors, dtypes, strides, devices, trees, transform levels, facts about the process."""
