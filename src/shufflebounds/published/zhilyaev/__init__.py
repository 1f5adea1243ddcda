"""Formulas of Zhilyaev for shuffled bits, dummy records and sums, as published, beside the exact numbers."""
