"""The soak: everything at once on one workspace, under faults, watched from outside.

``python -m tests.soak --help`` says how; docs/soak.md says what is done and what is watched.
"""
