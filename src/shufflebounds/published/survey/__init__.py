"""False or unproven formulas of the survey of Das 2022, beside the exact numbers."""
