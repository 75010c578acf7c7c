"""The bench is a program of its own: its tests import its modules by their own names."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
