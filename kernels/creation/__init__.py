"""Creation: arrays made from numbers."""
