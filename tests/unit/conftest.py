"""Small tensors: threads cost more than they bring."""

import sys

import pytest


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    # Tests that need no torch do not wait for it: those that do have imported it by now.
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
