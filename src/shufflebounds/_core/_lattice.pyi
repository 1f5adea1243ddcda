# C functions only (_lattice.pxd); nothing to import from Python.
