"""A simulated inference server: its own engine, GPU and load, and the pages they would serve.

Everything here is simulated and says so. The physics is this package's own: nothing is taken
from the core's cost model, hardware table or signals, so that a diagnosis of what this server
shows is a diagnosis and not an echo.
"""
