"""Machine code for this processor: elementwise formulas compiled by the LLVM that Triton carries, one pass over memory where numpy needs many."""
