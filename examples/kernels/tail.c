/* An extension in plain C that calls two kernels of the installed shufflebounds, without the interpreter's lock. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <shufflebounds_python.h>

/* least_trials(log_level): the least n with log Pr[Bin(n, 1/2) > 0.6 n] <= log_level */
static PyObject *least_trials(PyObject *module, PyObject *argument)
{
    double log_level = PyFloat_AsDouble(argument), n = 1;
    if (log_level == -1 && PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    while (sb_binom_logsf(0.6 * n, n, 0.5) > log_level)
        n += 1;
    Py_END_ALLOW_THREADS
    return PyLong_FromDouble(n);
}

/* all_ones(p, groups): log Pr[X = groups] of the sum of `groups` bits that are 1 with probability p */
static PyObject *all_ones(PyObject *module, PyObject *arguments)
{
    double p, error, value;
    int groups;
    if (!PyArg_ParseTuple(arguments, "di", &p, &groups))
        return NULL;
    double count = groups;
    Py_BEGIN_ALLOW_THREADS
    value = sb_poisson_binom_log_tail(&p, &count, 1, groups, 1, &error);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("dd", value, error);
}

static PyMethodDef methods[] = {
    {"least_trials", least_trials, METH_O, "Return the least n whose tail beyond 6 n/10 has a log probability of at most log_level."},
    {"all_ones", all_ones, METH_VARARGS, "Return log p**groups and the bound of the relative error of p**groups."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tail", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_tail(void)
{
    return import_shufflebounds() < 0 ? NULL : PyModule_Create(&definition);
}
