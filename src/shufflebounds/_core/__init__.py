"""Compiled kernels: importable, cimportable (each module ships its .pxd), and ufuncs where the arguments are scalars.

The sources and the table of the kernels are in src/_core and its README.md.
"""
