"""Floor 1: the verdict goes out; each file turns a Report into text."""
