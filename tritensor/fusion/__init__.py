"""Graphs of calls that are to be run, and how they are fused, ordered and given memory: pure functions from a graph to a plan."""
