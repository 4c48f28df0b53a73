"""SignalFilter: rules first, each with its reason; a learned model may only veto."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_gym.agents.desk.acceptor import Acceptor
from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.filter_case import Case, FilterRule
from agent_gym.agents.desk.filter_config import FilterConfig
from agent_gym.agents.desk.filter_market import MARKET_RULES
from agent_gym.agents.desk.filter_model import PaperDraw, Veto, ask
from agent_gym.agents.desk.filter_policy import POLICY_RULES
from agent_gym.agents.desk.filter_symbols import SCHEMA_RULES
from agent_gym.agents.desk.filter_time import DEDUPE_RULES, FRESHNESS_RULES
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import FilterResult, Signal
from agent_gym.agents.desk.signals import BadSignal, parse_signal, readable_id
from agent_gym.agents.desk.view import DeskView
from agent_gym.core.seeds import Seeds

FILTER_RULES: tuple[FilterRule, ...] = (
    *SCHEMA_RULES,
    *DEDUPE_RULES,
    *FRESHNESS_RULES,
    *POLICY_RULES,
    *MARKET_RULES,
)


class SignalFilter:
    """Says whether a signal may be traded, and if not, why.

    Stages run in the order schema, dedupe, freshness, policy, market, model; the first check that
    fails is the reason. In audit mode every check is tried and ``failed`` lists those that fail.
    A small share of what the model vetoes is accepted on paper, so that there are labels for it.

    A check stores nothing: the same question to the same context has the same answer.
    """

    def __init__(
        self,
        config: FilterConfig | None = None,
        acceptor: Acceptor | None = None,
        seeds: Seeds | None = None,
        rules: tuple[FilterRule, ...] = FILTER_RULES,
    ) -> None:
        self.config = config or FilterConfig()
        self.acceptor = acceptor
        self.rules = rules
        self._paper = PaperDraw(seeds or Seeds(0), self.config.epsilon_pass)

    def check(
        self, signal: Signal | Mapping[str, Any], view: DeskView, context: RecentContext
    ) -> FilterResult:
        """Return whether a signal passes, with the first reason if it does not."""
        try:
            read = parse_signal(signal)
        except BadSignal as bad:
            return FilterResult(
                readable_id(signal),
                accepted=False,
                stage="schema",
                code=bad.code,
                detail=f"{bad.field}: {bad.detail}",
                failed=(bad.code,) if self.config.audit else (),
            )
        case = Case(read, view, context, self.config)
        if self.config.audit:
            return self._audited(case)
        for rule in self.rules:
            detail = rule.check(case)
            if detail is not None:
                return FilterResult(read.signal_id, False, rule.stage, rule.code, detail)
        if self.acceptor is None:
            return FilterResult(read.signal_id, accepted=True, stage="market")
        return self._judged(case, ask(self.acceptor, case))

    def _judged(self, case: Case, veto: Veto) -> FilterResult:
        """Return the verdict on a signal that every rule let pass."""
        name, code, score = case.signal.signal_id, veto.code, veto.score
        is_paper = code is not None and code.family == "model" and self._paper.takes(name)
        return FilterResult(
            name,
            accepted=code is None or is_paper,
            stage="model",
            code=None if is_paper else code,
            detail=veto.detail,
            score=None if score is None else score.score,
            threshold=None if score is None else score.threshold,
            model_version=None if score is None else score.version,
            failed=(code,) if code is not None and (is_paper or self.config.audit) else (),
            paper=is_paper,
        )

    def _audited(self, case: Case) -> FilterResult:
        """Try every check, for research; the reason is still the first that failed."""
        first: tuple[FilterRule, str] | None = None
        failed: list[RejectCode] = []
        for rule in self.rules:
            detail = rule.check(case)
            if detail is not None:
                first = first or (rule, detail)
                failed.append(rule.code)
        veto = None if self.acceptor is None else ask(self.acceptor, case)
        if first is None:
            passed = FilterResult(case.signal.signal_id, accepted=True, stage="market")
            return passed if veto is None else self._judged(case, veto)
        if veto is not None and veto.code is not None:
            failed.append(veto.code)
        score = None if veto is None else veto.score
        return FilterResult(
            case.signal.signal_id,
            accepted=False,
            stage=first[0].stage,
            code=first[0].code,
            detail=first[1],
            score=None if score is None else score.score,
            threshold=None if score is None else score.threshold,
            model_version=None if score is None else score.version,
            failed=tuple(failed),
        )
