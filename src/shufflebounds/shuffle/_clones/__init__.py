"""Shared parts of the clone bounds: number of clones, families of randomizers, search over target users."""
