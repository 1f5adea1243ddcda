"""Formulas of Zhilyaev for shuffled bits, dummy records and sums, as published, with the exact numbers."""
