/* The loop of every ufunc of this library: NumPy's strides, signals, the interpreter's lock, floating-point flags.
 *
 * A kernel takes 1 to 4 doubles and returns one, or takes arrays (inputs, outputs) of one element, or takes a level of instruction
 * sets (vectors.h), arrays of inputs and one array of results for a block of elements. This file does the rest.
 *   Signals  NumPy does not check for signals in its loops. Every LOOPS_STRIDE elements (every element of a slow kernel) the clock
 *            is read, and if more than LOOPS_PAUSE seconds have passed, signals such as Ctrl-C are checked with the lock held. An
 *            exception that this raises ends the loop. NumPy may split a call into many small loops, so the count of elements and
 *            the flag of an exception are kept per thread.
 *   Lock     NumPy keeps the lock in calls of 500 elements or fewer. Kernels of a few microseconds then take at most a millisecond.
 *            Slow kernels, up to 30 ms an element, release the lock after LOOPS_HELD seconds. If it were released at once,
 *            another thread could take it, and a call of microseconds would wait up to 5 ms to get it back.
 *            Signals exist in the main interpreter only, and PyGILState supports no other interpreter: in a subinterpreter signals
 *            are not checked and the lock is not released.
 *   Flags    kernels produce infinities on purpose and return NaN outside their domain. The flags that this sets are cleared;
 *            otherwise NumPy would warn.
 */
#ifndef SHUFFLEBOUNDS_LOOPS_H
#define SHUFFLEBOUNDS_LOOPS_H

#include <Python.h>
#include <fenv.h>
#include <stddef.h>
#include "vectors.h"
#ifdef _WIN32
#include <windows.h>
#else
#include <time.h>
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#define LOOPS_CLEAR() do { if (_MM_GET_EXCEPTION_STATE()) _MM_SET_EXCEPTION_STATE(0); } while (0)    /* by fenv.h: 50 ns */
#else
#define LOOPS_CLEAR() feclearexcept(FE_ALL_EXCEPT)
#endif
#ifdef _MSC_VER
#define LOOPS_OWN static __declspec(thread)
#else
#define LOOPS_OWN static __thread
#endif
#if PY_VERSION_HEX >= 0x030d0000
#define LOOPS_STATE PyThreadState_GetUnchecked
#else
#define LOOPS_STATE _PyThreadState_UncheckedGet
#endif

enum { LOOPS_STRIDE = 4096, LOOPS_BLOCK = 256, LOOPS_MOST = 128, LOOPS_OPERANDS = 8 };
#define LOOPS_PAUSE 0.05
#define LOOPS_HELD 0.001

typedef void (*loops_block)(int level, const double *const *in, double *out, ptrdiff_t count);
typedef void (*loops_each)(const double *in, double *out);

typedef struct {
    void *kernel;
    int inputs, outputs, blocks, slow;
    PyUFuncGenericFunction loop[1];
    void *data[1];
} Loop;

LOOPS_OWN ptrdiff_t loops_since;        /* elements since the clock was read */
LOOPS_OWN double loops_looked;          /* time of the last check for signals */
LOOPS_OWN int loops_failed;             /* the last check found an exception, which may still be set */
static int loops_main;                  /* whether the main interpreter imported this module; only one interpreter can */

static inline double loops_now(void)
{
#ifdef _WIN32
    return 1e-3 * (double)GetTickCount64();
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

/* Whether this thread has the lock. Up to Python 3.11 the current state is that of whichever thread has the lock, so it is compared
 * with this thread's own. */
static inline int loops_locked(void)
{
    PyThreadState *state = LOOPS_STATE();
    return state != NULL && state == PyGILState_GetThisThreadState();
}

/* Checks for signals; returns whether an exception is set. */
static int loops_stop(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    loops_failed = PyErr_Occurred() || PyErr_CheckSignals() < 0;
    PyGILState_Release(state);
    return loops_failed;
}

/* Called after `count` more elements; returns whether to end the loop. */
static inline int loops_patience(ptrdiff_t count, int slow)
{
    double now;
    loops_since += count;
    if (!loops_main) return 0;
    if (!slow && loops_since < LOOPS_STRIDE) return 0;
    loops_since = 0;
    now = loops_now();
    if (now - loops_looked < LOOPS_PAUSE) return 0;
    loops_looked = now;
    return loops_stop();
}

#define AT(j) (*(const double *)in[j])
#define STEPS(n) for (j = 0; j < n; j++) in[j] += steps[j]

/* A kernel of one output, element by element. */
static inline void loops_scalars(const Loop *loop, char *const *args, const npy_intp *steps, ptrdiff_t count)
{
    char *in[LOOPS_OPERANDS];
    ptrdiff_t i;
    int j, n = loop->inputs;
    for (j = 0; j <= n; j++) in[j] = args[j];
#define RUN(n, TYPES, VALUES)                                             \
    {                                                                     \
        double (*kernel) TYPES = (double (*) TYPES)loop->kernel;          \
        for (i = 0; i < count; i++) {                                     \
            *(double *)in[n] = kernel VALUES;                             \
            STEPS(n + 1);                                                 \
        }                                                                 \
    }
    switch (n) {
    case 1: RUN(1, (double), (AT(0))) break;
    case 2: RUN(2, (double, double), (AT(0), AT(1))) break;
    case 3: RUN(3, (double, double, double), (AT(0), AT(1), AT(2))) break;
    default: RUN(4, (double, double, double, double), (AT(0), AT(1), AT(2), AT(3)))
    }
#undef RUN
}

/* A kernel that takes arrays; elements are copied to contiguous blocks. */
static inline void loops_gathered(const Loop *loop, char *const *args, const npy_intp *steps, ptrdiff_t count)
{
    double held[LOOPS_OPERANDS][LOOPS_BLOCK], each[LOOPS_OPERANDS];
    const double *in[LOOPS_OPERANDS];
    ptrdiff_t i;
    int j, n = loop->inputs, m = loop->outputs;
    if (!loop->blocks) {
        for (i = 0; i < count; i++) {
            for (j = 0; j < n; j++) each[j] = *(const double *)(args[j] + i * steps[j]);
            ((loops_each)loop->kernel)(each, each + n);
            for (j = n; j < n + m; j++) *(double *)(args[j] + i * steps[j]) = each[j];
        }
        return;
    }
    for (j = 0; j < n; j++) {
        for (i = 0; i < count; i++) held[j][i] = *(const double *)(args[j] + i * steps[j]);
        in[j] = held[j];
    }
    ((loops_block)loop->kernel)(vectors_level(), in, held[n], count);
    for (i = 0; i < count; i++) *(double *)(args[n] + i * steps[n]) = held[n][i];
}

/* The block kernel of a ufunc, on the instruction set of a level or the widest below it that the processor has; for tests. Returns
 * whether the ufunc has a block kernel. */
static int loops_on_level(PyObject *ufunc, int level, const double *const *in, double *out, ptrdiff_t count)
{
    const Loop *loop = (const Loop *)((PyUFuncObject *)ufunc)->data[0];
    int most = vectors_level(), j;
    ptrdiff_t start, some;
    const double *at[LOOPS_OPERANDS];
    if (!loop->blocks) return 0;
    for (start = 0; start < count; start += some) {
        some = count - start < LOOPS_BLOCK ? count - start : LOOPS_BLOCK;
        for (j = 0; j < loop->inputs; j++) at[j] = in[j] + start;
        ((loops_block)loop->kernel)(level < most ? level : most, at, out + start, some);
    }
    LOOPS_CLEAR();
    return 1;
}

static void loops_run(char **args, const npy_intp *dims, const npy_intp *steps, void *data)
{
    const Loop *loop = (const Loop *)data;
    int plain = loop->outputs == 1 && !loop->blocks, operands = loop->inputs + loop->outputs, j;
    ptrdiff_t most = loop->slow ? 1 : loop->blocks ? LOOPS_BLOCK : LOOPS_STRIDE, left = dims[0], count;
    char *at[LOOPS_OPERANDS];
    PyThreadState *released = NULL;
    int held = loops_main && loop->slow && left > 1 && loops_locked();
    double start = held ? loops_now() : 0;
    if (loops_failed && loops_stop()) return;
    for (j = 0; j < operands; j++) at[j] = args[j];
    while (left > 0) {
        count = left < most ? left : most;
        if (plain)
            loops_scalars(loop, at, steps, count);
        else
            loops_gathered(loop, at, steps, count);
        for (j = 0; j < operands; j++) at[j] += count * steps[j];
        left -= count;
        if (loops_patience(count, loop->slow)) break;
        if (held && loops_now() - start > LOOPS_HELD) {
            held = 0;
            released = PyEval_SaveThread();
        }
    }
    LOOPS_CLEAR();
    if (released) PyEval_RestoreThread(released);
}

static Loop loops_made[LOOPS_MOST];
static char loops_types[LOOPS_OPERANDS];

/* Returns a ufunc around a kernel. The ufunc points to name and doc, which must stay alive. */
static PyObject *loops_make(void *kernel, int inputs, int outputs, int blocks, int slow, const char *name, const char *doc)
{
    static int made = 0;
    Loop *loop;
    int j;
    if (made == LOOPS_MOST) {
        PyErr_SetString(PyExc_RuntimeError, "raise LOOPS_MOST in loops.h");
        return NULL;
    }
    loops_main = PyInterpreterState_Get() == PyInterpreterState_Main();
    for (j = 0; j < LOOPS_OPERANDS; j++) loops_types[j] = NPY_DOUBLE;
    loop = loops_made + made++;
    loop->kernel = kernel;
    loop->inputs = inputs;
    loop->outputs = outputs;
    loop->blocks = blocks;
    loop->slow = slow;
    loop->loop[0] = loops_run;
    loop->data[0] = loop;
    return PyUFunc_FromFuncAndData(loop->loop, loop->data, loops_types, 1, inputs, outputs, PyUFunc_None, name, doc, 0);
}

#undef AT
#undef STEPS
#endif
