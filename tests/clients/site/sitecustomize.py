"""Python imports this at its start if the folder is in PYTHONPATH: for scripts that are run as they are."""

from tests.clients.other_build import mend

mend()
