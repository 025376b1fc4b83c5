"""Small tensors: threads cost more than they bring."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> None:
    torch.set_num_threads(1)
