"""What a GPU benchmark leaves behind: the report, its tables and pictures, and what differs between two of them."""
