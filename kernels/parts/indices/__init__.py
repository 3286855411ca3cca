"""Rows by integer keys: reading and adding them, sorting keys, reports of bad indices."""
