"""Names under which Gymnasium knows the environments."""

from warpzone.env.stages import NUM_STAGES, stage_name

NAMESPACE = "warpzone"
_SINGLE = "warpzone.env.single:MarioEnv"
_VECTOR = "warpzone.env.vector:MarioVectorEnv"


def environments() -> dict[str, dict[str, str]]:
    """Every registered id and the options behind it."""
    stages = [stage_name(index) for index in range(NUM_STAGES)]
    return {
        **{f"{NAMESPACE}/SuperMarioBros-{stage}-v0": {"stages": stage} for stage in stages},
        f"{NAMESPACE}/SuperMarioBros-v0": {"stages": "game", "end": "game_over"},
        f"{NAMESPACE}/SuperMarioBrosRandomStages-v0": {"stages": "all"},
    }


def register() -> None:
    """Tells Gymnasium about all of them, once; without Gymnasium there is nothing to do."""
    try:
        from gymnasium.envs import registration
    except ImportError:
        return
    for name, options in environments().items():
        if name not in registration.registry:
            registration.register(
                name, entry_point=_SINGLE, vector_entry_point=_VECTOR, kwargs=dict(options)
            )
