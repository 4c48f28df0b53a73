"""The compiled kernels: one set of parts, three doors."""
