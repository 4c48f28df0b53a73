"""The main job: agents play, training uses what was recorded, the gate decides, the best serves.

Belongs here: the workspace of the loop, its snapshots, its first champion, the order of things.
May import: every room but apps.
Hands on: the outcome of a run, as figures and as a page.
"""
