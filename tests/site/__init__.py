"""The site: what its pages are made of, and that what is asked of a built one would show."""
