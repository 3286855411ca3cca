"""Complex numbers: their parts, conjugates and views."""
