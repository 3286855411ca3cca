"""Compilation: functions and modules whose ops are noted, fused and run together, and what there is to be told about that."""
