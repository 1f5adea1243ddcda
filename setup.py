import json
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

TRACED = bool(os.environ.get("SHUFFLEBOUNDS_COVERAGE"))
CHECKED = bool(os.environ.get("SHUFFLEBOUNDS_CHECKED"))
WINDOWS = os.name == "nt"
KERNELS = (
    "_ufunc",
    "_special",
    "_binomial",
    "_contour",
    "_compound",
    "_crossing",
    "_gaussian",
    "_clones",
    "_lattice",
    "_blocks",
    "_bits",
    "_worst_bits",
    "_tradeoff",
    "_losses",
    "_tilted",
    "_smoothed",
    "_heavy_tails",
    "_excess",
    "_cell_sums",
    "_moments",
    "_sum_bound",
    "_matchings",
    "_deployments",
    "_gamma",
    "_beta",
    "_hypergeom",
)
PUBLIC = "cython_tails"      # the stable face of the kernels
# what Cython writes for memory views, compiled once instead of in every kernel: half the build
UTILITIES = "shufflebounds._core._cyutility"
HEADERS = sorted(path.name for path in Path("src/_core").glob("*.h"))
FLAGS = ["/O2", "/fp:precise"] if WINDOWS else ["-O3", "-ffp-contract=off", "-fno-math-errno"]
if not (WINDOWS or CHECKED or TRACED):
    # an interpreter's own -g would make the wheel 2.5 times as large; SHUFFLEBOUNDS_CFLAGS=-g brings the symbols back
    FLAGS += ["-g0"]
if CHECKED and not WINDOWS:
    # every index into a table and every cast of a double to an integer is asserted; a trap needs no library
    FLAGS += ["-fsanitize=bounds,float-cast-overflow,shift,integer-divide-by-zero", "-fsanitize-undefined-trap-on-error"]
FLAGS += os.environ.get("SHUFFLEBOUNDS_CFLAGS", "").split()
# passes over blocks are vectorised only where no operation counts as a trap; results are the same
VECTORISED = ("_binomial", "_sum_bound", "_hypergeom", "_lattice", "_losses", "_moments", "_tradeoff")
VECTORS = {} if WINDOWS else {name: ["-fno-trapping-math"] for name in VECTORISED}


# the C library for programs without Python; the number is SB_ABI
LIBRARY, LIBRARY_ABI = "shufflebounds", re.search(r"^#define SB_ABI (\d+)$", Path("src/_core/shufflebounds.h").read_text(), re.M)[1]


class BuildWithLibrary(build_ext):
    """The extensions, and the C library, static and shared, in the folder ``lib`` of the package."""

    def library_files(self):
        """Return the paths of the static and of the shared library; macOS and Windows have other names for them."""
        folder = Path("src" if self.inplace else self.build_lib, "shufflebounds", "lib")
        names = (("shufflebounds.lib", f"shufflebounds-{LIBRARY_ABI}.dll") if WINDOWS
                 else ("libshufflebounds.a", f"libshufflebounds.{LIBRARY_ABI}.dylib") if sys.platform == "darwin"
                 else ("libshufflebounds.a", f"libshufflebounds.so.{LIBRARY_ABI}"))
        return [folder / name for name in names]

    def run(self):
        super().run()
        static, shared = self.library_files()
        sources = [Path("setup.py"), *Path("src/_core").glob("*.h"), Path("src/_core/shufflebounds.c")]
        newest = max(path.stat().st_mtime for path in sources)
        if not self.force and all(path.exists() and path.stat().st_mtime > newest for path in (static, shared)):
            return
        static.parent.mkdir(parents=True, exist_ok=True)
        hidden = [] if WINDOWS else ["-fvisibility=hidden", "-fno-trapping-math"]
        macros = [("SB_API", "__declspec(dllexport)")] * WINDOWS + [("SHUFFLEBOUNDS_CHECKED", "1")] * CHECKED
        objects = self.compiler.compile(
            ["src/_core/shufflebounds.c"], output_dir=self.build_temp, macros=macros, include_dirs=["src/_core"],
            extra_postargs=FLAGS + hidden)
        static.unlink(missing_ok=True)
        self.compiler.create_static_lib(objects, LIBRARY, str(static.parent))
        linking = {"darwin": ["-dynamiclib", f"-Wl,-install_name,@rpath/{shared.name}"], "linux": [f"-Wl,-soname,{shared.name}"]}
        self.compiler.link_shared_object(
            objects, str(shared), libraries=[] if WINDOWS else ["m"],
            extra_postargs=linking.get(sys.platform, []) + os.environ.get("SHUFFLEBOUNDS_CFLAGS", "").split())
        if sys.platform == "linux":
            # what -lshufflebounds finds; a wheel holds no symbolic links
            (static.parent / "libshufflebounds.so").write_text(f"INPUT({shared.name})\n")

        self.write_pkg_config(static.parent)

    def write_pkg_config(self, folder):
        """Write the file for pkg-config; its paths are relative to the file."""
        (folder / "pkgconfig").mkdir(exist_ok=True)
        lines = (
            "prefix=${pcfiledir}/../..", "includedir=${prefix}/include", "libdir=${prefix}/lib", "",
            "Name: shufflebounds", "Description: tails of discrete distributions in logarithms, clone bounds, Gaussian noise",
            f"Version: {self.distribution.get_version()}", "Cflags: -I${includedir}",
            "Libs: -L${libdir} -Wl,-rpath,${libdir} -lshufflebounds", "Libs.private: -lm", "",
        )
        (folder / "pkgconfig" / "shufflebounds.pc").write_text("\n".join(lines))

    def get_outputs(self):
        return super().get_outputs() + [str(path) for path in self.library_files()]


class ReproducibleSdist(sdist):
    """An sdist of the same bytes from the same files where SOURCE_DATE_EPOCH is set, as wheels already are."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, owner=None, group=None):
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, owner, group)
        import gzip

        def plain(info):
            info.mtime, info.uid, info.gid, info.uname, info.gname = int(epoch), 0, 0, "", ""
            info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
            return info

        os.makedirs(os.path.dirname(base_name) or ".", exist_ok=True)
        path = f"{base_name}.tar.gz"
        with (
            open(path, "wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=int(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(base_dir, filter=plain)         # the names of a folder come sorted
        return path


def headers(name):
    """Return the headers a source names, those that headers name included."""
    with open(f"src/_core/{name}", encoding="utf-8") as source:
        text = source.read()
    direct = {header for header in HEADERS if f'"{header}"' in text and header != name}
    return direct.union(*map(headers, direct))


def changed():
    """Return when a source that Cython reads changed last; the directives below count."""
    patterns = ("setup.py", "src/_core/*.pyx", "src/shufflebounds/**/*.pxd")
    return max(path.stat().st_mtime for pattern in patterns for path in Path().glob(pattern))


def source_of(name, macros, arguments):
    """Return the C of a kernel that this Cython wrote for the same flags after the last change, or the .pyx file.

    Cython itself would compare the C with its own files, too, which pip unpacks anew for every build: a second ``pip install .``
    would compile all kernels again.
    """
    written = Path(f"src/_core/{name}.c")
    if written.exists() and written.stat().st_mtime > changed():
        text = written.read_text(encoding="utf-8")
        about = re.search(r"^/\* BEGIN: Cython Metadata\n(.*?)^END", text, re.S | re.M)
        known = json.loads(about[1])["distutils"] if about else {}
        if (text.startswith(f"/* Generated by Cython {Cython.__version__} ") and known.get("extra_compile_args") == arguments
                and known.get("define_macros") == [list(macro) for macro in macros]):
            return str(written)
    return f"src/_core/{name}.pyx"


def kernel(name):
    import numpy

    macros = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")]
    macros += [("CYTHON_TRACE_NOGIL", "1")] * TRACED + [("SHUFFLEBOUNDS_CHECKED", "1")] * CHECKED
    arguments = FLAGS + VECTORS.get(name, [])
    return Extension(
        f"shufflebounds.{name}" if name == PUBLIC else f"shufflebounds._core.{name}",
        [source_of(name, macros, arguments)],
        include_dirs=[numpy.get_include(), "src/_core"],
        depends=[f"src/_core/{header}" for header in sorted({"constants.h", "dd.h", "arithmetic.h"} | headers(f"{name}.pyx"))],
        define_macros=macros,
        extra_compile_args=arguments,
    )


C_HEADER = """\
/* The C functions of shufflebounds.cython_tails, for C and C++. setup.py writes this file from cython_tails.pxd.
 *
 * Include it after Python.h, and call import_shufflebounds() once in each source file, with the interpreter's lock held, before the
 * first kernel. It returns 0, or -1 with a Python exception set: ImportError, or ValueError where the installed version has another
 * signature. The kernels are function pointers named sb_..., and need neither the lock nor the interpreter.
 */
#ifndef SHUFFLEBOUNDS_PYTHON_H
#define SHUFFLEBOUNDS_PYTHON_H

#ifdef SHUFFLEBOUNDS_H
#error "shufflebounds.h declares functions of the same names: include one of the two headers"
#endif
#include <Python.h>
#include <string.h>

%s
static inline int import_shufflebounds(void)
{
    /* ISO C has no cast from an object pointer to a function pointer: the bytes are copied */
    static const struct { const char *name, *signature; void *place; } kernels[] = {
%s
    };
    PyObject *module = PyImport_ImportModule("shufflebounds.cython_tails");
    PyObject *table = module ? PyObject_GetAttrString(module, "__pyx_capi__") : NULL;
    size_t i, count = table ? sizeof kernels / sizeof *kernels : 0;
    int failed = table == NULL;
    for (i = 0; i < count && !failed; i++) {
        PyObject *capsule = PyMapping_GetItemString(table, kernels[i].name);
        void *address = capsule ? PyCapsule_GetPointer(capsule, kernels[i].signature) : NULL;
        failed = address == NULL;
        memcpy(kernels[i].place, &address, sizeof address);
        Py_XDECREF(capsule);
    }
    Py_XDECREF(table);
    Py_XDECREF(module);
    return failed ? -1 : 0;
}

#endif
"""


def c_header(declarations):
    """Return the C header of the functions that the text of a .pxd file declares."""
    pointers, entries = [], []
    for comments, kind, name, inside in re.findall(
        r"((?:^#.*\n)*)^cdef (double|void) (\w+)\(([^)]*)\) noexcept nogil$", declarations, re.M
    ):
        arguments = [" ".join(argument.split()) for argument in inside.split(",")]
        # the way in which Cython spells a signature: types without names, const after the type
        types = [re.sub(r"^const (\w+)", r"\1 const", re.sub(r"\w+$", "", argument).strip()) for argument in arguments]
        pointers += [f"/* {line.removeprefix('#').strip()} */" for line in comments.splitlines() if line.strip("# ")]
        pointers.append(f"static {kind} (*sb_{name})({', '.join(arguments)});")
        entries.append(f'        {{"{name}", "{kind} ({", ".join(types)})", &sb_{name}}},')
    return C_HEADER % ("\n".join(pointers) + "\n", "\n".join(entries))


def write_c_headers():
    """Write the headers beside the package's modules."""
    with open("src/shufflebounds/cython_tails.pxd", encoding="utf-8") as source:
        text = c_header(source.read())
    os.makedirs("src/shufflebounds/include", exist_ok=True)
    with open("src/shufflebounds/include/shufflebounds_python.h", "w", encoding="utf-8", newline="\n") as target:
        target.write(text)
    shutil.copyfile("src/_core/shufflebounds.h", "src/shufflebounds/include/shufflebounds.h")


write_c_headers()
setup(
    cmdclass={"build_ext": BuildWithLibrary, "sdist": ReproducibleSdist},
    # one kernel a core
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    ext_modules=cythonize(
        [*map(kernel, (*KERNELS, PUBLIC)), Extension(UTILITIES, ["src/_core/_cyutility.c"], extra_compile_args=FLAGS)],
        include_path=["src"],
        shared_utility_qualified_name=UTILITIES,
        compiler_directives={
            "language_level": 3,
            "cdivision": True,
            "boundscheck": CHECKED,
            "wraparound": False,
            "initializedcheck": False,
            "linetrace": TRACED,
        },
    ),
)
