"""The public functions and methods, a file for each family; each publishes itself (see public_api/)."""
