"""From recorded trajectories to a served model: readiness, batches, training, gate, rollout.

Belongs here: when training may begin, the workflow that trains, judges and promotes, its record.
May import: every room but reporting and apps.
Hands on: a job whose every stage is stored, and the model that answers from then on.
"""
