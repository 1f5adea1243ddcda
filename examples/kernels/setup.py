"""Build two extensions that call the installed kernels: `pricing` in Cython, `tail` in C."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import shufflebounds

pricing = Extension("pricing", ["pricing.pyx"])
tail = Extension("tail", ["tail.c"], include_dirs=[shufflebounds.get_include()])
extensions = cythonize([pricing, tail], language_level=3)
setup(name="pricing", version="1.0", ext_modules=extensions)
