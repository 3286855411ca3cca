"""Ops about shape and place: views and their gradients, joining, reordering."""
