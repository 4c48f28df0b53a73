"""One adapter a peer; each runs in the peer's own environment, started by ``worker.py``."""
