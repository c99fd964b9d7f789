"""Output files that appear whole, or not at all."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

from spyre_mlir.backend.whole_file import write_whole


class PendingOutput(StringIO):
    """Text for a file that is written when everything has succeeded.

    Args:
        path: the file; a device or a pipe is written to as it is.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._target = Path(path).resolve()
        self._text = ""
        if self._target.is_dir():
            raise IsADirectoryError(21, "Is a directory", path)
        if not self._target.parent.is_dir():
            raise FileNotFoundError(2, "No such file or directory", path)
        if not os.access(self._target if self._target.exists() else self._target.parent, os.W_OK):
            raise PermissionError(13, "Permission denied", path)

    @property
    def target(self) -> Path:
        """The file it is for."""
        return self._target

    def close(self) -> None:
        """Keep the text; closing a StringIO would drop it."""
        if not self.closed:
            self._text = self.getvalue()
        super().close()

    def commit(self) -> None:
        """Write the file: whole, or not at all."""
        write_whole(self._target, self._text)
