"""The script that has the card: run in this process with a runtime of the test's."""

from pathlib import Path

import numpy as np
import pytest
import torch

from spyre_mlir.runtime import launch_script


class Runtime:
    """Doubles its first tensor into the second; the plan is the directory that it was given."""

    def prepare_kernel(self, directory: str) -> str:
        return directory

    def launch_jobplan(self, plan: str, tensors: list[torch.Tensor]) -> None:
        assert plan.endswith("/spyreCodeDir")
        tensors[1].copy_(2 * tensors[0])


def test_arguments_go_in_order_and_results_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_script, "DEVICE", "cpu")
    np.save(tmp_path / "argument_0.npy", np.arange(64, dtype=np.float16))
    np.save(tmp_path / "argument_1.npy", np.zeros(64, dtype=np.float16))
    launch_script.run_step(tmp_path, Runtime())
    assert np.load(tmp_path / "result_1.npy").tolist() == list(range(0, 128, 2))
