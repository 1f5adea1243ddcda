# Loops for Python alone: nothing is cimported from here.
