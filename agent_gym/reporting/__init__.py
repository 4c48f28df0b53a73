"""Results as people and other programs read them: pages, tables, metrics files.

Belongs here: everything that turns a finished result into text, pictures or a page.
May import: core, markets, exchange, envs, agents, rollouts, evaluation, training.
Hands on: strings and bytes; who writes them where is decided above.
"""
