"""The page of a run of the loop: what was played, learned, shown and put into service.

Belongs here: the report's fields, its pictures, its page.
May import: core, and the parts that all pages share.
Hands on: one HTML page that asks nobody for anything.
"""
