"""Floor 0: pure arithmetic and judgement; no IO, no clock, no logging, no randomness."""
