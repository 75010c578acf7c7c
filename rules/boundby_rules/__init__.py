"""The limits we judge by: one module, one limit."""
