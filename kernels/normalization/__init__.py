"""Ops that normalise rows: softmax, layer normalisation."""
