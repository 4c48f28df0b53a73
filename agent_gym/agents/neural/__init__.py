"""A small neural policy for markets: one network, used for every market of a benchmark.

It maps the features of one market and of the account to chances over a few target positions. It
acts in numpy alone (training, which needs torch, is in ``agent_gym.training.grpo``), and says with
each decision how likely that decision was, so that what it plays can be learned from.
"""

from agent_gym.agents.neural.agent import NeuralAgent
from agent_gym.agents.neural.drawing import PolicyAgent, PolicyAgentConfig
from agent_gym.agents.neural.layout import FeatureLayout, PolicyInputs
from agent_gym.agents.neural.policy import NeuralConfig, NeuralPolicy

__all__ = [
    "FeatureLayout",
    "NeuralAgent",
    "NeuralConfig",
    "NeuralPolicy",
    "PolicyAgent",
    "PolicyAgentConfig",
    "PolicyInputs",
]
