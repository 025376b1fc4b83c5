"""`JoypadSpace` of nes-py, and the interface of gym before it had five values."""

from collections.abc import Sequence
from typing import Any, ClassVar

from gymnasium import Env, Wrapper, spaces
from gymnasium.error import ResetNeeded


class _Forwarding(Wrapper[Any, Any, Any, Any]):
    """Gives the attributes of what it wraps, as wrappers of old gym did: `ram`, `screen`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.env.get_wrapper_attr(name)

    def render(self, *mode: str) -> Any:
        """As what it wraps does: old gym's environments take a mode."""
        game: Any = self.env
        return game.render(*mode)


class JoypadSpace(_Forwarding):
    """Actions are numbers of a list such as `SIMPLE_MOVEMENT`. Wraps environments of either
    interface and keeps it."""

    _button_map: ClassVar[dict[str, int]] = {
        "right": 128,
        "left": 64,
        "down": 32,
        "up": 16,
        "start": 8,
        "select": 4,
        "B": 2,
        "A": 1,
        "NOOP": 0,
    }

    @classmethod
    def buttons(cls) -> list[str]:
        """The names that lists may use."""
        return list(cls._button_map)

    def __init__(self, env: Env[Any, Any], actions: Sequence[Sequence[str]]) -> None:
        super().__init__(env)
        masks = []
        for buttons in actions:
            unknown = [button for button in buttons if button not in self._button_map]
            if unknown:
                known = ", ".join(self._button_map)
                raise ValueError(f"unknown button {unknown[0]!r}; the buttons are {known}")
            masks.append(sum({self._button_map[button] for button in buttons}))
        self.action_space = spaces.Discrete(len(masks))
        self._action_map = dict(enumerate(masks))
        self._action_meanings = {index: " ".join(names) for index, names in enumerate(actions)}

    def step(self, action: Any) -> Any:
        """One step with the buttons of this action."""
        chosen = int(action)
        if chosen not in self._action_map:
            raise ValueError(f"action {action!r} is not in {self.action_space}")
        return self.env.step(self._action_map[chosen])

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """The action of each combination of keys."""
        env: Any = self.env.unwrapped
        keys = {mask: held for held, mask in env.get_keys_to_action().items()}
        return {keys[mask]: action for action, mask in self._action_map.items()}

    def get_action_meanings(self) -> list[str]:
        """The buttons of each action."""
        return [self._action_meanings[action] for action in sorted(self._action_meanings)]


class FourTuple(_Forwarding):
    """The interface of gym before 0.26: `reset()` gives the observation alone, `step` gives
    observation, reward, done and info; `info["TimeLimit.truncated"]` marks ends that are none."""

    def __init__(self, env: Env[Any, Any]) -> None:
        super().__init__(env)
        self._seed: int | None = None

    def seed(self, seed: int | None = None) -> list[int]:
        """The next reset uses this seed."""
        self._seed = seed
        return [] if seed is None else [seed]

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        return_info: bool | None = None,
    ) -> Any:
        """A new episode's first observation; with `return_info=True` its info too."""
        chosen, self._seed = (self._seed if seed is None else seed), None
        obs, info = self.env.reset(seed=chosen, options=options)
        return (obs, info) if return_info else obs

    def step(self, action: Any) -> Any:
        """Observation, reward, done, info."""
        try:
            obs, reward, terminated, truncated, info = self.env.step(action)
        except ResetNeeded as error:
            raise ValueError("cannot step in a done environment! call `reset`") from error
        if truncated:
            info = {**info, "TimeLimit.truncated": not terminated}
        return obs, reward, terminated or truncated, info

    def render(self, *mode: str) -> Any:
        """The screen for `rgb_array`; `human` needs an environment made for it."""
        game: Any = self.env.unwrapped
        if mode == ("rgb_array",):
            return game.screen
        if mode not in ((), (self.env.render_mode,)):
            raise ValueError(f"render{mode!r} needs make(id, render_mode={mode[0]!r})")
        return self.env.render()
