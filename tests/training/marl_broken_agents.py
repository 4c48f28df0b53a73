"""AMAL, broken in one way at a time; the numbers are those of the page."""

from dataclasses import replace

import numpy as np

from agent_gym.training.marl.amal import AMALAgent
from agent_gym.training.marl.amal.transitions import transitions_of
from agent_gym.training.marl.batch import FRESH


class OtherSteps(AMALAgent):
    """3: steps are paid for what others said."""

    def _paid(self, batch, said):
        return super()._paid(batch, said[::-1])


class OneNumber(AMALAgent):
    """3: one number for a whole window."""

    def _paid(self, batch, said):
        return super()._paid(batch, np.full_like(said, said.mean()))


class NearInWeights(AMALAgent):
    """7: fitness is nearness in weights."""

    def __init__(self, *given):
        super().__init__(*given)
        own = self.auxiliaries
        own.fitness = lambda policy, probes: -np.linalg.norm(own.shifts, axis=1)


class NoRegion(AMALAgent):
    """7: the size of shifts is a number of weights, whatever teams do then."""

    def __init__(self, *given):
        super().__init__(*given)
        own = self.auxiliaries
        own.shifts = 4.0 * own.shifts
        own._fitted = lambda policy, probes: own.space.crowd(policy, own.shifts)


class Counterfactual(AMALAgent):
    """7: scores are not those of the episodes that were played."""

    def __init__(self, *given):
        super().__init__(*given)
        own = self.auxiliaries
        own.mean_returns = lambda: np.square(own.shifts).mean(axis=1)


class TwoTeams(AMALAgent):
    """8: of all teams only two ever act."""

    def __init__(self, *given):
        super().__init__(*given)
        own = self.auxiliaries
        fitted = own._fitted

        def few(policy, probes):
            fitted(policy, probes)
            shifts = own.shifts.copy()
            shifts[2:] = 0.0
            return own.space.crowd(policy, shifts)

        own._fitted = few


class NeverRenewed(AMALAgent):
    """8: a generation that never ends."""

    def __init__(self, *given):
        super().__init__(*given)
        self.auxiliaries.grow_older = lambda policy, probes: False


class NeverLearned(AMALAgent):
    """9: auxiliary rows are never handed on."""

    def _to_learn(self, auxiliary):
        return ()


class PassedOff(AMALAgent):
    """9: auxiliary rows are handed on as fresh ones."""

    def _to_learn(self, auxiliary):
        return (replace(auxiliary, source=FRESH),)


class Leaking(AMALAgent):
    """10: auxiliary rows are added to the primary buffer, tagged as primary."""

    def learn_world(self, batch, said):
        if len(self.buffer.auxiliary):
            self.buffer.primary.add(relabelled(self.buffer.auxiliary.rows(), batch))
        super().learn_world(batch, said)


def relabelled(rows, batch):
    """Return rows as if the primary team had played them, as many as fit its environments."""
    whole = len(rows.ended) // batch.ended.shape[1] * batch.ended.shape[1]
    return rows.some(np.arange(whole))._replace(source=FRESH)


class LeakingInPlay(AMALAgent):
    """10: auxiliary rows are added to the primary buffer as soon as they are played."""

    def _play(self, batch, policy):
        played = super()._play(batch, policy)
        rows = transitions_of(played, self.core)
        self.buffer.primary.add(relabelled(rows, batch))
        return played


class LeakingScales(AMALAgent):
    """10: the scales of the model take in what auxiliary teams saw."""

    def _play(self, batch, policy):
        played = super()._play(batch, policy)
        self.model._seen.update(transitions_of(played, self.core).seen)
        return played


class OneActor(AMALAgent):
    """10: the model sees what the first agent does, and nobody else."""

    def _blind(self, batch):
        actions = batch.actions.copy()
        actions[..., 1:] = 0
        return replace(batch, actions=actions)

    def information(self, batch):
        return super().information(self._blind(batch))

    def learn_world(self, batch, said):
        super().learn_world(self._blind(batch), said)


class AcrossEnds(AMALAgent):
    """15: the step from one battle to the next is learned as one of the battle."""

    def learn_world(self, batch, said):
        super().learn_world(replace(batch, ended=np.zeros_like(batch.ended)), said)


class Forgetful(AMALAgent):
    """16: auxiliary teams are left as they were drawn."""

    def restore(self, arrays, values):
        fresh, kept = self.auxiliaries.state()
        super().restore(arrays, values)
        self.auxiliaries.restore(fresh, kept)


class Uncounted(AMALAgent):
    """19: steps of auxiliary teams cost nothing."""

    def mix(self, batch, episodes, policy):
        return replace(super().mix(batch, episodes, policy), env_steps=batch.env_steps)
