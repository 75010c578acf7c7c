"""Floor 1: the outside comes in; each file is a pure parse and a thin read."""
