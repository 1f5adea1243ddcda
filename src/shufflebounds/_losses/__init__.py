"""One release as a distribution of privacy losses: enumerated outcomes, curves, divergences, tails. Imports `tradeoff` and below.

Start with `atoms` (enumerated outcomes under both distributions), then `release` (what a composition may know of one release) and
`samples` (values of log delta between which curves are interpolated).
"""
