"""A stand-in for gym-super-mario-bros 7.4.0 and the wrapper of nes-py that it is used with.

    import warpzone.compat as gym_super_mario_bros
    from warpzone.compat import JoypadSpace, SIMPLE_MOVEMENT

    env = JoypadSpace(gym_super_mario_bros.make("SuperMarioBros-v0"), SIMPLE_MOVEMENT)

`make` gives the interface of old gym: `reset()` returns an observation, `step` four values.
Importing this package registers the same ids with Gymnasium, whose `make` gives its own interface.
`take_over()` leads the imports of a script that is not to be edited here.
"""

from warpzone.compat.actions import COMPLEX_MOVEMENT, RIGHT_ONLY, SIMPLE_MOVEMENT
from warpzone.compat.environments import SuperMarioBrosEnv, SuperMarioBrosRandomStagesEnv
from warpzone.compat.modules import take_over
from warpzone.compat.registration import environments, make, register
from warpzone.compat.wrappers import FourTuple, JoypadSpace

__all__ = [
    "COMPLEX_MOVEMENT",
    "RIGHT_ONLY",
    "SIMPLE_MOVEMENT",
    "FourTuple",
    "JoypadSpace",
    "SuperMarioBrosEnv",
    "SuperMarioBrosRandomStagesEnv",
    "environments",
    "make",
    "take_over",
]

register()
