"""Small tensors: threads cost more than they bring."""

import pytest


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
