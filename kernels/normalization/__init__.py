"""Normalisation of rows: softmax, layer normalisation."""
