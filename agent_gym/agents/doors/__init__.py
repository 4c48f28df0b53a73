"""Doors: ways to bring in an agent that is no Python class of this package.

Belongs here: agents that are a program (``door/pipe``), a server (``door/http``, ``door/a2a``) or
a model behind an endpoint (``door/openai``), and the cage in which programs run.
"""
