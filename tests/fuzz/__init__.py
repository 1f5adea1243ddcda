"""The campaign: random protocols against certified digits, hostile values against everything public. See docs/trust.md."""
