"""The process in which one living agent decides; it imports little, so that it starts quickly."""
