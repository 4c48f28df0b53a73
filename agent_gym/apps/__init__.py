"""Room: apps. Where people and programs come in.

Belongs here: the command line (and later the HTTP API, dashboard and sandbox exchange).
May import: everything, thinly: parse, call, render; compute nothing.
Hands on: exit codes, tables, JSON.
"""
