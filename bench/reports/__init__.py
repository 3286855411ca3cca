"""Reports of a GPU benchmark: tables, pictures, and what differs between two of them."""
