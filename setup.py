import os

from Cython.Build import cythonize
from setuptools import Extension, setup

TRACED = bool(os.environ.get("SHUFFLEBOUNDS_COVERAGE"))
WINDOWS = os.name == "nt"
KERNELS = (
    "_special",
    "_binomial",
    "_contour",
    "_compound",
    "_clones",
    "_lattice",
    "_blocks",
    "_bits",
    "_tradeoff",
    "_losses",
)


def kernel(name):
    import numpy

    return Extension(
        f"shufflebounds._core.{name}",
        [f"src/_core/{name}.pyx"],
        include_dirs=[numpy.get_include(), "src/_core"],
        depends=["src/_core/dd.h", "src/_core/tables.h", "src/_core/lattice.h"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")] + [("CYTHON_TRACE_NOGIL", "1")] * TRACED,
        extra_compile_args=["/O2", "/fp:precise"] if WINDOWS else ["-O3", "-ffp-contract=off", "-fno-math-errno"],
    )


setup(
    ext_modules=cythonize(
        [kernel(name) for name in KERNELS],
        include_path=["src"],
        compiler_directives={
            "language_level": 3,
            "freethreading_compatible": True,
            "cdivision": True,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "linetrace": TRACED,
        },
    )
)
