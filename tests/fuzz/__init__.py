"""Fuzzing: random protocols against certified digits, and adversarial inputs for all public functions. See docs/trust.md."""
