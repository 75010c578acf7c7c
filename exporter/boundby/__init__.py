"""boundby: the one limit an LLM serving engine is bound by, and what would help."""

__version__ = "0.1.0"
