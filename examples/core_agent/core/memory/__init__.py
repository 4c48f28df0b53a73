"""What the desk remembers."""
