"""Generated pages: each module turns one registry into one Markdown page, and reads no file."""
