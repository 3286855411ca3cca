"""Shapes and places: views and their gradients, joining, reordering."""
