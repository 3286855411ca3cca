"""Where functions bend: their derivatives at zeros, limits and ties."""
