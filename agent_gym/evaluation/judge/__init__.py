"""The judge: trajectories of one group scored against each other, from 0 to 1.

Belongs here: records a judge may read, prompts, answers, who answers, passes and their mean, how
far a judge can be trusted. What needs more than the package itself is imported where it is named:
``judge.endpoint`` needs openai, ``judge.scoring`` the database.
A judge is never the only gate: what it says can be learned from, and does not promote anything.
"""

from agent_gym.evaluation.judge.answer import Malformed, read_answer
from agent_gym.evaluation.judge.backend import (
    BackendFailed,
    ChatMessage,
    JudgeBackend,
    JudgeRequest,
    Refused,
    TimedOut,
)
from agent_gym.evaluation.judge.cache import AnswerCache
from agent_gym.evaluation.judge.calibration import Calibration, calibrate
from agent_gym.evaluation.judge.cassette import Cassette, CassetteBackend, RecordingBackend
from agent_gym.evaluation.judge.judge import JudgeConfig, RelativeJudge
from agent_gym.evaluation.judge.records import Candidate, CandidateGroup, Message, RecordConfig
from agent_gym.evaluation.judge.result import Failure, GroupJudgment, PassResult
from agent_gym.evaluation.judge.rubric import DECISIONS, OUTCOMES, Rubric, read_rubric
from agent_gym.evaluation.judge.truth import TruthBackend

__all__ = [
    "DECISIONS",
    "OUTCOMES",
    "AnswerCache",
    "BackendFailed",
    "Calibration",
    "Candidate",
    "CandidateGroup",
    "Cassette",
    "CassetteBackend",
    "ChatMessage",
    "Failure",
    "GroupJudgment",
    "JudgeBackend",
    "JudgeConfig",
    "JudgeRequest",
    "Malformed",
    "Message",
    "PassResult",
    "RecordConfig",
    "RecordingBackend",
    "Refused",
    "RelativeJudge",
    "Rubric",
    "TimedOut",
    "TruthBackend",
    "calibrate",
    "read_answer",
    "read_rubric",
]
