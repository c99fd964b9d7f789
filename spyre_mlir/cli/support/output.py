"""Output files and directories that are written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from spyre_mlir.backend.whole_files.whole_file import write_whole
from spyre_mlir.errors import InputError

STDOUT = "-"


@contextmanager
def json_place(path: str | None) -> Generator[str | None]:
    """Give the file that the JSON of a call is to be written to.

    For ``-`` it is one whose text goes to stdout when the call has succeeded, and what it prints goes to stderr.

    Args:
        path: as `--json` takes it.
    """
    if path != STDOUT:
        yield path
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "out.json"
        with redirect_stdout(sys.stderr):
            yield str(file)
        if file.exists():
            sys.stdout.write(file.read_text(encoding="utf-8"))


class PendingOutput(StringIO):
    """Text of a file that is written after everything has succeeded.

    Args:
        path: the file; a device or a pipe is written to as it is.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        given = Path(path)
        # Links such as /dev/stdout end in a pipe, which has no name in a folder.
        self._target = given if given.exists() and not given.is_file() else given.resolve()
        self._text = ""
        if self._target.is_dir():
            raise IsADirectoryError(21, "Is a directory", path)
        if not self._target.parent.is_dir():
            raise FileNotFoundError(2, "No such file or directory", path)
        if not os.access(self._target if self._target.exists() else self._target.parent, os.W_OK):
            raise PermissionError(13, "Permission denied", path)

    @property
    def target(self) -> Path:
        """The target file."""
        return self._target

    def close(self) -> None:
        """Keep the text; closing a StringIO would drop it."""
        if not self.closed:
            self._text = self.getvalue()
        super().close()

    def commit(self) -> None:
        """Write the file, all or nothing."""
        write_whole(self._target, self._text)

    def deliver(self, text: str) -> None:
        """Write the file with a text that completes it, all or nothing."""
        self.write(text)
        self.close()
        self.commit()


class PendingDirectory:
    """A directory of text files that is written as a whole or not at all.

    Args:
        path: new, or empty.

    Raises:
        InputError: it holds something, or is no directory.
        OSError: it cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.target = Path(path).resolve()
        if self.target.exists() and (not self.target.is_dir() or any(self.target.iterdir())):
            raise InputError("this is no empty directory", where=path, hint="name a directory that is new or empty")
        if not self.target.parent.is_dir():
            raise FileNotFoundError(2, "No such file or directory", path)
        if not os.access(self.target.parent, os.W_OK):
            raise PermissionError(13, "Permission denied", path)

    def commit(self, files: Mapping[str, str]) -> None:
        """Write the files, by name."""
        part = self.target.with_name(f".{self.target.name}.{os.getpid()}.part")
        try:
            part.mkdir()
            for name, text in files.items():
                (part / name).write_text(text, encoding="utf-8")
            part.replace(self.target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
