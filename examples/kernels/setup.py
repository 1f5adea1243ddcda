"""Build `pricing`, an extension of one's own that calls the kernels of the installed shufflebounds."""

from Cython.Build import cythonize
from setuptools import Extension, setup

setup(name="pricing", version="1.0", ext_modules=cythonize([Extension("pricing", ["pricing.pyx"])], language_level=3))
