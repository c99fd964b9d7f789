"""What the server of ranks has loaded before it forks, which starts no thread: a fork has none but its own."""

from __future__ import annotations

import torch._dynamo
import torch.distributed._functional_collectives

from tests.end_to_end.ranks import models, programs
from tests.warm_python import load_ours

load_ours()

__all__ = ["models", "programs", "torch"]
