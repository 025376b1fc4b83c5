"""Changes rewards and starts of lanes while they play."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpzone.env.rewards import SHAPING_FIELDS, RewardWeights
from warpzone.env.script import parse_start
from warpzone.env.stages import NUM_STAGES, stage_index

if TYPE_CHECKING:
    from warpzone import _engine
    from warpzone.env.backends.interface import Lanes


class Steering:
    """The methods of an environment for all lanes, between two steps. Lanes of every back-end
    can be steered."""

    def _live(self) -> "_engine.Vector | Lanes":
        raise AssertionError("given by the environment")

    def _ready(self) -> "_engine.Vector | Lanes":
        raise AssertionError("given by the environment")

    def _keep(self, key: Hashable, method: str, *arguments: Any, **options: Any) -> None:
        """Environments that can be copied remember such calls; others need not."""

    def set_reward_weights(self, weights: RewardWeights | Mapping[str, float]) -> None:
        """Weights of the steps from now on, for annealing; a mapping's others are the defaults."""
        if not isinstance(weights, RewardWeights):
            weights = RewardWeights(**weights)  # type: ignore[arg-type]
        self._live().set_reward_weights(weights.to_engine())
        self._keep("reward weights", "set_reward_weights", weights)

    def shaping(self) -> dict[str, float]:
        """What shaping added since the last call: the `env_shaping_*` diagnostics of all lanes."""
        return dict(zip(SHAPING_FIELDS, self._live().take_shaping(), strict=True))

    def set_stage_weights(self, weights: Mapping[str, float] | Sequence[float] | None) -> None:
        """How often resets draw each stage: 32 numbers, or those above zero by name; None draws
        all alike. A lane only ever draws the stages it was given."""
        numbers = [0.0] * NUM_STAGES
        if weights is None:
            numbers = []
        elif isinstance(weights, Mapping):
            for name, weight in weights.items():
                numbers[stage_index(name)] = float(weight)
        else:
            numbers = [float(weight) for weight in weights]
        self._live().set_stage_weights(numbers)
        self._keep("stage weights", "set_stage_weights", numbers or None)

    def set_start_script(self, script: str) -> None:
        """The buttons that every episode starts with from its next reset on; empty: none."""
        self._live().set_script(parse_start(script) if script else b"")
        self._keep("script", "set_start_script", script)

    def force(self, script: str, lanes: Sequence[int] | None = None) -> None:
        """Lanes (all when None) press these buttons from now on, whatever their actions are."""
        engine = self._ready()
        chosen = range(engine.num_lanes) if lanes is None else lanes
        for lane in chosen:
            if not 0 <= lane < engine.num_lanes:
                raise IndexError(f"lane {lane} is outside 0..{engine.num_lanes - 1}")
        engine.force([int(lane) for lane in chosen], parse_start(script))


class Restarts:
    """The part of `MarioVectorEnv` and `MarioEnv` that needs lanes which can be saved."""

    def _live(self) -> "_engine.Vector":
        raise AssertionError("given by the environment")

    def _keep(self, key: Hashable, method: str, *arguments: Any, **options: Any) -> None:
        raise AssertionError("given by the environment")

    def _drop(self, key: Hashable) -> None:
        raise AssertionError("given by the environment")

    def add_restart(
        self, restart: int, state: bytes, *, weight: float = 1.0, script: str = ""
    ) -> None:
        """A lane saved with `save` from which episodes of its stage may begin; see
        `set_restart_share`. `restart` is its number, from 1 on, shown in `infos["restart"]`."""
        if not isinstance(state, bytes):
            raise TypeError(f"a saved lane is bytes, not {type(state).__name__}")
        masks = parse_start(script) if script else b""
        self._live().add_restart(restart, state, masks, weight)
        self._keep(
            ("restart", int(restart)), "add_restart", restart, state, weight=weight, script=script
        )

    def remove_restart(self, restart: int) -> None:
        """Forgets a restart point."""
        self._live().remove_restart(restart)
        self._drop(("restart", int(restart)))

    def set_restart_share(self, share: float) -> None:
        """The share of episodes that begin at a restart point of their stage."""
        self._live().set_restart_share(share)
        self._keep("restart share", "set_restart_share", share)
