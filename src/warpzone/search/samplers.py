"""How trials are drawn and pruned: Optuna's samplers and pruners with the settings of a space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, CmaEsSampler, QMCSampler, RandomSampler, TPESampler

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

    from warpzone.search.space import Space


class Numbered(BaseSampler):
    """Another sampler, made anew for each trial with a seed of the trial's number: what is drawn
    depends on the trials so far and not on which worker draws, or when it was started."""

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make = make
        self._seed = seed
        self._now = make(seed)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        mixed = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)
        self._now = self._make(int(mixed[0]))
        self._now.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._now.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._now.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        return self._now.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._now.after_trial(study, trial, state, values)


class Sobol(QMCSampler):
    """Optuna's sampler of Sobol points with PyTorch's generator of them: that of Optuna is SciPy's,
    which nothing else here needs."""

    def _sample_qmc(
        self, study: optuna.Study, search_space: dict[str, BaseDistribution]
    ) -> np.ndarray:
        from torch import quasirandom

        # PyTorch does not annotate it.
        sobol: Any = quasirandom.SobolEngine
        engine = sobol(len(search_space), scramble=True, seed=self._seed)
        engine.fast_forward(self._find_sample_id(study, search_space))
        point: np.ndarray = engine.draw(1).double().numpy()
        return point


def make_sampler(space: Space) -> BaseSampler:
    """The sampler that a space asks for."""
    startup = space.startup_trials

    def make(seed: int) -> BaseSampler:
        if space.sampler == "tpe":
            # Running trials count as bad ones, so that workers do not all draw the same.
            return TPESampler(seed=seed, n_startup_trials=startup, constant_liar=True)
        if space.sampler == "cmaes":
            return CmaEsSampler(
                seed=seed, n_startup_trials=max(1, startup), warn_independent_sampling=False
            )
        return RandomSampler(seed=seed)

    if space.sampler == "qmc":
        # One sequence for all trials; its place in it is kept in the storage.
        return Sobol(scramble=True, seed=space.seed, warn_independent_sampling=False)
    return Numbered(make, space.seed)


def make_pruner(space: Space) -> BasePruner:
    """The pruner that a space asks for. Its resource are steps."""
    every = max(1, space.base.eval_interval)
    if space.pruner == "median":
        return MedianPruner(
            n_startup_trials=space.startup_trials, n_warmup_steps=space.warmup_steps
        )
    if space.pruner == "hyperband":
        return HyperbandPruner(
            min_resource=every,
            max_resource=max(every, space.base.max_steps),
            reduction_factor=space.reduction_factor,
        )
    return NopPruner()
