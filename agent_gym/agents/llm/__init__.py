"""A language model as an agent: it reads what a world says in words and answers in a word.

Two ways to a model: an endpoint that speaks as OpenAI's does, and a causal language model on this
machine, whose answers are drawn from a few words alone, with their exact chances. Nothing here asks
a hub unless HF_HUB_OFFLINE=0 says so; that must be settled before the libraries are imported, and
so it stands here.
"""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
