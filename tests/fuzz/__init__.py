"""Fuzzing: random protocols against certified values, and adversarial inputs for all public functions; see docs/trust.md."""
