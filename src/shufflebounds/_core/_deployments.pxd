# The loops of this module are called from Python alone: nothing is cimported from here.
