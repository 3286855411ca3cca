"""Parsing of what is handed in: numbers and nested lists as one array, an index as a view and index tensors."""
