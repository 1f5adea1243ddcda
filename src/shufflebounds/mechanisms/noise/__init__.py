"""Noise that is added to a number or a vector, each class with its exact privacy profile."""
