"""False or unproven formulas of the survey of Das 2022, with the exact numbers."""
