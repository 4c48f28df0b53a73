"""The names by which the Core Agent was known before; each leads to its place in agent_gym."""
