"""Formulas of the survey of Das 2022 that are false or unproven, each with the exact numbers."""
