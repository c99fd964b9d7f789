"""Output files that appear whole, or not at all."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path


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
        if self._target.exists() and not self._target.is_file():
            self._target.write_text(self._text, encoding="utf-8")
            return
        part = self._target.with_name(f".{self._target.name}.{os.getpid()}.part")
        try:
            part.write_text(self._text, encoding="utf-8")
            part.replace(self._target)
        finally:
            part.unlink(missing_ok=True)
