"""Rule agents."""
