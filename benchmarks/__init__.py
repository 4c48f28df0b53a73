"""Benchmarks: our speed against a bare loop (the limit) and against named peers, in one run.

``python -m benchmarks --install-peers`` builds the peers' own environments, and
``python -m benchmarks`` measures. Nothing here is imported by the package.
"""
