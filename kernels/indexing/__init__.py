"""Ops that pick and put by index: indexing, gather and scatter, embedding."""
