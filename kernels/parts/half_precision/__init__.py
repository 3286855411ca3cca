"""Half precision in kernels: approximate functions whose errors the rounding to 16 bits covers, and formulas made of them."""
