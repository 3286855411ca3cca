"""Small tables of keys and bytes that processes share before they are a group: in one process, in a file, over TCP."""
