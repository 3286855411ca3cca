"""Networks of torchvision's: names of parameters, what small ones compute."""
