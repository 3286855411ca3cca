"""Sorting and searching: orders of rows, their first k and their ranks, places in sorted rows, positions of what is not zero."""
