"""Ops about shape and order: views and their gradients, joining, reordering."""
