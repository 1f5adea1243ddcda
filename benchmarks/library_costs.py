"""Times of calls of the C library from C and from Rust, as multiples of the kernel's: ``python benchmarks/library_costs.py``.

The kernel is the function of cython_tails, called through its pointer in a loop of C. The loops alternate, and of each the smallest
CPU time of 15 counts. Needs a C compiler, and cargo for the column of Rust.
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import shufflebounds
from shufflebounds import cython_tails

EXAMPLE = Path(__file__).parents[1] / "examples" / "library" / "rust"
CALLS = {"clones_epsilon": (200, "1e6 + i, 4, 1e-8, 1, 1"), "binom_logsf": (10_000, "5e5 + i % 4096, 1e6, 0.5")}
TYPES = {"clones_epsilon": "double, double, double, int, int", "binom_logsf": "double, double, double"}
BODY = "{{ double sum = 0; long i; for (i = 0; i < {count}; i++) sum += %s({given}); return sum; }}\n"
LOOP = "double loop_{name}(double (*f)({types})) " + BODY % "f"
DIRECT = "double direct_{name}(void) " + BODY % "sb_{name}"
RUST = """use std::time::Instant;
extern "C" {{
    fn sb_clones_epsilon(users: f64, local_eps: f64, delta: f64, stronger: i32, upper: i32) -> f64;
    fn sb_binom_logsf(k: f64, n: f64, p: f64) -> f64;
}}
fn least(count: u32, mut call: impl FnMut(u32) -> f64) -> f64 {{
    (0..15).map(|_| {{
        let start = Instant::now();
        std::hint::black_box((0..count).map(|i| call(i)).sum::<f64>());
        start.elapsed().as_secs_f64() / count as f64
    }}).fold(f64::INFINITY, f64::min)
}}
fn main() {{
    println!("{{}} {{}}", least({}, |i| unsafe {{ sb_clones_epsilon(1e6 + i as f64, 4.0, 1e-8, 1, 1) }}),
        least({}, |i| unsafe {{ sb_binom_logsf(5e5 + (i % 4096) as f64, 1e6, 0.5) }}));
}}
"""


def output(command, **keywords):
    """Return the words that a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True, **keywords).stdout.split()


def kernel(name):
    """Return the address of a function of cython_tails."""
    capsule = cython_tails.__pyx_capi__[name]
    signature, address = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    signature.restype, signature.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return address(capsule, signature(capsule))


def compiled(folder):
    """Return a library of loops around a pointer, and around the functions of the C library."""
    loops = "".join(form.format(name=name, types=TYPES[name], count=count, given=given)
                    for name, (count, given) in CALLS.items() for form in (LOOP, DIRECT))
    (folder / "loops.c").write_text("#include <shufflebounds.h>\n" + loops)
    flags = output([sys.executable, "-m", "shufflebounds", "config", "--cflags", "--libs"])
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "loops.c", "-o", "loops.so", *flags], check=True, cwd=folder)
    return ctypes.CDLL(str(folder / "loops.so"))


def least(*jobs):
    """Return the smallest CPU time of 15 calls of each job, which take turns."""
    def taken(job):
        start = time.process_time()
        job()
        return time.process_time() - start

    return [min(times) for times in zip(*[[taken(job) for job in jobs] for _ in range(15)])]


def of_rust(folder):
    """Return the seconds of a call from Rust, by the name of the function."""
    shutil.copytree(EXAMPLE, folder / "rust", ignore=shutil.ignore_patterns("target"))
    (folder / "rust" / "src" / "main.rs").write_text(RUST.format(*(count for count, _ in CALLS.values())))
    return dict(zip(CALLS, map(float, output(["cargo", "run", "--release", "--quiet", "--offline"], cwd=folder / "rust"))))


def main():
    """Print the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        loops = compiled(folder)
        rust = of_rust(folder) if shutil.which("cargo") else {}
        print(f"shufflebounds {shufflebounds.__version__}: function, kernel, C, Rust")
        for name, (count, _) in CALLS.items():
            pointer = ctypes.c_void_p(kernel(name))
            own, direct = least(partial(getattr(loops, f"loop_{name}"), pointer), getattr(loops, f"direct_{name}"))
            more = f"{rust[name] * count / own:.2f}" if rust else "no cargo"
            print(f"{name:15} {1e9 * own / count:10.1f} ns {direct / own:.2f} {more}")


if __name__ == "__main__":
    main()
