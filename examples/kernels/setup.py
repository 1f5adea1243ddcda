"""Build `pricing`, an extension that calls the kernels of the installed shufflebounds."""

from Cython.Build import cythonize
from setuptools import Extension, setup

pricing = Extension("pricing", ["pricing.pyx"])
setup(name="pricing", version="1.0", ext_modules=cythonize([pricing], language_level=3))
