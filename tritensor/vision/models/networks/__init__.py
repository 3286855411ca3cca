"""Networks that came after the first: small ones for phones, their scaled kin, convolutions and transformers of recent years."""
