"""The search of `tritensor tune`: what there is to tune, what compiling shows of it, what a GPU's clock says, and notes that survive a kill."""
