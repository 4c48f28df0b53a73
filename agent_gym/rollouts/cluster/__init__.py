"""Part of rollouts: jobs on a Ray cluster.

Belongs here: the executor that talks to Ray, the station that does jobs on a node, what must be
alike on all nodes, files that are sent along, and when a cluster pays off.
May import: core and the rest of rollouts; Ray is imported in this folder alone.
Hands on: rows, the same bytes as from the processes of one machine.
"""
