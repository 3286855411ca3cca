"""Elementwise ops: one formula each over the shared kernel of parts/elementwise.py."""
