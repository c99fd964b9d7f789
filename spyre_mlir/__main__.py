"""The tools by one name: `python -m spyre_mlir compile model.pt2`."""

from __future__ import annotations

import sys

from spyre_mlir.cli.tools import main

sys.exit(main(sys.argv[1:]))
