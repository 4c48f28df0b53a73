"""Language models learn to trade by GRPO with LoRA, and the proof that they do.

Belongs here: the language model as a learner of ``training.grpo`` (whose groups, advantages, loss
and checkpoints it uses), a small text market with a known optimum, and a tiny transformer for
tests. May import: core, agents, envs, rollouts, evaluation, training.grpo.
Hands on: a changed LanguagePolicy; the artifact is the policy's own.
"""
