"""Facts about a process, asked before its threads, forks and files are trusted: locks, late imports, owners of files."""
