"""Tools: the command `tritensor` and what its subcommands do."""
