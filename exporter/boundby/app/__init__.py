"""Floor 2: the only floor that knows both ends."""
