"""Compiled kernels: importable, cimportable (each module ships its .pxd), and ufuncs where the arguments are scalars."""
