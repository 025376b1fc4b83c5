"""Packages that only some features need, and the extra of this package that installs each."""

#: Module -> (what it gives, the extra).
EXTRAS = {
    "torch": ("training", "train"),
    "safetensors": ("weights of agents", "train"),
    "psutil": ("the machine's health in metrics", "train"),
    "pyarrow": ("metrics as Parquet", "train"),
    "fastapi": ("the dashboard", "dashboard"),
    "uvicorn": ("the dashboard", "dashboard"),
    "websockets": ("the dashboard", "dashboard"),
    "tensorboard": ("metrics in TensorBoard", "tensorboard"),
    "wandb": ("metrics in Weights & Biases", "wandb"),
    "lightning": ("learning on several GPUs", "scale"),
    "ray": ("actors on many machines, populations", "fleet"),
    "optuna": ("sweeps", "sweep"),
    "onnx": ("export to ONNX", "export"),
    "onnxscript": ("export to ONNX", "export"),
    "onnxruntime": ("export to ONNX", "export"),
    "huggingface_hub": ("agents on a model hub", "export"),
    "nes_py": ("comparison with nes-py", "compare"),
    "gym_super_mario_bros": ("comparison with gym-super-mario-bros", "compare"),
    "stable_retro": ("comparison with stable-retro", "retro"),
    "stable_baselines3": ("training with Stable-Baselines3", "sb3"),
}


def command(extra: str) -> str:
    """What installs an extra."""
    return f"pip install 'warpzone[{extra}]'"


def missing(module: str | None) -> str | None:
    """One sentence about a module that could not be imported; None if no extra has it."""
    root = (module or "").partition(".")[0]
    if root not in EXTRAS:
        return None
    purpose, extra = EXTRAS[root]
    return f"{root} is not installed ({purpose}); run `{command(extra)}`."
