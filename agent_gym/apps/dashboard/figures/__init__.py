"""What the pages ask of the rooms below; nothing is computed here that a room could answer."""
